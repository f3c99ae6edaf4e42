"""The plot of a back-test: when the candidate would have said something else.

Rule: it is drawn of the table of days and of nothing else. A few days far from all others, which a
wrong clock makes, are in the table only.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from ..page.charts import Panel, Series, bars_over_time, short_count
from ..page.drawing import Plot
from ..page.sheet import Sheet
from ..periods import DAY, Axis, Spread, axis, worth_showing

TITLE = "When the candidate differs"
COLOURS: Mapping[str, str] = {
    "newly_denied": "bad",
    "newly_allowed": "warn",
    "other_message": "s0",
    "recorded_broken": "s2",
    "broken": "s4",
    "timed_out": "s5",
    "moot": "s7",
}
"""Roles, by column."""


def over_time(days: Sheet) -> Plot | None:
    """Draw the table `by_day`; None if there is nothing to draw."""
    found = series_over_time(days)
    if found is None:
        return None
    steps, series = found
    return bars_over_time("differences", steps.starts, Panel(f"Requests, by {steps.step.name}", series, short_count))


def series_over_time(days: Sheet) -> tuple[Axis, list[Series]] | None:
    """Return a series for each kind of difference; None for fewer than two days, or without
    differences.
    """
    columns = [column for column in days.columns if column.name not in {"day", "requests"}]
    rows = [(start, row) for row in days.rows if (start := _start(str(row[0]))) is not None]
    if not columns or len(rows) < 2:
        return None
    first, last = worth_showing(Spread(start, start, int(row[-1] or 0)) for start, row in rows)
    steps = axis(first, last, finest=DAY)
    counts: dict[str, Counter[int]] = {column.name: Counter() for column in columns}
    for start, row in rows:
        for column, number in zip(columns, row[1:-1], strict=True):
            counts[column.name][steps.step.index(start) - steps.first] += int(number or 0)
    return steps, [
        Series(column.title, COLOURS[column.name], [counts[column.name][step] for step in range(steps.steps)])
        for column in columns
    ]


def _start(day: str) -> int | None:
    """Return the start of a day in microseconds since 1970; None for a day that no calendar has."""
    try:
        return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) * 1_000_000
    except ValueError:
        return None
