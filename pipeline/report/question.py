"""A report and its questions. A question is answered by a sentence that stands alone, a plot, which
is drawn after the tables were written, and report tables.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...audit.event import NOT_AUTHENTICATED
from ..page.charts import bars
from ..page.drawing import Plot, Series
from ..page.tables import ReportTable, Value, count, plural, shortened
from .selection import Selection
from .table_queries import TableQuery

BARS = 10
NOTHING_ASKED = "No changes were requested."
_NAME_LETTERS = 60
_RIGHT_TO_LEFT = {"R", "AL", "AN"}
_ISOLATED = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"


class Report:
    """The tables of a selection, and the questions that they answer."""

    def __init__(self, selection: Selection, questions: Sequence["ReportQuestion"], *more: TableQuery) -> None:
        self.selection, self.axis, self.aggregates = selection, selection.axis, selection.aggregates
        self.questions = questions
        asked = (*more, *(each for question in questions for each in question.asked))
        self._sheets = {each.name: each.of(self.aggregates, self.axis.step) for each in asked}

    def table(self, name: str) -> ReportTable:
        return self._sheets[name]

    @property
    def tables(self) -> list[ReportTable]:
        return [self.clusters, *(table for each in self.questions for table in each.tables(self))]

    @property
    def clusters(self) -> ReportTable:
        return self.table("clusters")

    def of_cluster(self, row: Mapping[str, Any]) -> str:
        """Name the row's cluster, which goes without saying unless there are several."""
        return f" of {named(row['cluster_id'])}" if self.clusters.all_rows > 1 else ""


@dataclass(frozen=True)
class ReportQuestion:
    name: str
    title: str
    answer: Callable[[Report], str]
    draw: Callable[[Report], Plot | None]
    asked: Sequence[TableQuery]
    note: str = ""
    """How the figures are to be read."""

    def shown(self, report: Report) -> list[ReportTable]:
        tables = [(each, report.table(each.name)) for each in self.asked if each.on_page]
        return [table for each, table in tables if table.all_rows > 1 or not each.compares]

    def tables(self, report: Report) -> list[ReportTable]:
        shown = self.shown(report)
        return [*shown, *(table for each in self.asked if (table := report.table(each.name)) not in shown)]


@dataclass(frozen=True)
class BarSegment:
    """A column of a table, as a part of a bar."""

    column: str
    label: str
    colour: str
    less: str = ""
    """Another column, which is subtracted; empty for none."""

    def of(self, numbers: Mapping[str, int]) -> int:
        return numbers[self.column] - (numbers[self.less] if self.less else 0)


def ranking(
    name: str, table: str, label: Callable[[Report, Mapping[str, Any]], str], *parts: BarSegment
) -> Callable[[Report], Plot | None]:
    """Return what plots a bar for each of the first rows of a table, and counts the others."""

    def draw(report: Report) -> Plot | None:
        first = report.table(table).cut(BARS)
        series = [Series(part.label, part.colour, [part.of(row) for row in first.records]) for part in parts]
        sums = [count(sum(part.of(row) for part in parts)) for row in first.records]
        rest = rest_of(first, sum(part.of(first.of_others) for part in parts))
        drawn = [each for each in series if any(each.values)]
        labels = [label(report, row) for row in first.records]
        return bars(name, labels, drawn, sums, rest) if first.rows else None

    return draw


def rest_of(table: ReportTable, others: int) -> str:
    """Describe the rows of a table without a bar."""
    return f"and {plural(table.others, 'other')}: {count(others)}" if table.others else ""


def label_of(name: Value) -> str:
    return NOT_AUTHENTICATED if name is None else str(name)


def named(name: Value) -> str:
    """Write a foreign name in a sentence: shortened, and isolated if it reads right to left."""
    text = shortened(label_of(name), _NAME_LETTERS) or "(empty)"
    if any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in text):
        return text.join(_ISOLATED)
    return text


def times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{count(number)} times")


def listed(parts: Sequence[str]) -> str:
    """Join parts of a sentence: `a`, `a and b`, `a, b and c`."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
