"""A question, and what answers it.

Rule: the sentence says only what the sheets say, and holds without the plot; the plot is drawn of
the sheets, after they were written.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...audit.event import NOT_AUTHENTICATED
from ..page.charts import Series, bars
from ..page.drawing import Plot
from ..page.sheet import Sheet, Value, count, plural, shortened

BARS = 10
"""Names in a plot."""
"""In the place of a principal that is null."""
NOTHING_ASKED = "Nothing was asked for."
_NAME_LETTERS = 60
_RIGHT_TO_LEFT = {"R", "AL", "AN"}
_ISOLATED = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"


@dataclass(frozen=True)
class Question:
    name: str
    """As programs call it."""
    title: str
    answer: str
    sheets: Sequence[Sheet]
    """On the page, too."""
    draw: Callable[[], Plot | None]
    note: str = ""
    """How the figures are to be read."""
    more: Sequence[Sheet] = ()
    """For programs only: they are long, and the plot shows them."""


@dataclass(frozen=True)
class Part:
    """A column of a sheet, as a part of a bar."""

    column: str
    label: str
    colour: str


def ranking(name: str, sheet: Sheet, label: Callable[[tuple[Value, ...]], str], parts: Sequence[Part]) -> Plot | None:
    """Plot a bar for each of the first rows of a sheet; the others are counted."""
    if not sheet.rows:
        return None
    first = sheet.cut(BARS)
    values = {part.column: first.values(part.column) for part in parts}
    series = [Series(part.label, part.colour, values[part.column]) for part in parts if any(values[part.column])]
    sums = [sum(held) for held in zip(*values.values(), strict=True)]
    others = sum(first.of_others[part.column] for part in parts)
    return bars(name, [label(row) for row in first.rows], series, list(map(count, sums)), rest_of(first, others))


def rest_of(sheet: Sheet, others: int) -> str:
    """Describe the rows of a sheet without a bar."""
    return f"and {plural(sheet.others, 'other')}: {count(others)}" if sheet.others else ""


def label_of(name: Value) -> str:
    return NOT_AUTHENTICATED if name is None else str(name)


def named(name: Value) -> str:
    """Write a foreign name within a sentence: shortened, and without influence on the direction of
    the text around it.
    """
    text = shortened(label_of(name), _NAME_LETTERS) or "(empty)"
    if any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in text):
        return text.join(_ISOLATED)
    return text


def times(number: int) -> str:
    """Write a number of times: `once`, `3 times`."""
    return {1: "once", 2: "twice"}.get(number, f"{count(number)} times")


def listed(parts: Sequence[str]) -> str:
    """Join parts of a sentence: `a`, `a and b`, `a, b and c`."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
