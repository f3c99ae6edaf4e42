"""The plots of a back-test: when the candidate would have said something else, and whom it would
have refused then.

Rule: they are drawn of the tables of days and of nothing else. A few days far from all others,
which a wrong clock makes, are in the table only.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from ..page.charts import Panel, Series, bars_over_time, short_count
from ..page.drawing import REST, Plot, series_colour
from ..page.sheet import Sheet, Value, plural, shortened
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
MOST_NAMES = REST
"""That have a colour of their own, beside one for all others."""

Row = Sequence[Value]


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
    steps = _axis(days)
    if not columns or steps is None:
        return None
    counts: dict[str, Counter[int]] = {column.name: Counter() for column in columns}
    for start, row in _dated(days):
        for column, number in zip(columns, row[1:-1], strict=True):
            counts[column.name][steps.step.index(start) - steps.first] += int(number or 0)
    return steps, [
        Series(column.title, COLOURS[column.name], [counts[column.name][step] for step in range(steps.steps)])
        for column in columns
    ]


def refusals_over_time(denied: Sheet, days: Sheet) -> Plot | None:
    """Draw what is newly denied by day and name, over the same time as the table `by_day`; None if
    there is nothing to draw.
    """
    found = refusal_series(denied, days)
    if found is None:
        return None
    steps, series = found
    return bars_over_time(denied.name, steps.starts, Panel(f"Refusals, by {steps.step.name}", series, short_count))


def refusal_series(denied: Sheet, days: Sheet) -> tuple[Axis, list[Series]] | None:
    """Return a series for each of the names with the most refusals, and one for all others."""
    steps = _axis(days)
    if steps is None or not denied.rows:
        return None
    totals = Counter[str]()
    for _, name, number in denied.rows:
        totals[str(name)] += int(number or 0)
    most = sorted(totals, key=lambda name: (-totals[name], name))[:MOST_NAMES]
    others = f"{plural(len(totals) - len(most), 'other')} together"
    counts: dict[str, Counter[int]] = {name: Counter() for name in (*most, others)}
    for start, (_, name, number) in _dated(denied):
        label = str(name) if name in most else others
        counts[label][steps.step.index(start) - steps.first] += int(number or 0)
    labels = most if len(most) == len(totals) else [*most, others]
    return steps, [
        Series(shortened(label, 60), series_colour(index), [counts[label][step] for step in range(steps.steps)])
        for index, label in enumerate(labels)
    ]


def _axis(days: Sheet) -> Axis | None:
    """Return the steps of the table `by_day`; None for fewer than two days."""
    rows = list(_dated(days))
    if len(rows) < 2:
        return None
    first, last = worth_showing(Spread(start, start, int(row[-1] or 0)) for start, row in rows)
    return axis(first, last, finest=DAY)


def _dated(days: Sheet) -> Iterator[tuple[int, Row]]:
    """Yield the rows of days that a calendar has, each with the day's start."""
    for row in days.rows:
        if (start := _start(str(row[0]))) is not None:
            yield start, row


def _start(day: str) -> int | None:
    """Return the start of a day in microseconds since 1970; None for a day that no calendar has."""
    try:
        return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) * 1_000_000
    except ValueError:
        return None
