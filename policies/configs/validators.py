"""Makes validators of configuration values from the notation in the tables of keys.

>=1            at least 1
1..9           from 1 to 9
1..9,-1        from 1 to 9, or -1
non-empty      at least one character
a|b|c          one of these words (for a list, each element)
nocase:a|b     one of these words, in any case
version        a release or protocol version of Kafka
replicas       `*`, or partition:broker pairs, which may be empty
"""

import re
from collections.abc import Callable

from .values import InvalidValueError, Value, show_value

Validator = Callable[[str, Value], None]
"""A validator takes a key's name and a value other than None, and raises InvalidValueError."""

_RANGE = re.compile(r"(?:>=(?P<low>-?\d++))|(?:(?P<from>-?\d++)\.\.(?P<to>-?\d++(?:\.\d++)?))(?:,(?P<or>-?\d++))?")
_PROPOSED = re.compile(r"(?:\d++:\d++)?", re.ASCII)

# The versions that Kafka 3.9 knows. Three numbers name a release before 1.0, and two a later one;
# further numbers are ignored.
VERSIONS = """
    0.8.0 0.8.1 0.8.2 0.9.0 0.10.0-IV0 0.10.0-IV1 0.10.1-IV0 0.10.1-IV1 0.10.1-IV2 0.10.2-IV0 0.11.0-IV0 0.11.0-IV1
    0.11.0-IV2 1.0-IV0 1.1-IV0 2.0-IV0 2.0-IV1 2.1-IV0 2.1-IV1 2.1-IV2 2.2-IV0 2.2-IV1 2.3-IV0 2.3-IV1 2.4-IV0 2.4-IV1
    2.5-IV0 2.6-IV0 2.7-IV0 2.7-IV1 2.7-IV2 2.8-IV0 2.8-IV1 3.0-IV0 3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2
    3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0
    3.9-IV0 4.0-IV0 4.0-IV1
"""
_VERSIONS = frozenset(VERSIONS.split())
_UNRELEASED = "4.0"


def validator_of(notation: str) -> Validator | None:
    """Return the validator of a notation, or None if the notation is empty. Raises ValueError for
    an unknown notation.
    """
    if not notation:
        return None
    if notation in _NAMED:
        return _NAMED[notation]
    bounds = _RANGE.fullmatch(notation)
    if bounds:
        low, high, other = bounds["low"] or bounds["from"], bounds["to"], bounds["or"]
        return _range(low, high, None if other is None else int(other))
    if notation.startswith("nocase:"):
        return _words(notation.removeprefix("nocase:").split("|"), ignore_case=True)
    if "|" in notation:
        return _words(notation.split("|"), ignore_case=False)
    raise ValueError(f"no such notation: {notation}")


def _range(low: str, high: str | None, other: int | None) -> Validator:
    def check(name: str, value: Value) -> None:
        assert isinstance(value, int | float)
        if other is not None:
            if value != other and not float(low) <= value <= float(high or low):
                reason = f"Value must be between {low} and {high} or equal to {other}"
                raise InvalidValueError(name, show_value(value), reason)
        elif value < float(low):
            raise InvalidValueError(name, show_value(value), f"Value must be at least {low}")
        elif high is not None and value > float(high):
            raise InvalidValueError(name, show_value(value), f"Value must be no more than {high}")

    return check


def _words(words: list[str], *, ignore_case: bool) -> Validator:
    folded = frozenset(word.lower() for word in words) if ignore_case else frozenset(words)
    reason = f"String must be one of{' (case insensitive)' if ignore_case else ''}: {', '.join(words)}"

    def check(name: str, value: Value) -> None:
        for word in value if isinstance(value, tuple) else (str(value),):
            if (word.lower() if ignore_case else word) not in folded:
                raise InvalidValueError(name, word, reason)

    return check


def _non_empty(name: str, value: Value) -> None:
    if not value:
        raise InvalidValueError(name, show_value(value), "String must be non-empty")


def _throttled_replicas(name: str, value: Value) -> None:
    assert isinstance(value, tuple)
    # Java drops empty elements at the end before it looks for the literal `*`, which stands alone.
    elements = list(value)
    while elements and not elements[-1]:
        elements.pop()
    if elements != ["*"] and not all(_PROPOSED.fullmatch(element) for element in elements):
        reason = (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
        raise InvalidValueError(name, show_value(value), reason)


def _version(name: str, value: Value) -> None:
    text = str(value)
    if release_of(text) is None:
        raise InvalidValueError(name, text, f"Version {text} is not a valid version")


def release_of(text: str) -> tuple[int, ...] | None:
    """Return the release that a version names, as numbers, or None if Kafka 3.9 does not know
    it.
    """
    if text in _VERSIONS:
        return tuple(map(int, text.partition("-")[0].split(".")))
    parts, counted = text.rstrip(".").split("."), 3 if text.startswith("0.") else 2
    short = ".".join(parts[:counted]) if len(parts) > counted else text
    known = any(version.partition("-")[0] == short for version in _VERSIONS)
    return tuple(map(int, short.split("."))) if known and short != _UNRELEASED else None


_NAMED: dict[str, Validator] = {
    "non-empty": _non_empty,
    "replicas": _throttled_replicas,
    "version": _version,
}
