"""Prints what tables hold, and what is not in them yet, for `minicontroller pipeline status`.

Rule: it reads the tables' logs and the state of the ingest, and no row; so it takes a moment
however much the tables hold. Only if it is asked to, it reads the audit files and compares them
with what was read of them.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from .delta import Snapshot, Tables
from .ingest.files import FileProgress, Read, former_names, listing, unread
from .ingest.lines import Reader
from .ingest.state import Ledger
from .location import File, Location, reason
from .page.tables import ValueKind, count, moment, plural, shown
from .schemas import Table

RUNS = 5
"""How many of the newest changes of the events are shown."""
MIB = 1 << 20
PLAIN_WIDTH = 140
"""How many columns the output has where it goes to no terminal."""


def print_status(location: Location, file: IO[str]) -> None:
    """Print what the tables hold. Raises TablesError, OSError."""
    tables = Tables(location)
    tables.require()
    ledger, snapshots = Ledger(tables), tables.snapshots()
    width = None if file.isatty() else PLAIN_WIDTH
    console = Console(file=file, highlight=False, markup=False, emoji=False, width=width)
    runs = ((moment(when_ms * 1000), count(rows)) for when_ms, rows in snapshots[Table.EVENTS].commits(RUNS))
    for titles, rows in (
        (("Table", "rows", "files", "MiB"), map(_size, snapshots.values())),
        (("Cluster", "events", "first", "last", "missing", "in conflict"), _clusters(ledger)),
        (("Committed", "events"), runs),
    ):
        console.print(_grid(titles, rows), "")
    for sentence in _sentences(ledger, snapshots[Table.TOPIC_HISTORY]):
        console.print(Text(sentence))


def print_differences(location: Location, file: IO[str]) -> bool:
    """Print which audit files are not what was read of them, and return whether all are. Raises
    TablesError, OSError.
    """
    files = Ledger(Tables(location)).state.files
    found = listing({File.parse(name).folder for name in files})
    former, told = former_names(found, files), list[str]()
    compared = 0
    for name in found:
        progress = files.get(former.get(name, name), FileProgress())
        if progress.digest is not None:
            compared += 1
            told += [f"{shown(name, ValueKind.NAME)} {why}." for why in _differs(name, progress)]
    gone = len(files.keys() - found.keys() - set(former.values()))
    if gone:
        are = "was read is" if gone == 1 else "were read are"
        told.append(f"{plural(gone, 'file')} that {are} no longer in any folder.")
    console = Console(file=file, highlight=False, markup=False, emoji=False, soft_wrap=True)
    for sentence in (*told, f"{plural(compared, 'audit file')} compared with what was read."):
        console.print(Text(sentence))
    return not told


def _differs(name: str, progress: FileProgress) -> Iterator[str]:
    """Compare a file with what was read of it, and say what is wrong."""
    reader = Reader(Read(name, progress.consumed, progress.consumed, known=progress.digest, is_whole=True))
    deque(reader.blocks(), maxlen=0)
    if reader.failure is not None:
        yield f"cannot be read: {reader.failure}"
    elif reader.consumed != progress.consumed:
        yield "differs from what was read of it: it was cut or changed"
    if progress.events < progress.most:
        yield f"holds {plural(progress.most - progress.events, 'event')} fewer than were read from it"


def _size(snapshot: Snapshot) -> tuple[str, ...]:
    files = snapshot.files
    size = sum(file.size for file in files) / MIB
    return snapshot.table.value, count(sum(file.rows for file in files)), count(len(files)), f"{size:,.1f}"


def _clusters(ledger: Ledger) -> Iterator[tuple[str, ...]]:
    for name, cluster in sorted(ledger.state.clusters.items()):
        epochs = cluster.epochs.values()
        spans = [span for epoch in epochs for span in epoch.ranges]
        yield (
            shown(name, ValueKind.NAME),
            count(sum(epoch.events for epoch in epochs)),
            moment(min(span.first_ms for span in spans) * 1000),
            moment(max(span.last_ms for span in spans) * 1000),
            count(sum(epoch.missing for epoch in epochs)),
            count(sum(span.count for epoch in epochs for span in epoch.conflicts)),
        )


def _sentences(ledger: Ledger, history: Snapshot) -> Iterator[str]:
    state = ledger.state
    yield f"{plural(len(state.files), 'audit file')} read, {plural(state.quarantined, 'line')} in quarantine."
    if ledger.is_stale or history.change < ledger.number:
        yield "The topic history is older than the events: the next ingest brings it up to date."
    for folder in sorted({File.parse(name).folder for name in state.files}):
        yield _behind(folder, ledger)
    for number, what in ((len(state.torn), "torn"), (len(state.unreadable), "unreadable")):
        if number:
            yield f"{plural(number, 'file')} {what}: the table `problems` says which."


def _behind(folder: Location, ledger: Ledger) -> str:
    """Say how much of a folder was not read yet."""
    try:
        found = listing([folder])
    except OSError as error:
        return f"{folder} cannot be read now: {reason(error)}."
    left = unread(found, ledger.state.files)
    if not left:
        return f"{folder}: everything is read."
    return f"{folder}: about {sum(left) / MIB:,.1f} MiB of {plural(len(left), 'file')} are not read yet."


def _grid(titles: Sequence[str], rows: Iterable[tuple[str, ...]]) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for title in titles:
        grid.add_column(title, justify="left" if title in {"Table", "Cluster", "Committed"} else "right")
    for row in rows:
        grid.add_row(*map(Text, row))
    return grid
