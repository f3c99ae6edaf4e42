"""The kinds of plots that a page has: bars for names, bars and lines over time. They need no fine
print: names stand above their bars, figures beside them, and axes have few marks.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..periods import DAY
from .drawing import COLOURS, FONT_PIXELS, LINES, Plot, PlotSize, Series, axes, plot
from .tables import duration, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW = 40
"""The height of a bar with its name, in pixels."""
_TIMES = ["%Y", "%b", "%d %b", "%H:%M", "%H:%M", "%H:%M:%S"]
_FIRST_TIMES = ["%Y", "%Y", "%b", "%d %b", "%H:%M", "%H:%M"]
"""The formats of ticks at years, months, days, hours, minutes and seconds where something larger
begins; _TIMES has the others.
"""


@dataclass(frozen=True)
class Panel:
    """One of several plots over the same times."""

    title: str
    series: Sequence[Series]
    durations: bool = False
    """Whether values are microseconds, on a logarithmic axis; otherwise they are counts, from 0."""


def bars(name: str, labels: Sequence[str], series: Sequence[Series], said: Sequence[str], rest: str = "") -> Plot:
    """Plot a bar for each label, of a piece for each series, with a text at its end. `rest` tells
    of labels without a bar.
    """

    def draw(figure: "Figure", form: PlotSize) -> None:
        ax = axes(figure, form, left=1, right=1, top=2, bottom=28 if rest else 2)
        ax.set_axis_off()
        ends = [0.0] * len(labels)
        rows = [row + 0.66 for row in range(len(labels))]
        for part in series:
            widths = [value or 0 for value in part.values]
            ax.barh(rows, widths, 0.36, ends, linewidth=0.7, edgecolor=COLOURS["card"], color=COLOURS[part.colour])
            ends = [begin + width for begin, width in zip(ends, widths, strict=True)]
        longest = max([*ends, 1e-9])
        room = 1 - (max(map(len, said), default=0) * 0.62 * FONT_PIXELS + 12) / form.width
        ax.set_xlim(0, longest / room)
        ax.set_ylim(len(labels), 0)
        for row, label in enumerate(labels):
            ax.text(0, row + 0.38, shortened(label, form.letters), va="baseline")
            ax.text(ends[row] + longest * 0.012, row + 0.66, said[row], va="center_baseline", color=COLOURS["soft"])
        if rest:
            ax.text(0, len(labels) + 0.5, rest, va="baseline", color=COLOURS["soft"])

    height = 4 + _ROW * len(labels) + (26 if rest else 0)
    return plot(name, height, draw, legend=series)


def bars_over_time(name: str, starts: Sequence[int], panel: Panel) -> Plot:
    """Plot stacked bars over time; `starts` are those of all steps, in microseconds since 1970, and
    the end of the last.
    """
    series = panel.series

    def draw(figure: "Figure", size: PlotSize) -> None:
        from matplotlib.collections import PolyCollection

        ax = axes(figure, size, title=panel.title, top=30, bottom=24)
        days = [start / DAY for start in starts]
        below = [0.0] * (len(starts) - 1)
        for part in series:
            above = [low + (value or 0) for low, value in zip(below, part.values, strict=True)]
            corners = [
                ((begin, low), (begin, high), (end, high), (end, low))
                for (begin, end), low, high in zip(pairwise(days), below, above, strict=True)
                if high > low
            ]
            bars = PolyCollection(corners, facecolor=COLOURS[part.colour], edgecolor=COLOURS["card"], linewidth=0.5)
            ax.add_collection(bars, autolim=False)
            below = above
        over_time(ax, starts, size)
        upright(ax, max(below))

    return plot(name, 248, draw, legend=series)


def lines_over_time(name: str, starts: Sequence[int], panels: Sequence[Panel], *, at_ends: bool = False) -> Plot:
    """Plot panels of lines over time; a value is that of a step, or of its end if `at_ends`."""
    height = 190

    def draw(figure: "Figure", form: PlotSize) -> None:
        for number, panel in enumerate(panels):
            above = number * height
            below = (len(panels) - number - 1) * height
            ax = axes(figure, form, title=panel.title, top=above + 30, bottom=below + 24)
            _draw_lines(ax, starts, panel, at_ends=at_ends)
            over_time(ax, starts, form)

    lines = {part.label: part for panel in panels for part in panel.series}
    return plot(name, height * len(panels), draw, legend=tuple(lines.values()))


def _draw_lines(ax: "Axes", starts: Sequence[int], panel: Panel, *, at_ends: bool) -> None:
    xs = [(end if at_ends else (begin + end) / 2) / DAY for begin, end in pairwise(starts)]
    for part in panel.series:
        values = [math.nan if value is None else value for value in part.values]
        few = sum(value is not None for value in part.values) <= 2
        ax.plot(
            xs,
            values,
            color=COLOURS[part.colour],
            linewidth=1.8,
            linestyle=LINES[part.line],
            marker="o",
            markevery=None if few or len(xs) <= 31 else _alone(part.values),
            markersize=4 if few else 2.5,
            clip_on=False,
        )
    known = [value for part in panel.series for value in part.values if value is not None]
    if panel.durations:
        decades(ax, known)
    else:
        upright(ax, max(known, default=0))


def _alone(values: Sequence[float | None]) -> list[int]:
    """Return the positions of values that no line reaches, because there is none on either side."""
    around = [None, *values, None]
    return [at for at, value in enumerate(values) if value is not None and around[at] is around[at + 2] is None]


def over_time(ax: "Axes", starts: Sequence[int], form: PlotSize) -> None:
    """Put a few times below the axis, each as exact as the distance to the next."""
    from matplotlib import dates

    untyped: Any = dates
    ax.set_xlim(starts[0] / DAY, starts[-1] / DAY)
    locator = untyped.AutoDateLocator(minticks=form.ticks // 2 + 1, maxticks=form.ticks, tz="UTC")
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(
        untyped.ConciseDateFormatter(locator, "UTC", _TIMES, None, _FIRST_TIMES, show_offset=False)
    )


def upright(ax: "Axes", highest: float) -> None:
    """Scale a vertical axis of counts from 0, with few lines."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    ax.set_ylim(0, highest * 1.05 or 1)
    ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.yaxis.set_major_formatter(EngFormatter(sep=""))


def decades(ax: "Axes", values: Sequence[float]) -> None:
    """Scale an axis of durations logarithmically, ten times as much with each line."""
    from matplotlib.ticker import FixedLocator, NullLocator

    positive = [value for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)) + 1e-9)
    high = max(high, low + 1)
    ax.set_yscale("log")
    ax.set_ylim(10.0**low, 10.0**high)
    every = max(1, math.ceil((high - low) / 5))
    ax.yaxis.set_major_locator(FixedLocator([10.0**power for power in range(low, high + 1, every)]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda value, _: duration(value))
