"""The question about durations: tasks count them in buckets, from which percentiles are computed
here.

A duration is the time from the request's arrival at the node that decided it until the store had
the change. A percentile is exact below 128 us and within 1 % above, whatever the division into
tasks.
"""

from ..page.charts import Panel, lines_over_time
from ..page.drawing import Plot, Series
from ..page.tables import duration, plural
from .aggregates import COUNT, Aggregate
from .question import Report, ReportQuestion
from .table_queries import TableQuery

COLUMNS = "changes p50_us p90_us p99_us slowest_us"
NOTE = (
    "From a request's arrival at the controller until the change was stored; only changes that were carried out. The way from the client, "
    "the way through a node that forwards, and the time until it found a controller are not included. Percentiles are exact to 1 %."
)
_WAYS = {"local": ("at the controller itself", "s0"), "forwarded": ("forwarded", "s1"), "unknown": ("not known", "s7")}
_BITS = 7
"""The leading bits that a bucket keeps: it is at most 1/64 as wide as where it begins."""


def _shift(value: str) -> str:
    return f"greatest(floor(log2(greatest({value}, 1)))::INTEGER - {_BITS - 1}, 0)"


def bucket(microseconds: str) -> str:
    """Return an expression for the beginning of the bucket of a value."""
    shift = _shift(microseconds)
    return f"((greatest({microseconds}, 0) >> {shift}) << {shift})"


def percentiles(keys: str, counted: str) -> str:
    """Return the query for the changes, percentiles and slowest of each group of buckets."""
    figures = (
        f"least(min(middle) FILTER (upto * 100 >= every * {percent}), max(slowest)) AS p{percent}_us"
        for percent in (50, 90, 99)
    )
    return f"""
        SELECT {keys}, sum(changes) AS changes, {", ".join(figures)}, max(slowest) AS slowest_us FROM (
            SELECT *, bucket + ((1::BIGINT << {_shift("bucket")}) - 1) // 2 AS middle,
                sum(changes) OVER (PARTITION BY {keys} ORDER BY bucket) AS upto, sum(changes) OVER (PARTITION BY {keys}) AS every
            FROM {counted}
        ) GROUP BY {keys}"""


LATENCIES = {"changes": COUNT, "slowest": "max(greatest(latency_us, 0))"}
_APPLIED = "rows WHERE outcome = 'applied'"
BUCKET = f"{bucket('latency_us')} AS bucket"
BY_STEP = Aggregate("latencies_by_step", ("step", "way", BUCKET), LATENCIES, _APPLIED)
BY_OPERATION = Aggregate("latencies_by_operation", ("cluster_id", "operation", "way", BUCKET), LATENCIES, _APPLIED)


def _answer(report: Report) -> str:
    every = percentiles("way", "(SELECT * REPLACE ('all' AS way) FROM latencies_by_operation)")
    by_way = f"{percentiles('way', 'latencies_by_operation')} UNION ALL BY NAME {every}"
    asked = report.aggregates.execute(f"SELECT way, changes, p50_us, p99_us FROM ({by_way})").fetchall()
    found = {way: figures for way, *figures in asked}
    if not found:
        return "No change was carried out."
    changes, half, most = found["all"]
    if changes == 1:
        return f"The only change took {duration(half)}."
    text = f"Half of {plural(changes, 'change')} took at most {duration(half)}, and 99 of 100 at most {duration(most)}"
    ways = {"local": "if they arrived at the controller itself", "forwarded": "if they were forwarded"}
    parts = [f"{duration(found[way][1])} and {duration(found[way][2])} {ways[way]}" for way in ways if way in found]
    return f"{text}: {', '.join(parts)}." if len(parts) > 1 else f"{text}."


def _drawn(report: Report) -> Plot | None:
    table, axis = report.table("durations_over_time"), report.axis
    series = []
    for way, (label, colour) in _WAYS.items():
        found = {row["time"]: row for row in table.records if row["way"] == way}
        for name in ("p50_us", "p99_us") if found else ():
            # a logarithmic axis has no place for 0
            values = [max(found[start][name], 1) if start in found else None for start in axis.starts[:-1]]
            series.append(Series(f"{label}, {name[:3]}", colour, values, "dashed" if name == "p99_us" else "solid"))
    panel = Panel(f"Duration, by {axis.step}", series, durations=True)
    return lines_over_time("durations", axis.starts, [panel]) if series else None


DURATIONS = ReportQuestion(
    "durations",
    "How long do changes take?",
    _answer,
    _drawn,
    (
        TableQuery(
            "durations_by_operation",
            "How long changes took, by operation",
            f"cluster_id operation way {COLUMNS}",
            percentiles("cluster_id, operation, way", "latencies_by_operation"),
            "cluster_id, operation, way",
        ),
        TableQuery(
            "durations_over_time",
            "How long changes took, by {step}",
            f"time way {COLUMNS}",
            percentiles("time, way", "(FROM latencies_by_step JOIN steps USING (step))"),
            "time, way",
            on_page=False,
        ),
    ),
    note=NOTE,
)
