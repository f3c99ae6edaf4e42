"""The patterns of topics and principals: exact names, globs, and regular expressions between
slashes.

Rule: matching takes time in proportion to the length of the name, whatever the name is. Regular
expressions, and globs too, are evaluated by RE2, which never backtracks. `{user}` in a pattern
stands for the name of the client's user, taken literally.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import re2

MAX_PATTERN = 1_000
"""The longest pattern, in characters."""
MAX_KEPT = 1_024
"""How many compiled patterns are cached."""

SPECIAL = re.compile(r"[*?]")
USER = "{user}"
PARTS_OF_A_GLOB = re.compile(r"([*?]|\{user\})")
GLOBS = {"*": ".*", "?": "."}

Match = Callable[[str], bool]
MatchOfUser = Callable[[str, Callable[[], str | None]], bool]
"""Whether a name matches for a user. The second argument returns the user's name, and is called
only for a pattern with `{user}`, which matches nothing without a name.
"""


class PatternFault(Exception):  # noqa: N818 - it is what is wrong with a pattern
    """A pattern cannot be used. The message is a sentence without its subject."""


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


@lru_cache(maxsize=MAX_KEPT)
def compiled_regex(pattern: str) -> Any:
    """Compile a regular expression that matches bytes of UTF-8, which is faster than str. Raises
    re2.error.
    """
    if len(pattern) > MAX_PATTERN:
        raise re2.error(f"longer than {MAX_PATTERN} characters")
    try:
        return re2.compile(pattern.encode(), _options())
    except UnicodeEncodeError:
        raise re2.error("not valid Unicode") from None


@lru_cache(maxsize=MAX_KEPT)
def full_match(pattern: str, user: str | None = None) -> Match:
    """Return a function that matches whole names with a regular expression. Raises PatternFault."""
    if user is not None:
        pattern = pattern.replace(USER, _escaped(user))
    try:
        search = compiled_regex(rf"\A(?:{pattern})\z").search
        compiled_regex(pattern)  # parentheses that close ours are a mistake, too
    except re2.error as error:
        text = error.args[0]
        raise PatternFault(
            f"is a bad regular expression: {text.decode('utf-8', 'replace') if isinstance(text, bytes) else text}"
        ) from None
    return lambda text: search(text.encode("utf-8", "replace")) is not None


@lru_cache(maxsize=MAX_KEPT)
def pattern_match(pattern: str, user: str | None = None) -> Match:
    """Return a function that matches an exact name, a glob or a /regular expression/. Raises
    PatternFault.
    """
    if not pattern:
        raise PatternFault("is empty and matches nothing")
    if len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/"):
        return full_match(pattern[1:-1], user)
    prefix, rest = _beginning(pattern, user)
    if not rest:
        return lambda text: text == prefix
    if _takes_all(rest):
        return lambda text: text.startswith(prefix)
    signs = "".join(GLOBS[text] if is_sign else _escaped(text) for text, is_sign in rest)
    return full_match(f"(?s:{_escaped(prefix)}{signs})")


@lru_cache(maxsize=MAX_KEPT)
def literal_prefix(pattern: str, user: str | None = None) -> tuple[str, bool]:
    """Return the longest literal prefix of a pattern's matches, and whether every name with this
    prefix matches.
    """
    if pattern.startswith("/"):
        return "", False
    prefix, rest = _beginning(pattern, user)
    return prefix, bool(rest) and _takes_all(rest)


Part = tuple[str, bool]
"""A part of a glob, and whether it is a sign such as `*` and not literal text."""


def _beginning(pattern: str, user: str | None) -> tuple[str, list[Part]]:
    """Return the literal prefix of a glob, and the parts after it. The name of the user is literal
    even if it contains signs of a glob.
    """
    parts = [
        (user, False) if text == USER and user is not None else (text, text in GLOBS)
        for text in PARTS_OF_A_GLOB.split(pattern)
        if text
    ]
    first = next((place for place, (_, is_sign) in enumerate(parts) if is_sign), len(parts))
    return "".join(text for text, _ in parts[:first]), parts[first:]


def _takes_all(rest: Sequence[Part]) -> bool:
    return all(text == "*" and is_sign for text, is_sign in rest)


def _escaped(text: str) -> str:
    return "".join(
        character if character.isalnum() or character == "_" else f"\\x{{{ord(character):x}}}" for character in text
    )


def any_match_of_user(patterns: Sequence[str]) -> MatchOfUser:
    """Return a function that returns whether one of the patterns, which may contain `{user}`,
    matches. Raises PatternFault.
    """
    plain = [pattern for pattern in patterns if USER not in pattern]
    own = [pattern for pattern in patterns if USER in pattern]
    match: Match = any_match(plain) if plain else lambda _text: False
    if not own:
        return lambda text, _user: match(text)
    for pattern in own:
        pattern_match(pattern, "user")

    def match_of_user(text: str, user: Callable[[], str | None]) -> bool:
        if match(text):
            return True
        name = user()
        return name is not None and any(pattern_match(pattern, name)(text) for pattern in own)

    return match_of_user


def any_match(patterns: Sequence[str]) -> Match:
    """Return a function that returns whether one of the patterns matches. Raises PatternFault."""
    exact = frozenset(pattern for pattern in patterns if not SPECIAL.search(pattern) and not pattern.startswith("/"))
    others = [pattern_match(pattern) for pattern in patterns if pattern not in exact or not pattern]
    if not others:
        return exact.__contains__
    if len(others) == 1 and not exact:
        return others[0]
    return lambda text: text in exact or any(match(text) for match in others)
