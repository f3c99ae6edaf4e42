"""The plots of a back-test: when the candidate would have said something else, and whom it would
have refused then.

They are drawn of the tables of days and of nothing else. A few days far from all others, which a
wrong clock makes, are in the table only.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date

from ..page.charts import Panel, bars_over_time
from ..page.drawing import REST, Plot, Series, series_colour
from ..page.tables import ReportTable, plural, shortened
from ..periods import DAY, Axis, Spread, axis, worth_showing

COLOURS: Mapping[str, str] = {
    "newly_denied": "bad",
    "newly_allowed": "warn",
    "other_message": "s0",
    "recorded_broken": "s2",
    "broken": "s4",
    "timed_out": "s5",
    "moot": "s7",
}
"""The roles of the colours, by column."""
MOST_NAMES = REST
"""How many names have a colour of their own, beside one for all others."""

Drawn = tuple[Axis, list[Series]] | None
"""The axis and the series of a plot; None for fewer than two days, or without differences."""


def plotted(name: str, title: str, drawn: Drawn) -> Plot | None:
    if drawn is None:
        return None
    steps, series = drawn
    return bars_over_time(name, steps.starts, Panel(f"{title}, by {steps.step}", series))


def differences_over_time(days: ReportTable) -> Drawn:
    """Return a series for each kind of difference in the table `by_day`."""
    kinds = [column for column in days.columns if column.name in COLOURS]
    counts = [(row["day"], kind.title, row[kind.name]) for row in days.records for kind in kinds]
    return _series(days, counts, {kind.title: COLOURS[kind.name] for kind in kinds})


def refusals_over_time(denied: ReportTable, days: ReportTable) -> Drawn:
    """Return a series for each of the names with the most refusals, and one for all others, over
    the same time as the table `by_day`.
    """
    totals = Counter[str]()
    for _, name, number in denied.rows:
        totals[name] += number
    most = sorted(totals, key=lambda name: (-totals[name], name))[:MOST_NAMES]
    others = f"{plural(len(totals) - len(most), 'other')} together"
    counts = [(day, name if name in most else others, number) for day, name, number in denied.rows]
    labels = most if len(most) == len(totals) else [*most, others]
    return _series(days, counts, {label: series_colour(index) for index, label in enumerate(labels)})


def _series(days: ReportTable, counts: Iterable[tuple[str, str, int]], colours: Mapping[str, str]) -> Drawn:
    """Add up counts of (day, label, number) by step, as a series for each label."""
    asked = [Spread(start, start, row[-1]) for row in days.rows if (start := _start(row[0])) is not None]
    if len(asked) < 2 or not colours:
        return None
    steps = axis(*worth_showing(asked), finest="day")
    found = Counter[tuple[str, int]]()
    for day, label, number in counts:
        if (start := _start(day)) is not None:
            found[label, bisect_right(steps.starts, start) - 1] += number
    return steps, [
        Series(shortened(label, 60), colour, [found[label, step] for step in range(steps.steps)])
        for label, colour in colours.items()
    ]


def _start(day: str) -> int | None:
    """Return the start of a day in microseconds since 1970; None for a day that no calendar has."""
    try:
        return (date.fromisoformat(day) - date(1970, 1, 1)).days * DAY
    except ValueError:
        return None
