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

from ..page.sheet import Column, Kind, Sheet, count, plural, shortened, shown
from .summary import TITLES, Summary
from .verdicts import Kind as Differs
from .wording import ABOUT, answer, lacks, steadiness

ROWS = 10
NAME_WIDTH = 60
TABLES = ("by_rule", "by_principal", "by_topic")
PLAIN_WIDTH = 140
"""How many columns the output has where it goes to no terminal."""


def print_summary(summary: Summary, file: IO[str]) -> None:
    console = Console(file=file, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    sheets = [sheet for sheet in summary.sheets if sheet.name in TABLES and sheet.rows and summary.differences]
    for sheet in (_requests(summary), *sheets):
        console.print(_table(sheet))
        console.print()
    for sentence in (*_existing(summary), answer(summary), *lacks(summary), *steadiness(summary)):
        console.print(Text(sentence))
    for about, notes in summary.history["notes"].items():
        number, first = summary.history["counts"][about], shown(notes[0].text, Kind.TEXT)
        console.print(Text(f"{ABOUT.get(about, about)}: {count(number)}, first {first}"))


def _existing(summary: Summary) -> Iterator[str]:
    topics, refused = summary.existing["topics"], summary.existing["refused"]
    if topics:
        yield f"{plural(topics, 'topic exists', 'topics exist')} today; {count(refused)} would be refused."
        for cluster, rule, number in summary.existing["by_rule"][:ROWS]:
            who = shown(rule, Kind.NAME) if rule else "the policy"
            yield f"  {count(number)} by {who} in {shown(cluster, Kind.NAME)}"


def _requests(summary: Summary) -> Sheet:
    kinds = summary.totals["differences"]
    rows = [("put to the candidate", summary.history["asked"]), ("the same verdict", summary.totals["same"])]
    always = {Differs.NEWLY_DENIED, Differs.NEWLY_ALLOWED}
    rows += [(TITLES[kind], kinds[kind.value]) for kind in Differs if kinds[kind.value] or kind in always]
    columns = Column("requests", "Requests", Kind.TEXT), Column("number", "", Kind.COUNT)
    return Sheet("requests", "Requests", columns, rows)


def _table(sheet: Sheet) -> Table:
    cut = sheet.cut(ROWS)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in cut.columns:
        justify: Literal["left", "right"] = "right" if column.kind.is_number else "left"
        table.add_column(column.title, justify=justify, no_wrap=column.kind.is_number)
    for row in cut.rows:
        cells = (
            shortened(value, NAME_WIDTH) if isinstance(value, str) else shown(value, column.kind)
            for value, column in zip(row, cut.columns, strict=True)
        )
        table.add_row(*map(Text, cells))
    if cut.others:
        table.add_row(Text(f"and {count(cut.others)} more"))
    return table
