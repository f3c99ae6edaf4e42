"""The reigns of controllers as a plot: who was it when, and how long changes took around each
change.

Rule: many reigns are told by their number in each step of time, not by slivers.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..page.charts import Panel, Series, bars_over_time, decades, over_time, short_count
from ..page.drawing import COLOURS, REST, Form, Mark, Plot, axes, plot, series_colour
from ..page.sheet import Sheet, duration, plural, shortened
from ..periods import DAY
from .question import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_REIGNS = 200
_MOST_CLUSTERS = 6
_ROW = 44
_AROUND = 190


Reign = Mapping[str, Any]
"""A row of the table `reigns`: the times of one controller are in microseconds since 1970."""


def drawn(report: Report, step: int) -> Plot | None:
    """Plot the controllers of each cluster; nothing if none changed."""
    reigns: list[Reign] = report.facts.sql("FROM reigns ORDER BY cluster_id, epoch").to_arrow_table().to_pylist()
    changes = [reign["change"] for reign in reigns if reign["change"] is not None]
    starts, around = report.axis.starts, report.sheet("durations_around_controller_changes")
    if not changes:
        return None
    if len(reigns) > _MOST_REIGNS:
        values = [sum(begin <= change < end for change in changes) for begin, end in pairwise(starts)]
        panel = Panel("Changes of controllers", [Series("", "s0", values)], short_count)
        return bars_over_time("controllers", starts, panel)
    nodes = sorted({reign["node"] for reign in reigns})
    colours = {node: series_colour(index) for index, node in enumerate(nodes)}
    held = [list(found) for _, found in groupby(reigns, itemgetter("cluster_id"))][:_MOST_CLUSTERS]
    below = _AROUND if around.rows else 0
    timeline = _ROW * len(held) + 32

    def draw(figure: "Figure", form: Form) -> None:
        _draw_timeline(axes(figure, form, top=2, bottom=below + 24, left=1), held, colours)
        over_time(figure.axes[0], starts, form)
        if around.rows:
            title = "Durations around a change"
            _draw_around(axes(figure, form, title=title, top=timeline + 40, bottom=24, right=32), around, step)

    marks = [Mark(colours[node], f"node {node}") for node in nodes[:REST]]
    if len(nodes) > REST:
        marks.append(Mark(series_colour(REST), plural(len(nodes) - REST, "other node")))
    return plot("controllers", timeline + below, draw, legend=tuple(marks))


def _draw_timeline(ax: "Axes", held: Sequence[Sequence[Reign]], colours: dict[int, str]) -> None:
    ax.set_ylim(len(held), 0)
    ax.set_yticks([])
    ax.grid(visible=True, axis="x")
    for number, reigns in enumerate(held):
        if len(held) > 1:
            label = shortened(reigns[0]["cluster_id"], 40)
            ax.annotate(label, (0, number + 0.3), xycoords=("axes fraction", "data"), va="baseline")
        spans = [(reign["began"] / DAY, max(reign["ended"] - reign["began"], 0) / DAY) for reign in reigns]
        painted = [COLOURS[colours[reign["node"]]] for reign in reigns]
        ax.broken_barh(spans, (number + 0.42, 0.36), facecolors=painted, edgecolors=painted, linewidth=1.2)


def _draw_around(ax: "Axes", around: Sheet, step: int) -> None:
    seconds = [value + step / 2 for value in around.values("seconds")]
    for name, label, style in (("p50_us", "p50", "solid"), ("p99_us", "p99", (0, (4, 2)))):
        values = around.values(name)
        ax.plot(seconds, values, "o", color=COLOURS["ink"], linewidth=1.6, linestyle=style, markersize=3, clip_on=False)
        at = (seconds[-1], values[-1])
        ax.annotate(label, at, (5, 0), textcoords="offset points", va="center", annotation_clip=False)
    ax.axvline(0, color=COLOURS["bad"], linewidth=1)
    ax.set_xlim(-60, 60)
    ax.set_xticks([-60, -30, 0, 30, 60], ["\N{MINUS SIGN}60 s", "\N{MINUS SIGN}30 s", "change", "+30 s", "+60 s"])
    decades(ax, [*around.values("p50_us"), *around.values("p99_us")], duration)
