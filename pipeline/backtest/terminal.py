"""Prints the results of a back-test on a terminal: the numbers, who is hit, and how far that can be
trusted. Names are somebody else's: nothing in them is obeyed, neither by the terminal nor by what
draws the tables.
"""

from collections.abc import Iterator
from typing import IO, Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..page.tables import Column, ReportTable, ValueKind, count, plural, shortened, shown
from .summary import TITLES, BacktestSummary
from .texts import ABOUT, answer, lacks, steadiness
from .verdicts import DifferenceKind as Differs

ROWS = 10
NAME_WIDTH = 60
TABLES = ("by_rule", "by_principal", "by_topic")
PLAIN_WIDTH = 140
"""How many columns the output has where it goes to no terminal."""


def print_summary(summary: BacktestSummary, file: IO[str]) -> None:
    console = Console(file=file, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    tables = [table for table in summary.tables if table.name in TABLES and table.rows and summary.differences]
    for table in (_requests(summary), *tables):
        console.print(_table(table))
        console.print()
    for sentence in (*_existing(summary), answer(summary), *lacks(summary), *steadiness(summary)):
        console.print(Text(sentence))
    for about, notes in summary.history["notes"].items():
        number, first = summary.history["counts"][about], shown(notes[0].text, ValueKind.TEXT)
        console.print(Text(f"{ABOUT.get(about, about)}: {count(number)}, first {first}"))


def _existing(summary: BacktestSummary) -> Iterator[str]:
    topics, refused = summary.existing["topics"], summary.existing["refused"]
    if topics:
        yield f"{plural(topics, 'topic exists', 'topics exist')} today; {count(refused)} would be refused."
        for cluster, rule, number in summary.existing["by_rule"][:ROWS]:
            who = shown(rule, ValueKind.NAME) if rule else "the policy"
            yield f"  {count(number)} by {who} in {shown(cluster, ValueKind.NAME)}"


def _requests(summary: BacktestSummary) -> ReportTable:
    kinds = summary.totals["differences"]
    rows = [("put to the candidate", summary.history["asked"]), ("the same verdict", summary.totals["same"])]
    always = {Differs.NEWLY_DENIED, Differs.NEWLY_ALLOWED}
    rows += [(TITLES[kind], kinds[kind.value]) for kind in Differs if kinds[kind.value] or kind in always]
    columns = Column("requests", "Requests", ValueKind.TEXT), Column("number", "", ValueKind.COUNT)
    return ReportTable("requests", "Requests", columns, rows)


def _table(table: ReportTable) -> Table:
    cut = table.cut(ROWS)
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in cut.columns:
        justify: Literal["left", "right"] = "right" if column.kind.is_number else "left"
        grid.add_column(column.title, justify=justify, no_wrap=column.kind.is_number)
    for row in cut.rows:
        cells = (
            shortened(value, NAME_WIDTH) if isinstance(value, str) else shown(value, column.kind)
            for value, column in zip(row, cut.columns, strict=True)
        )
        grid.add_row(*map(Text, cells))
    if cut.others:
        grid.add_row(Text(f"and {count(cut.others)} more"))
    return grid
