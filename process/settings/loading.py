"""Loads a node's configuration, and refuses settings that a node cannot follow.

Rule: a returned configuration is valid. All mistakes are reported at once, each in a sentence with
the place to correct; what only follows from another mistake is none.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from ...cluster.errors import ConfigurationError
from .environment import JAAS_FILE
from .foreign_keys import meant_by
from .jaas_file import Sections, read_jaas_file
from .listeners import LISTENER_KEYS
from .node_config import JAAS_KEY, NOTHING, NodeConfig
from .node_rules import HAS_TO_FIT, doubts_of, faults_of
from .secret_files import doubts_of_files
from .sources import Setting, Written, collect_settings, written_settings

Check = Callable[[NodeConfig], Iterable[str]]


def load_config(
    file_text: str,
    file_name: str,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] = NOTHING,
    check: Check | None = None,
) -> NodeConfig:
    """Load the configuration from a properties file, environment variables, and `key=value`
    overrides, in order of rising precedence. `check` yields sentences about further mistakes, each
    of which begins with a key. Raises ConfigurationError.
    """
    written = written_settings(file_text, file_name, overrides, environ)
    return config_from_settings(written, check)


def config_from_mapping(values: Mapping[str, str]) -> NodeConfig:
    """Make a configuration from a mapping of keys to texts. Raises ConfigurationError."""
    settings = [(key, Setting(text, f"configuration, {key}", 0)) for key, text in values.items()]
    return config_from_settings(Written(settings, [], []))


def config_from_settings(written: Written, check: Check | None = None) -> NodeConfig:
    """Make a configuration of what was written, as `load_config` does. Raises
    ConfigurationError.
    """
    collected = collect_settings(written.settings)
    settings, mistakes = collected.settings, [*collected.faults, *written.faults]
    texts = {key: setting.text for key, setting in settings.items() if key not in collected.faulty}
    doubtful = {*collected.faulty, *(near for key in collected.faulty if (near := meant_by(key)))}
    if doubtful & LISTENER_KEYS:
        doubtful |= LISTENER_KEYS
    sections: Sections = {}
    if JAAS_FILE in texts:
        try:
            sections = read_jaas_file(texts[JAAS_FILE])
        except ConfigurationError as error:
            mistakes += [f"{_place(settings, JAAS_FILE)}{each}" for each in str(error).split("\n")]
            doubtful.add(JAAS_FILE)
    config = NodeConfig(texts, jaas_sections=sections)
    faults = [(key, sentence) for key, sentence in faults_of(config) if key not in doubtful]
    mistakes += [f"{_place(settings, key)}{sentence}" for key, sentence in faults]
    if check is not None:
        mistakes += _further(check, config, {*doubtful, *(key for key, _ in faults)})
    if mistakes:
        raise ConfigurationError("\n".join(mistakes))
    doubts = [f"{_place(settings, key)}{sentence}" for key, sentence in (*doubts_of(config), *doubts_of_files(config))]
    return NodeConfig(texts, warnings=[*written.warnings, *doubts], jaas_sections=sections)


def _further(check: Check, config: NodeConfig, doubtful: set[str]) -> Iterable[str]:
    """Return the mistakes that a check finds, but for those that follow from keys whose values are
    doubtful.
    """
    if doubtful & LISTENER_KEYS:
        return []
    certain = {key: text for key, text in config.static.items() if key not in doubtful}
    found = check(NodeConfig(certain, jaas_sections=config.jaas_sections))
    return [each for each in found if not _follows(key_of(each), doubtful)]


def _follows(key: str, doubtful: set[str]) -> bool:
    return key in doubtful or (JAAS_FILE in doubtful and key.endswith(JAAS_KEY))


def key_of(sentence: str) -> str:
    """Return the first word of a sentence about a key: the key, without a value that follows it."""
    return sentence.split(maxsplit=1)[0].partition("=")[0].rstrip(":,")


def _place(settings: Mapping[str, Setting], key: str) -> str:
    """Return the place to correct: that of the key, or that of an override which restricts it."""
    together = [settings[each] for each in (key, *HAS_TO_FIT.get(key, ())) if each in settings]
    place = max(together, key=lambda setting: setting.rank).place if together else ""
    return f"{place}: " if place else ""
