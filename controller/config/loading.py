"""Makes a node's configuration out of what people wrote, and refuses what a node cannot follow.

Rule: a configuration that is returned is valid. Whatever is wrong is told at once, a sentence for
each mistake, with the place where it has to be mended.
"""

from collections.abc import Mapping, Sequence

from ..errors import ConfigurationError
from .node_config import NOTHING, NodeConfig
from .node_rules import HAS_TO_FIT, faults_of
from .settings import Collected, Setting, collect_settings


def load_config(
    file_text: str,
    file_name: str,
    overrides: Sequence[str] | Mapping[str, str] = (),
    environ: Mapping[str, str] = NOTHING,
) -> NodeConfig:
    """Read a properties file, environment variables that override it, and `key=value` overrides,
    which override both. Raises ConfigurationError.
    """
    return _checked(collect_settings(file_text, file_name, overrides, environ))


def config_from_mapping(values: Mapping[str, str]) -> NodeConfig:
    """Make a configuration of keys and their texts. Raises ConfigurationError."""
    return _checked(collect_settings("", "configuration", values, NOTHING))


def _checked(collected: Collected) -> NodeConfig:
    settings = collected.settings
    texts = {key: setting.text for key, setting in settings.items()}
    config = NodeConfig(texts, warnings=collected.warnings)
    mistakes = collected.faults or [f"{_place(settings, key)}{reason}" for key, reason in faults_of(config)]
    if mistakes:
        raise ConfigurationError("\n".join(mistakes))
    return config


def _place(settings: Mapping[str, Setting], key: str) -> str:
    """Name the place to mend: that of the key, or of an override of a key that it has to fit."""
    together = [settings[each] for each in (key, *HAS_TO_FIT.get(key, ())) if each in settings]
    return f"{max(together, key=lambda setting: setting.rank).place}: " if together else ""
