"""Text for people and from people: escaping for a terminal, plurals, and times as people type them.

Rule: names in a cluster may contain anything, so every unprintable character is escaped, including
terminal control sequences, bidirectional marks and line ends. Every number that may be 1 gets its
noun from here. The error message for an invalid time shows a valid one.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo

_AGO = re.compile(r"(\d{1,9})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def escaped(text: str) -> str:
    """Return the text with escapes in place of characters that are not printable."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape", "backslashreplace").decode()


def noun(number: int, one: str, many: str | None = None) -> str:
    """Return a noun, or another word, in the form for the number. `many` is its plural if that is
    not made by adding an s.
    """
    return one if number == 1 else many or one + "s"


def plural(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {noun(number, one, many)}"


def parse_time(text: str, zone: tzinfo | None = None) -> datetime:
    """Parse `2026-05-01`, `2026-05-01T12:30:00Z`, or an age such as `90m`, in s, m, h or d. A time
    without a time zone is in `zone`, or in the zone of this machine if there is none.

    Raises ValueError with a sentence.
    """
    try:
        if ago := _AGO.fullmatch(text):
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        when = datetime.fromisoformat(text)
        return when.astimezone() if when.tzinfo or zone is None else when.replace(tzinfo=zone)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is neither a time such as 2026-05-01T12:30:00Z nor an age such as 90m.") from None
