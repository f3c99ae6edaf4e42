"""How long changes take.

Rule: from the request's arrival at the node that decided until the change was safe in the store; of
what was carried out only, since a refusal is quick.
"""

from collections import defaultdict

from ..page.charts import Panel, Series, lines_over_time
from ..page.drawing import Plot
from ..page.sheet import Column, Kind, Sheet, Value, duration, plural
from ..periods import Axis
from .facts import COUNT, MOST, Fact, Figure, rows
from .latencies import Latencies, bucket
from .question import Question
from .selection import Selection

FIGURES = (
    Column("changes", "Changes", Kind.COUNT, sums=True),
    Column("p50_us", "p50", Kind.MICROSECONDS),
    Column("p90_us", "p90", Kind.MICROSECONDS),
    Column("p99_us", "p99", Kind.MICROSECONDS),
    Column("slowest_us", "Slowest", Kind.MICROSECONDS),
)
"""As `Latencies.figures`."""
NOTE = (
    "From a request's arrival at the controller until the change was safe in the store; changes that were carried out. The way from the client, "
    "the way through a node that forwards, and the time until it found a controller come on top. Percentiles are exact to 1 %."
)
_WAYS = {"local": ("at the controller itself", "s0"), "forwarded": ("forwarded", "s1"), "unknown": ("not known", "s7")}


_LATENCIES = {"changes": COUNT, "slowest": Figure("max(latency_us)", MOST)}
_APPLIED = "rows WHERE outcome = 'applied'"
_BUCKET = f"{bucket('latency_us')} AS bucket"
BY_STEP = Fact("latencies_by_step", ("step", "way", _BUCKET), _LATENCIES, _APPLIED)
BY_OPERATION = Fact("latencies_by_operation", ("cluster_id", "operation", "way", _BUCKET), _LATENCIES, _APPLIED)


def durations(selection: Selection) -> Question:
    by_step = defaultdict[tuple[int, str], Latencies](Latencies)
    for step, way, start, changes, slowest in rows(selection.facts, "FROM latencies_by_step"):
        by_step[-1 if step is None else step, way].add(start, changes, slowest)
    by_operation = defaultdict[tuple[str, str, str], Latencies](Latencies)
    for cluster, operation, way, start, changes, slowest in rows(selection.facts, "FROM latencies_by_operation"):
        by_operation[cluster, operation, way].add(start, changes, slowest)
    axis = selection.axis
    over_time = Sheet(
        "durations_over_time",
        f"How long changes took, by {axis.step.name}",
        (Column("time", "From", Kind.TIME), Column("way", "Way", Kind.TEXT), *FIGURES),
        [
            (axis.starts[step], way, *latencies.figures)
            for (step, way), latencies in sorted(by_step.items())
            if step >= 0
        ],
    )
    by_kind = Sheet(
        "durations_by_operation",
        "How long changes took, by operation",
        (
            *(Column("cluster_id", "Cluster", Kind.NAME), Column("operation", "Operation", Kind.NAME)),
            *(Column("way", "Way", Kind.TEXT), *FIGURES),
        ),
        [(*key, *latencies.figures) for key, latencies in sorted(by_operation.items())],
    )
    by_way = {way: _sum([each for (_, _, one), each in by_operation.items() if one == way]) for way in _WAYS}
    return Question(
        "durations",
        "How long do changes take?",
        _answer(by_way),
        (by_kind,),
        lambda: _drawn(over_time, axis),
        note=NOTE,
        more=(over_time,),
    )


def _sum(parts: list[Latencies]) -> Latencies:
    return sum(parts, Latencies())


def _answer(by_way: dict[str, Latencies]) -> str:
    every = _sum(list(by_way.values()))
    if not every.count:
        return "No change was carried out."
    text = f"Half of {plural(every.count, 'change')} took at most {_told(every, 50)}, and 99 of 100 at most {_told(every, 99)}"
    if every.count == 1:
        return f"The only change took {_told(every, 50)}."
    parts = [
        f"{_told(by_way[way], 50)} and {_told(by_way[way], 99)} {where}"
        for way, where in (
            ("local", "if they arrived at the controller itself"),
            ("forwarded", "if they were forwarded"),
        )
        if by_way[way].count
    ]
    return f"{text}: {', '.join(parts)}." if len(parts) > 1 else f"{text}."


def _told(latencies: Latencies, percent: int) -> str:
    return duration(latencies.percentile(percent) or 0)


def _drawn(sheet: Sheet, axis: Axis) -> Plot | None:
    if not sheet.rows:
        return None
    series = []
    for way, (label, colour) in _WAYS.items():
        own = {row[0]: row for row in sheet.rows if row[1] == way}
        for name, percent, dashed in (("p50_us", "p50", False), ("p99_us", "p99", True)):
            values = [_value(own.get(start), sheet, name) for start in axis.starts[:-1]]
            if own:
                series.append(Series(f"{label}, {percent}", colour, values, dashed))
    title = f"Duration, by {axis.step.name}"
    return lines_over_time("durations", axis.starts, [Panel(title, series, duration, logarithmic=True)])


def _value(row: tuple[Value, ...] | None, sheet: Sheet, name: str) -> float | None:
    if row is None:
        return None
    value = row[[column.name for column in sheet.columns].index(name)]
    return None if value is None else max(float(value), 1.0)
