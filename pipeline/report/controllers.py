"""The question about changes of controllers, and how long requests took around them.

A controller changes where an epoch begins and the previous epoch is in the tables, too. The time
between the last event of one controller and the first of the next is by their own clocks, and may
be negative.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from statistics import median_low
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..page.charts import Panel, bars_over_time, decades, over_time
from ..page.drawing import COLOURS, LINES, REST, Plot, PlotSize, Series, axes, plot, series_colour
from ..page.tables import ReportTable, duration, plural, shortened
from ..periods import DAY, SECOND
from .aggregates import Aggregate
from .durations import BUCKET, COLUMNS, LATENCIES, percentiles
from .question import Report, ReportQuestion, times
from .selection import Selection
from .table_queries import TableQuery

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEAR, STEP = 60, 5
"""How many seconds before and after a change are looked at, and in steps of how many."""
MOST_EPOCHS, MOST_CLUSTERS = 200, 6
"""How many epochs, and how many clusters, are drawn one by one."""
ROW, AROUND = 44, 190
"""The height of a cluster's controllers, and of the durations, in pixels."""

ControllerEpoch = Mapping[str, Any]
"""A row of the table `epochs`: the times of one controller are in microseconds since 1970."""

_SINCE, _UNTIL = f"(time - change) / {SECOND}", f"(time - next_change) / {SECOND}"
NEAR_CHANGES = Aggregate(
    "near_changes",
    ("cluster_id", "epoch", f"(floor(distance / {STEP}) * {STEP})::INTEGER AS seconds", BUCKET),
    LATENCIES,
    f"""(
        SELECT *, CASE WHEN {_SINCE} >= 0 AND {_SINCE} < {NEAR} THEN {_SINCE} WHEN {_UNTIL} >= -{NEAR} AND {_UNTIL} < 0 THEN {_UNTIL} END
            AS distance
        FROM rows JOIN positions USING (cluster_id, epoch) WHERE outcome = 'applied'
    ) WHERE distance IS NOT NULL""",
)
"""The changes that were carried out near a change of controllers, by the seconds from it."""
_POSITIONS = "SELECT cluster_id, epoch, change, next_change FROM epochs WHERE coalesce(change, next_change) IS NOT NULL"


def find_controller_epochs(selection: Selection) -> pa.Table:
    """Make the table `epochs` of the controller epochs that overlap the period, each with the one
    before it in its cluster; and return which positions are near a change of controllers: when each
    epoch began, if another one was before it, and when the next one did.
    """
    selection.aggregates.execute(f"""
        CREATE TABLE epochs AS SELECT * EXCLUDE (is_within), lag(node) OVER clusters AS node_before, began - lag(ended) OVER clusters AS silence_us,
            CASE WHEN node_before IS NOT NULL THEN began END AS change, lead(CASE WHEN is_within THEN began END) OVER clusters AS next_change
        FROM (
            SELECT *, {selection.within("began", "ended")} AS is_within
            FROM (SELECT * REPLACE (epoch_us(began) AS began, epoch_us(ended) AS ended) FROM controller_epochs)
        ) WINDOW clusters AS (PARTITION BY cluster_id ORDER BY epoch) QUALIFY is_within
    """)
    return selection.aggregates.sql(_POSITIONS).to_arrow_table()


def _answer(report: Report) -> str:
    epochs = report.aggregates.execute("SELECT cluster_id, node, silence_us FROM epochs ORDER BY ALL").fetchall()
    changes = [epoch for epoch in epochs if epoch[2] is not None]
    if not epochs:
        return "The log has no events of controllers."
    if not changes and len(epochs) == 1:
        return f"It did not change: node {epochs[0][1]} was the controller."
    if not changes:
        return "No controller changed."
    clusters = {cluster for cluster, _, _ in epochs}
    node, most = min(Counter(node for _, node, _ in changes).items(), key=lambda item: (-item[1], item[0]))
    silences = [silence for _, _, silence in changes]
    text = f"The controller changed {times(len(changes))}"
    affected = len({cluster for cluster, _, silence in epochs if silence is not None})
    if len(clusters) > 1:
        text += f" in {affected}{f' of {len(clusters)}' if affected < len(clusters) else ''} clusters"
    else:
        text += f"; node {node} took over {times(most)}"
    text += (
        f". From the last event of one to the first of the next, {duration(median_low(silences))} passed in the median and "
        f"{duration(max(silences))} at most."
    )
    if behind := sum(silence < 0 for silence in silences):
        text += f" {times(behind).capitalize()} the clock of the next was behind."
    by_side = percentiles("is_after", "(SELECT *, seconds >= 0 AS is_after FROM near_changes)")
    found = report.aggregates.execute(f"SELECT is_after, changes, p50_us, p99_us FROM ({by_side})").fetchall()
    rates = {
        is_after: f"{plural(number, 'change')} took {duration(p50)} at p50 and {duration(p99)} at p99"
        for is_after, number, p50, p99 in found
    }
    if True in rates:
        text += f" In the minute after a change, {rates[True]}" + (
            f"; before, {rates[False]}." if False in rates else "."
        )
    return text


