"""`[[change_window]]`: the days and hours in which changes are allowed.

Rule: the time is that of the request, so that a later replay gives the same verdict.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from .facts import Facts
from .rule import Rule, read_scope
from .tables import TomlTable
from .vocabulary import TIME

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
HOURS = re.compile(r"(\d{2}):(\d{2})-(\d{2}):(\d{2})", re.ASCII)
DAY_MINUTES = 24 * 60

Window = tuple[int, int]
"""Begin and end in minutes of the day, the end excluded. If the end is smaller, it is on the next
day.
"""


def read_change_window(table: TomlTable, name: str) -> Rule:
    """Read a `[[change_window]]`. A window that passes midnight belongs to the day on which it
    opens.
    """
    scope = read_scope(table, name)
    days = _days(table)
    windows = [_window(table, text, index) for index, text in enumerate(table.texts("hours") or ("00:00-24:00",))]
    zone = _zone(table)
    if not (table.has("days") or table.has("hours")):
        table.note("neither days nor hours is given")
    table.finish()

    def judge(facts: Facts) -> str | None:
        now = facts.time.astimezone(zone)
        if any(is_open(now, days, window) for window in windows if window is not None):
            return None
        return scope.message or f"{now:%a %H:%M} {zone.key} is outside of the change window."

    return scope.rule(judge, {TIME})


def is_open(now: datetime, days: frozenset[str], window: Window) -> bool:
    begin, end = window
    minute = now.hour * 60 + now.minute
    today, yesterday = DAYS[now.weekday()], DAYS[(now - timedelta(days=1)).weekday()]
    if begin < end:
        return today in days and begin <= minute < end
    return (today in days and minute >= begin) or (yesterday in days and minute < end)


def _days(table: TomlTable) -> frozenset[str]:
    chosen: set[str] = set()
    for index, text in enumerate(table.texts("days") or DAYS):
        first, dash, last = text.partition("-")
        if first not in DAYS or (dash and last not in DAYS):
            table.note(
                f"days has {text!r}, but takes {', '.join(DAYS)} and ranges such as mon-fri", *table.at("days", index)
            )
            continue
        begin, end = DAYS.index(first), DAYS.index(last if dash else first)
        chosen.update(DAYS[begin : end + 1] if begin <= end else DAYS[begin:] + DAYS[: end + 1])
    return frozenset(chosen)


def _window(table: TomlTable, text: str, index: int) -> Window | None:
    found = HOURS.fullmatch(text)
    times: Sequence[int] = [] if found is None else [int(part) for part in found.groups()]
    if not times or times[1] > 59 or times[3] > 59 or times[0] > 23 or times[2] * 60 + times[3] > DAY_MINUTES:
        table.note(f"hours has {text!r}, but takes times such as 09:00-17:00", *table.at("hours", index))
        return None
    window = times[0] * 60 + times[1], times[2] * 60 + times[3]
    if window[0] == window[1]:
        table.note(f"hours has {text!r}, a window that is never open", *table.at("hours", index))
    return window


def _zone(table: TomlTable) -> ZoneInfo:
    name = table.text("timezone") or "UTC"
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError; a folder of zones is an OSError
        table.note(f"timezone {name!r} is unknown; it is one of the tz database, such as Europe/Berlin", "timezone")
        return ZoneInfo("UTC")
