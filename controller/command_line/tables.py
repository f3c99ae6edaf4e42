"""Tables by rich: with lines and colours on a terminal, bare columns in a pipe, where no cell is cut or folded."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...policies.escaping import escaped

Cell = str | int | None
PIPE_WIDTH = 10_000
RIGHT = frozenset({"partition", "partitions", "replication", "leader", "id", "port"})


def make_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, bare: bool = False) -> Table:
    table = Table(box=None if bare else SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in RIGHT else "left", overflow="fold", no_wrap=bare)
    for row in rows:
        table.add_row(*(Text("-" if cell is None else escaped(str(cell))) for cell in row))
    return table


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, emoji=False, width=PIPE_WIDTH)
    console.print(make_table(columns, rows, bare=not console.is_terminal))
