"""The reigns of controllers as a plot: who was it when, and how long changes took around each
change.

Rule: many reigns are told by their number in each step of time, not by slivers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ..page.charts import Panel, Series, bars_over_time, decades, over_time, short_count
from ..page.drawing import COLOURS, REST, Form, Mark, Plot, axes, plot, series_colour
from ..page.sheet import Sheet, duration, plural, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_REIGNS = 200
_MOST_CLUSTERS = 6
_ROW = 44
_AROUND = 190
_DAY = 86_400_000_000


@dataclass(frozen=True)
class Reign:
    """The time of one controller, in microseconds since 1970."""

    cluster_id: str
    epoch: int
    node: int
    began: int
    ended: int
    events: int
    missing: int
    before: "Reign | None"
    """The one before it in its cluster."""

    @property
    def silence(self) -> int | None:
        """Microseconds from the last event of the controller before to the first of this one."""
        return self.began - self.before.ended if self.before else None


def drawn(reigns: Sequence[Reign], around: Sheet, starts: Sequence[int], step: int) -> Plot | None:
    """Plot the controllers of a cluster; nothing if none changed."""
    changes = [reign for reign in reigns if reign.before]
    if not changes:
        return None
    if len(reigns) > _MOST_REIGNS:
        return _numbers(changes, starts)
    clusters = list(dict.fromkeys(reign.cluster_id for reign in reigns))
    nodes = sorted({reign.node for reign in reigns})
    colours = {node: series_colour(index) for index, node in enumerate(nodes)}
    rows = [[reign for reign in reigns if reign.cluster_id == cluster] for cluster in clusters[:_MOST_CLUSTERS]]
    below = _AROUND if around.rows else 0
    timeline = _ROW * len(rows) + 32

    def draw(figure: "Figure", form: Form) -> None:
        _draw_timeline(axes(figure, form, top=2, bottom=below + 24, left=1), rows, colours)
        over_time(figure.axes[0], starts, form)
        if around.rows:
            _draw_around(axes(figure, form, top=timeline + 40, bottom=24, right=32), around, step)

    marks = [Mark(colours[node], f"node {node}") for node in nodes[:REST]]
    if len(nodes) > REST:
        marks.append(Mark(series_colour(REST), plural(len(nodes) - REST, "other node")))
    return plot("controllers", timeline + below, draw, legend=tuple(marks))


def _numbers(changes: Sequence[Reign], starts: Sequence[int]) -> Plot:
    values = [sum(begin <= reign.began < end for reign in changes) for begin, end in pairwise(starts)]
    title = "Changes of controllers"
    return bars_over_time("controllers", starts, Panel(title, [Series(title, "s0", values)], short_count))


def _draw_timeline(ax: "Axes", rows: Sequence[Sequence[Reign]], colours: dict[int, str]) -> None:
    ax.set_ylim(len(rows), 0)
    ax.set_yticks([])
    ax.grid(visible=True, axis="x")
    for number, reigns in enumerate(rows):
        if len(rows) > 1:
            label = shortened(reigns[0].cluster_id, 40)
            ax.annotate(label, (0, number + 0.3), xycoords=("axes fraction", "data"), va="baseline")
        for reign in reigns:
            width = max(reign.ended - reign.began, 0) / _DAY
            ax.barh(
                number + 0.6,
                width,
                0.36,
                reign.began / _DAY,
                color=COLOURS[colours[reign.node]],
                edgecolor=COLOURS[colours[reign.node]],
                linewidth=1.2,
            )


def _draw_around(ax: "Axes", around: Sheet, step: int) -> None:
    seconds = [value + step / 2 for value in around.values("seconds")]
    ax.set_title("Durations around a change", x=0, pad=10)
    for name, label, style in (("p50_us", "p50", "solid"), ("p99_us", "p99", (0, (4, 2)))):
        values = around.values(name)
        ax.plot(seconds, values, "o", color=COLOURS["ink"], linewidth=1.6, linestyle=style, markersize=3, clip_on=False)
        at = (seconds[-1], values[-1])
        ax.annotate(label, at, (5, 0), textcoords="offset points", va="center", annotation_clip=False)
    ax.axvline(0, color=COLOURS["bad"], linewidth=1)
    ax.set_xlim(-60, 60)
    ax.set_xticks([-60, -30, 0, 30, 60], ["\N{MINUS SIGN}60 s", "\N{MINUS SIGN}30 s", "change", "+30 s", "+60 s"])
    decades(ax, [*around.values("p50_us"), *around.values("p99_us")], duration)
