"""Prints tables: drawn by rich on a terminal, and as plain columns without cut or folded cells in a
pipe.

Rule: rich is imported only for a terminal, because that takes longer than the rest of a command.
"""

from collections.abc import Sequence

import click

from ..text import escaped
from .output import is_terminal

Cell = str | int | None
RIGHT = frozenset(
    {"partition", "partitions", "replication", "leader", "id", "port", "key", "offset", "timestamp", "bytes", "lag"}
)
GAP = "  "
NARROW = 40
"""On a terminal with fewer columns, plain lines that the terminal wraps are easier to read."""


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    shown = [["-" if cell is None else escaped(str(cell)) for cell in row] for row in rows]
    bare = _bare([columns, *shown])
    if not (is_terminal() and _draw(columns, shown, max(map(len, bare)))):
        click.echo("\n".join(bare))


def _bare(rows: Sequence[Sequence[str]]) -> list[str]:
    sides = [str.rjust if column in RIGHT else str.ljust for column in rows[0]]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        GAP.join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _draw(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> bool:
    """Draw a table with long cells folded. Returns False if the terminal is too narrow for it."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from .console import PlainConsole

    console = PlainConsole()
    if console.width < min(width, NARROW):
        return False
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in RIGHT else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    return True