def _drawn(report: Report) -> Plot | None:
    """Plot the controllers of each cluster, and how long changes took around each change; nothing
    if none changed. Many are shown by their number in each step of time, not by slivers.
    """
    epochs: list[ControllerEpoch] = (
        report.aggregates.sql("FROM epochs ORDER BY cluster_id, epoch").to_arrow_table().to_pylist()
    )
    changes = [epoch["change"] for epoch in epochs if epoch["change"] is not None]
    starts, around = report.axis.starts, report.table("durations_around_controller_changes")
    if not changes:
        return None
    if len(epochs) > MOST_EPOCHS:
        values = [sum(begin <= change < end for change in changes) for begin, end in pairwise(starts)]
        panel = Panel("Changes of controllers", [Series("", "s0", values)])
        return bars_over_time("controllers", starts, panel)
    nodes = sorted({epoch["node"] for epoch in epochs})
    colours = {node: series_colour(index) for index, node in enumerate(nodes)}
    held = [list(found) for _, found in groupby(epochs, itemgetter("cluster_id"))][:MOST_CLUSTERS]
    below = AROUND if around.rows else 0
    timeline = ROW * len(held) + 32

    def draw(figure: "Figure", form: PlotSize) -> None:
        _draw_timeline(axes(figure, form, top=2, bottom=below + 24, left=1), held, colours)
        over_time(figure.axes[0], starts, form)
        if around.rows:
            title = "Durations around a change"
            _draw_around(axes(figure, form, title=title, top=timeline + 40, bottom=24, right=32), around)

    legend = [Series(f"node {node}", colours[node]) for node in nodes[:REST]]
    if len(nodes) > REST:
        legend.append(Series(plural(len(nodes) - REST, "other node"), series_colour(REST)))
    return plot("controllers", timeline + below, draw, legend=legend)


def _draw_timeline(ax: "Axes", held: Sequence[Sequence[ControllerEpoch]], colours: dict[int, str]) -> None:
    ax.set_ylim(len(held), 0)
    ax.set_yticks([])
    ax.grid(visible=True, axis="x")
    for number, epochs in enumerate(held):
        if len(held) > 1:
            label = shortened(epochs[0]["cluster_id"], 40)
            ax.annotate(label, (0, number + 0.3), xycoords=("axes fraction", "data"), va="baseline")
        spans = [(epoch["began"] / DAY, max(epoch["ended"] - epoch["began"], 0) / DAY) for epoch in epochs]
        painted = [COLOURS[colours[epoch["node"]]] for epoch in epochs]
        ax.broken_barh(spans, (number + 0.42, 0.36), facecolors=painted, edgecolors=painted, linewidth=1.2)


def _draw_around(ax: "Axes", around: ReportTable) -> None:
    seconds = [value + STEP / 2 for value in around.values("seconds")]
    for name, line in (("p50_us", LINES["solid"]), ("p99_us", LINES["dashed"])):
        values = around.values(name)
        ax.plot(seconds, values, "o", color=COLOURS["ink"], linewidth=1.6, linestyle=line, markersize=3, clip_on=False)
        at = (seconds[-1], values[-1])
        ax.annotate(name[:3], at, (5, 0), textcoords="offset points", va="center", annotation_clip=False)
    ax.axvline(0, color=COLOURS["bad"], linewidth=1)
    ax.set_xlim(-60, 60)
    ax.set_xticks([-60, -30, 0, 30, 60], ["\N{MINUS SIGN}60 s", "\N{MINUS SIGN}30 s", "change", "+30 s", "+60 s"])
    decades(ax, [*around.values("p50_us"), *around.values("p99_us")])


CONTROLLERS = ReportQuestion(
    "controllers",
    "When did controllers change, and how long did changes wait?",
    _answer,
    _drawn,
    (
        TableQuery(
            "controller_changes",
            "Changes of controllers, the newest first",
            "cluster_id epoch began node_before node silence_us events missing first_minute slowest_us",
            "SELECT * REPLACE (coalesce(first_minute, 0) AS first_minute) FROM epochs LEFT JOIN (SELECT cluster_id, epoch, "
            "sum(changes) AS first_minute, max(slowest) AS slowest_us FROM near_changes WHERE seconds >= 0 GROUP BY ALL) "
            "USING (cluster_id, epoch) WHERE node_before IS NOT NULL",
            "began DESC, cluster_id, epoch",
            {"slowest_us": "Slowest of these"},
        ),
        TableQuery(
            "durations_around_controller_changes",
            "How long changes took, before and after a change of controllers",
            f"seconds {COLUMNS}",
            percentiles("seconds", "near_changes"),
            "seconds",
        ),
    ),
    note="The time without events is from the last event of one controller to the first of the next, by their clocks; without requests "
    "it says little. Durations count from a request's arrival at the controller that decided it.",
)
