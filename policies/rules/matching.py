"""Which topics and principals a rule is about: exact names, globs, and regular expressions between slashes.

Rule: whatever a stranger calls his topic, to match it takes time in proportion to its length. Regular expressions are RE2's, which
never goes back; a glob is one as well.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import re2

MAX_PATTERN = 1_000
"""Characters."""

SPECIAL = re.compile(r"[*?]")

Match = Callable[[str], bool]


class PatternFault(Exception):  # noqa: N818 - it is what is wrong with a pattern
    """In a sentence without its subject."""


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


@lru_cache(maxsize=1024)
def compiled_regex(pattern: str) -> Any:
    """For text as UTF-8, which it would be made into anyway, and back for places that nobody wants. Raises re2.error."""
    if len(pattern) > MAX_PATTERN:
        raise re2.error(f"longer than {MAX_PATTERN} characters")
    try:
        return re2.compile(pattern.encode(), _options())
    except UnicodeEncodeError:
        raise re2.error("not valid Unicode") from None


def full_match(pattern: str) -> Match:
    """Whether all of a text matches the regular expression. Raises PatternFault."""
    try:
        search = compiled_regex(rf"\A(?:{pattern})\z").search
        compiled_regex(pattern)  # brackets that close ours are a mistake too
    except re2.error as error:
        text = error.args[0]
        raise PatternFault(
            f"is a bad regular expression: {text.decode('utf-8', 'replace') if isinstance(text, bytes) else text}"
        ) from None
    return lambda text: search(text.encode("utf-8", "replace")) is not None


def pattern_match(pattern: str) -> Match:
    """Of an exact name, a glob or a /regular expression/. Raises PatternFault."""
    if not pattern:
        raise PatternFault("is empty and matches nothing")
    if len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/"):
        return full_match(pattern[1:-1])
    if not SPECIAL.search(pattern):
        return lambda text: text == pattern
    if pattern.strip("*") == "":
        return lambda _text: True
    if pattern.endswith("*") and not SPECIAL.search(pattern[:-1]):
        prefix = pattern[:-1]
        return lambda text: text.startswith(prefix)
    parts = ({"*": ".*", "?": "."}.get(character, re.escape(character)) for character in pattern)
    return full_match(f"(?s:{''.join(parts)})")


def literal_prefix(pattern: str) -> tuple[str, bool]:
    """What every text that `pattern_match` takes begins with, and whether every text that begins so is taken."""
    if pattern.startswith("/"):
        return "", False
    special = SPECIAL.search(pattern)
    if special is None:
        return pattern, False
    return pattern[: special.start()], pattern[special.start() :].strip("*") == ""


def any_match(patterns: Sequence[str]) -> Match:
    """Whether one of them matches. Raises PatternFault."""
    exact = frozenset(pattern for pattern in patterns if not SPECIAL.search(pattern) and not pattern.startswith("/"))
    others = [pattern_match(pattern) for pattern in patterns if pattern not in exact or not pattern]
    if not others:
        return exact.__contains__
    if len(others) == 1 and not exact:
        return others[0]
    return lambda text: text in exact or any(match(text) for match in others)
