"""Collects a node's settings from the file, the environment and the command line.

Rule: each setting has its place, and every message about a mistake begins with that place. No
message contains a secret.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ...policies.configs.values import InvalidValueError, KeyType
from ...text.properties import PropertiesError, parse_properties
from ..errors import ConfigurationError
from .environment import doubts_about, faults_of_variables, settings_of
from .foreign_keys import explained, is_slip_for_authorizer
from .keys import key_named


class Setting(msgspec.Struct, frozen=True):
    text: str
    place: str
    """The place where the setting was written, such as `server.properties, line 12`."""
    rank: int
    """A setting of a higher rank overrides one of a lower rank."""


class Collected(msgspec.Struct):
    settings: dict[str, Setting]
    faults: list[str]
    warnings: list[str]
    faulty: set[str]
    """The names of keys with a fault, and those that are no keys."""


def collect_settings(
    file_text: str, file_name: str, overrides: Sequence[str] | Mapping[str, str], environ: Mapping[str, str]
) -> Collected:
    """Collect the settings of a node and parse each value by itself. Environment variables override
    the file, and `overrides` override both. Mistakes in values become `faults`.

    Raises ConfigurationError if the file or an override cannot be parsed.
    """
    try:
        properties = parse_properties(file_text, file_name)
    except PropertiesError as error:
        raise ConfigurationError(str(error)) from None
    collected = Collected({}, [], [*properties.warnings, *doubts_about(environ)], set())
    for entry in properties.entries.values():
        _add(collected, entry.key, Setting(entry.value, f"{file_name}, line {entry.line}", 0))
    for variable, key, value in settings_of(environ):
        _add(collected, key, Setting(value, f"environment variable {variable}", 1))
    collected.faults += faults_of_variables(environ)
    pairs = overrides.items() if isinstance(overrides, Mapping) else _pairs(overrides)
    for key, value in pairs:
        place = f"{file_name}, {key}" if isinstance(overrides, Mapping) else f"--set {key}"
        _add(collected, key, Setting(value, place, 2))
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


def _pairs(overrides: Sequence[str]) -> Iterator[tuple[str, str]]:
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise ConfigurationError(f"--set {override}: write it as key=value.")
        yield key.strip(), value
