"""Loads a node's configuration from the file, the environment and the command line, and refuses
settings that a node cannot follow.

Rule: a returned configuration is valid. All mistakes are reported at once, each in a sentence that
begins with the place to correct; what only follows from another mistake is none. No message
contains a secret.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ...cluster.errors import ConfigurationError
from ...policies.configs.values import InvalidValueError, KeyType
from .environment import JAAS_FILE, doubts_about, faults_of_variables, settings_of
from .foreign_keys import explained, is_slip_for_authorizer, meant_by
from .jaas import Sections, read_jaas_file
from .keys import key_named
from .listeners import LISTENER_KEYS
from .node_config import JAAS_KEY, NOTHING, NodeConfig
from .node_rules import HAS_TO_FIT, doubts_of, faults_of
from .properties import PropertiesError, parse_properties
from .secret_files import doubts_of_files

Check = Callable[[NodeConfig], Iterable[str]]


class Setting(msgspec.Struct, frozen=True):
    text: str
    place: str
    """The place where the setting was written, such as `server.properties, line 12`."""
    rank: int
    """A setting of a higher rank overrides one of a lower rank."""


class Written(msgspec.Struct):
    """Settings as they were written, in order of rising precedence; no key is looked at yet."""

    settings: list[tuple[str, Setting]]
    faults: list[str]
    warnings: list[str]


class Collected(msgspec.Struct):
    settings: dict[str, Setting]
    faults: list[str]
    faulty: set[str]
    """The names of keys with a fault, and those that are no keys."""


def written_settings(
    file_text: str, file_name: str, overrides: Sequence[str], environ: Mapping[str, str] = NOTHING
) -> Written:
    """Return the settings of a properties file, of environment variables, which override it, and of
    `key=value` overrides of both. Raises ConfigurationError if the file cannot be parsed.
    """
    try:
        properties = parse_properties(file_text, file_name)
    except PropertiesError as error:
        raise ConfigurationError(str(error)) from None
    of_file = [
        (entry.key, Setting(entry.value, f"{file_name}, line {entry.line}", 0)) for entry in properties.entries.values()
    ]
    of_environment = [
        (key, Setting(value, f"environment variable {variable}", 1)) for variable, key, value in settings_of(environ)
    ]
    of_command = []
    faults = list(faults_of_variables(environ))
    for override in overrides:
        name, equals, value = override.partition("=")
        key = name.strip()
        if equals:
            of_command.append((key, Setting(value, f"--set {key}", 2)))
        else:
            faults.append(f"--set {override}: write it as key=value.")
    return Written([*of_file, *of_environment, *of_command], faults, [*properties.warnings, *doubts_about(environ)])


def collect_settings(written: Iterable[tuple[str, Setting]]) -> Collected:
    """Collect the settings of a node and parse each value by itself. Mistakes in values become
    `faults`.
    """
    collected = Collected({}, [], set())
    for key, setting in written:
        _add(collected, key, setting)
    return collected


def _add(collected: Collected, name: str, setting: Setting) -> None:
    key = key_named(name)
    if key is None or is_slip_for_authorizer(name):
        collected.faulty.add(name)
        collected.faults.append(f"{setting.place}: there is no key {name or '(empty)'}{explained(name)}")
        return
    try:
        key.parse(setting.text)
    except InvalidValueError as error:
        collected.faulty.add(name)
        secret = key.type is KeyType.PASSWORD
        collected.faults.append(f"{setting.place}: {f'{name} cannot be read' if secret else error}.")
    else:
        collected.faulty.discard(name)  # of a place that this one overrides
    collected.settings[name] = setting


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
