"""Loads a node's configuration, and refuses settings that a node cannot follow.

Rule: a returned configuration is valid. All mistakes are reported at once, each in a sentence with
the place to correct.
"""

from collections.abc import Mapping, Sequence

from ..errors import ConfigurationError
from .node_config import NOTHING, NodeConfig
from .node_rules import HAS_TO_FIT, doubts_of, faults_of
from .settings import Collected, Setting, collect_settings


def load_config(
    file_text: str,
    file_name: str,
    overrides: Sequence[str] | Mapping[str, str] = (),
    environ: Mapping[str, str] = NOTHING,
) -> NodeConfig:
    """Load the configuration from a properties file, environment variables, and `key=value`
    overrides, in order of rising precedence. Raises ConfigurationError.
    """
    return _checked(collect_settings(file_text, file_name, overrides, environ))


def config_from_mapping(values: Mapping[str, str]) -> NodeConfig:
    """Make a configuration from a mapping of keys to texts. Raises ConfigurationError."""
    return _checked(collect_settings("", "configuration", values, NOTHING))


def _checked(collected: Collected) -> NodeConfig:
    settings = collected.settings
    texts = {key: setting.text for key, setting in settings.items()}
    config = NodeConfig(texts)
    mistakes = collected.faults or [f"{_place(settings, key)}{reason}" for key, reason in faults_of(config)]
    if mistakes:
        raise ConfigurationError("\n".join(mistakes))
    doubts = [f"{_place(settings, key)}{reason}" for key, reason in doubts_of(config)]
    return NodeConfig(texts, warnings=[*collected.warnings, *doubts])


def _place(settings: Mapping[str, Setting], key: str) -> str:
    """Return the place to correct: that of the key, or that of an override which restricts it."""
    together = [settings[each] for each in (key, *HAS_TO_FIT.get(key, ())) if each in settings]
    return f"{max(together, key=lambda setting: setting.rank).place}: " if together else ""
