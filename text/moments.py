"""Moments as people type them: a date, a time, or how long ago.

Rule: what is no moment is refused with a sentence that shows one.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo

_AGO = re.compile(r"(\d{1,9})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment(text: str, zone: tzinfo | None = None) -> datetime:
    """Read a time: `2026-05-01`, `2026-05-01T12:30:00Z`, or `90m` for so long ago. Without a zone
    of its own it is in `zone`, or in that of this machine.

    Raises ValueError with a sentence.
    """
    try:
        if ago := _AGO.fullmatch(text):
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        when = datetime.fromisoformat(text)
        return when.astimezone() if when.tzinfo or zone is None else when.replace(tzinfo=zone)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is neither a time such as 2026-05-01T12:30:00Z nor an age such as 90m.") from None
