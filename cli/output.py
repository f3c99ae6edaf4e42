"""Prints JSON and tables for who reads a command: a terminal, a pipe that may close, or nobody.

Rule: a closed pipe, as with `head`, is not an error. It changes neither the effects of a command
nor its exit code. Tables are drawn by rich on a terminal only, because its import takes longer than
the rest of a command; in a pipe they are plain columns, and no cell is cut or folded.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from ..text import escaped

STDOUT = 1
Cell = str | int | None
RIGHT = frozenset(
    {"partition", "partitions", "replication", "leader", "id", "port", "key", "offset", "timestamp", "bytes", "lag"}
)
GAP = "  "
NARROW = 40
"""On a terminal with fewer columns, plain lines that the terminal wraps are easier to read."""


def is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def is_conversation() -> bool:
    """Return whether a person reads the output and can answer."""
    return is_terminal() and sys.stdin is not None and sys.stdin.isatty()


@contextmanager
def readers_may_leave() -> Iterator[None]:
    """End the block if the reader of its output closes the pipe. The code after it still runs."""
    try:
        yield
    except BrokenPipeError:
        nobody_reads()


def nobody_reads() -> None:
    """Redirect stdout to the null device, so that Python's final flush does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STDOUT)
    os.close(nowhere)


def print_json(document: object) -> None:
    import json  # ASCII only, so that no text can control a terminal

    click.echo(json.dumps(document, indent=2))


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
