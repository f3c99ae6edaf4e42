"""Collects a node's settings from the file, the environment and the command line.

Rule: each setting has its place, and every message about a mistake begins with that place. No
message contains a secret.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ...cluster.errors import ConfigurationError
from ...policies.configs.values import InvalidValueError, KeyType
from .environment import doubts_about, faults_of_variables, settings_of
from .foreign_keys import explained, is_slip_for_authorizer
from .keys import key_named
from .node_config import NOTHING
from .properties import PropertiesError, parse_properties


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
