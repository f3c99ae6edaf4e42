"""Parses times as people type them: a date, a date with a time, or an age.

Rule: the error message for an invalid time shows a valid one.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo

_AGO = re.compile(r"(\d{1,9})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


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
