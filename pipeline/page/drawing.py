"""Plots as SVG within a page: matplotlib draws, and what it drew is made to fit in.

A plot takes its colours and its font from the page's style sheet, so that it is dark where the page
is. It is drawn twice, for wide and for narrow, so that its letters are as large as those around it;
nothing in its texts means anything, and the same input gives the same bytes.
"""

import io
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SERIES = 8
"""How many colours of series there are, the last of which is for all that is left."""
REST = SERIES - 1

_ROLES = ("ink", "soft", "line", "card", "good", "bad", "warn", *(f"s{number}" for number in range(SERIES)))
COLOURS = {role: f"#0000{index:02x}" for index, role in enumerate(_ROLES, start=0x11)}
"""Marks that plots are drawn with; the style sheet's names of colours take their places."""

_NAMES = {mark: role for role, mark in COLOURS.items()}
_XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
_POINTS = 72


@dataclass(frozen=True)
class PlotSize:
    """How wide a plot is drawn, in the page's pixels."""

    name: str
    width: int
    ticks: int
    """How many labels of times fit side by side."""
    letters: int
    """How many letters fit above a bar."""


PLOT_SIZES = (PlotSize("wide", 880, 8, 100), PlotSize("narrow", 340, 4, 40))
FONT_PIXELS = 12.5
LINES: Mapping[str, Any] = {"solid": "solid", "dashed": (0, (4, 2))}


@dataclass(frozen=True)
class Series:
    """Values in one of COLOURS; in the legend if there is a label. None draws nothing."""

    label: str
    colour: str
    values: Sequence[float | None] = ()
    line: str = ""
    """The style of the line, one of LINES; empty for what is drawn as an area."""


@dataclass(frozen=True)
class Plot:
    wide: str
    """The wide plot as an element of SVG, escaped."""
    narrow: str
    legend: Sequence[Series]


Draw = Callable[["Figure", PlotSize], None]


def series_colour(index: int) -> str:
    return f"s{min(index, REST)}"


def plot(name: str, height: float, draw: Draw, *, legend: Sequence[Series]) -> Plot:
    """Draw a plot in each form by `draw`, which gets an empty figure; the height is in the page's
    pixels, and what has no label is not in the legend.
    """
    wide, narrow = (_svg(f"{name}-{form.name}", form, height, draw) for form in PLOT_SIZES)
    return Plot(wide, narrow, [series for series in legend if series.label])


def axes(
    figure: "Figure", form: PlotSize, *, top: float, bottom: float, left: float = 46, right: float = 18, title: str = ""
) -> "Axes":
    """Add axes with edges in the page's pixels from the figure's, whatever the fonts."""
    width, height = form.width, figure.get_figheight() * _POINTS
    edges = left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height
    added = figure.add_axes(edges)
    added.set_title(title, x=0, pad=10)
    return added


def _svg(name: str, form: PlotSize, height: float, draw: Draw) -> str:
    import matplotlib.style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it speaks of fonts that the browser does not need
    with matplotlib.style.context(["default", _style(name)]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of glyphs that its own font lacks: the browser has others
        figure = Figure(figsize=(form.width / _POINTS, height / _POINTS))
        FigureCanvasSVG(figure)
        draw(figure, form)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _fitted(drawn.getvalue(), form)


def _style(salt: str) -> dict[str, Any]:
    """Return the settings of a plot; the salt makes its ids differ from those of other plots."""
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
        "text.parse_math": False,
        "text.color": COLOURS["ink"],
        "font.family": "DejaVu Sans",
        **dict.fromkeys(("font.size", "axes.titlesize"), FONT_PIXELS),
        **dict.fromkeys(("axes.labelsize", "xtick.labelsize", "ytick.labelsize"), FONT_PIXELS - 1),
        **dict.fromkeys(("axes.labelcolor", "xtick.color", "ytick.color"), COLOURS["soft"]),
        **dict.fromkeys(("axes.edgecolor", "grid.color"), COLOURS["line"]),
        **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
        **dict.fromkeys(("axes.spines.top", "axes.spines.right", "axes.spines.left"), False),
        **dict.fromkeys(("axes.axisbelow", "axes.grid"), True),
        **dict.fromkeys(("xtick.minor.size", "ytick.major.size", "ytick.minor.size"), 0),
        "axes.titlelocation": "left",
        "axes.grid.axis": "y",
        "xtick.major.size": 3,
        "lines.solid_joinstyle": "round",
    }


def _fitted(document: str, form: PlotSize) -> str:
    root = ET.fromstring(document)  # noqa: S314 - it was drawn a moment ago, of texts without control characters
    for parent in root.iter():
        for style in [child for child in parent if child.tag.endswith("}style")]:
            parent.remove(style)
    references = [element.get(_XLINK_HREF) or element.get("clip-path") or "" for element in root.iter()]
    used = {reference.removeprefix("url(").removesuffix(")") for reference in references}
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        attributes = element.attrib
        attributes |= _attributes(attributes.pop("style", ""))
        if f"#{attributes.get('id')}" not in used:
            attributes.pop("id", None)
        if link := attributes.pop(_XLINK_HREF, ""):
            attributes["href"] = link
    view = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update({"class": f"plot {form.name}", "viewBox": view, "aria-hidden": "true"})
    return ET.tostring(root, encoding="unicode")


def _attributes(style: str) -> dict[str, str]:
    """Return a style's declarations, without fonts, and with names of colours in place of marks."""
    declared = (declaration.partition(":")[::2] for declaration in style.split(";"))
    found = {key.strip(): value.strip() for key, value in declared if value.strip()}
    found.pop("font-family", None)
    return {key: f"var(--{_NAMES[value]})" if value in _NAMES else value for key, value in found.items()}
