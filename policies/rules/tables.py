"""A table of a rule file, which is read key by key.

Rule: every mistake is noted with its position and reading goes on, so that all mistakes of a file
are reported at once. A file with a mistake is not used, so the value that is returned in place of a
faulty one does not matter.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from .matching import Match, MatchOfUser, PatternFault, any_match, any_match_of_user
from .positions import Path

DURATION = re.compile(r"(\d{1,6})(ms|s|m|h|d)", re.ASCII)
UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

KINDS: Mapping[type, str] = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    dict: "a table",
    list: "a list",
    float: "a decimal number",
}


class Noted(msgspec.Struct, frozen=True):
    """A mistake in a TOML table, with the path of the faulty key or value."""

    path: Path
    text: str
    character: int | None = None
    """The faulty character of the string at `path`."""
    is_doubt: bool = False
    """Whether it is a mistake in some clusters only, which is a warning."""


class TomlTable:
    """A TOML table. The keys that were asked for are known, and `finish` notes all others as
    mistakes.
    """

    def __init__(self, values: Mapping[str, Any], path: Path, mistakes: list[Noted]) -> None:
        self._values = values
        self.path = path
        self._mistakes = mistakes
        self._known: set[str] = set()

    def has(self, key: str) -> bool:
        return key in self._values

    def note(self, text: str, *steps: str | int, character: int | None = None) -> None:
        self._mistakes.append(Noted((*self.path, *steps), text, character))

    def doubt(self, text: str, *steps: str | int, character: int | None = None) -> None:
        """Note what is a mistake in some clusters only."""
        self._mistakes.append(Noted((*self.path, *steps), text, character, is_doubt=True))

    def finish(self) -> None:
        for key in self._values:
            if key not in self._known:
                near = get_close_matches(key, self._known, 1, 0.6)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(self._known))}"
                self.note(f"{key} is unknown; {hint}", key)

    def _get(self, key: str, kind: type, default: Any = None) -> Any:
        self._known.add(key)
        if key not in self._values:
            return default
        value = self._values[key]
        if type(value) is not kind:
            self.note(f"{key} is {_kind(value)}, but must be {KINDS[kind]}", key)
            return default
        return value

    def text(self, key: str) -> str | None:
        value: str | None = self._get(key, str)
        if value is not None and not value.strip():
            self.note(f"{key} is empty", key)
            return None
        return value

    def integer(self, key: str) -> int | None:
        value: int | None = self._get(key, int)
        if value is not None and abs(value) > 2**63 - 1:
            self.note(f"{key} is too large", key)
            return None
        return value

    def count(self, key: str, least: int = 0) -> int | None:
        value = self.integer(key)
        if value is not None and value < least:
            self.note(f"{key} is {value}, but must be at least {least}", key)
            return None
        return value

    def boolean(self, key: str) -> bool:
        return bool(self._get(key, bool, default=False))

    def texts(self, key: str) -> Sequence[str] | None:
        """Read a list of strings, or a single string."""
        self._known.add(key)
        value = self._values.get(key)
        if value is None or isinstance(value, str):
            return None if value is None else (value,)
        if not isinstance(value, list):
            self.note(f"{key} is {_kind(value)}, but must be a string or a list of strings", key)
            return None
        for index, item in enumerate(value):
            if not isinstance(item, str):
                self.note(f"{key} holds {_kind(item)}, but must hold strings", key, index)
        if not value:
            self.note(f"{key} is empty, so nothing can ever match", key)
        return tuple(item for item in value if isinstance(item, str)) or None

    def at(self, key: str, index: int) -> tuple[str | int, ...]:
        """Return the path of the `index`-th string of `texts(key)`, relative to the table."""
        return (key, index) if isinstance(self._values[key], list) else (key,)

    def choices(self, key: str, known: Collection[str]) -> Sequence[str] | None:
        chosen = self.texts(key)
        for index, item in enumerate(chosen or ()):
            if item not in known:
                near = get_close_matches(item, list(known), 1, 0.6)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
                self.note(f"{key} names {item!r}, which does not exist; {hint}", *self.at(key, index))
        return chosen

    def choice(self, key: str, known: Collection[str]) -> str | None:
        chosen = self.text(key)
        if chosen is not None and chosen not in known:
            self.note(f"{key} is {chosen!r}, but must be {' or '.join(known)}", key)
        return chosen

    def patterns(self, key: str, possible: Callable[[str], str | None]) -> Match | None:
        """Read a list of patterns; `possible` returns why nothing can ever match a pattern, or
        None.
        """
        patterns = self._good_patterns(key, possible)
        return None if patterns is None else any_match(patterns)

    def patterns_of_user(self, key: str, possible: Callable[[str], str | None]) -> MatchOfUser | None:
        """Read a list of patterns that may contain `{user}`; `possible` is as in `patterns`."""
        patterns = self._good_patterns(key, possible)
        return None if patterns is None else any_match_of_user(patterns)

    def _good_patterns(self, key: str, possible: Callable[[str], str | None]) -> Sequence[str] | None:
        patterns = self.texts(key)
        good = True
        for index, pattern in enumerate(patterns or ()):
            fault = possible(pattern)
            try:
                any_match_of_user([pattern])
            except PatternFault as bad:
                fault = str(bad)
            if fault is not None:
                good = False
                self.note(f"{key}: {pattern!r} {fault}", *self.at(key, index))
        return patterns if good else None

    def duration_ms(self, key: str) -> int | None:
        text = self.text(key)
        found = None if text is None else DURATION.fullmatch(text)
        if text is not None and found is None:
            self.note(f"{key} is {text!r}, but must be a number with ms, s, m, h or d, such as 12h", key)
        return None if found is None else int(found[1]) * UNITS_MS[found[2]]

    def table(self, key: str) -> "TomlTable | None":
        values = self._get(key, dict)
        return None if values is None else TomlTable(values, (*self.path, key), self._mistakes)

    def tables(self, key: str) -> "Sequence[TomlTable]":
        self._known.add(key)
        value = self._values.get(key, [])
        if isinstance(value, dict):
            return (TomlTable(value, (*self.path, key), self._mistakes),)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.note(f"{key} is {_kind(value)}, but must be tables: [[{key}]]", key)
            return ()
        return tuple(TomlTable(item, (*self.path, key, index), self._mistakes) for index, item in enumerate(value))

    def content(self, *without: str) -> str:
        """Return a text that tables share which have the same values besides those of some keys."""
        return repr(sorted((key, value) for key, value in self._values.items() if key not in without))

    def keys(self) -> Sequence[str]:
        self._known.update(self._values)
        return tuple(self._values)

    def raw(self, key: str) -> Any:
        self._known.add(key)
        return self._values.get(key)


def _kind(value: object) -> str:
    return KINDS.get(type(value), "a date or time")
