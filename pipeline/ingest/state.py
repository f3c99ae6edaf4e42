"""What the pipeline remembers between runs, and how it changes: all at once, or not at all.

Rule: a change is one file, `_state/journal.json`: which files move where, which go, and the state
after it. Once the journal is there the change is done, because whoever comes next does it again
from its beginning, which does no harm; until then nothing happened. Everything else in `_state` but
the checkpoint can be thrown away.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ..tables import STATE, Table
from .files import Progress
from .places import Run
from .report import Mark

STATE_FILE = f"{STATE}/state.json"
JOURNAL_FILE = f"{STATE}/journal.json"
LOCK_FILE = f"{STATE}/lock"
EVENTS = Table.EVENTS.value
STAGING = f"{STATE}/staging"
CHECKPOINT = f"{STATE}/checkpoint"
FORMAT = 2
"""Of all that lies in `_state`."""


class EpochState(msgspec.Struct):
    """What the tables hold of one controller epoch."""

    node: int
    runs: list[Run] = []
    decisions: int = 0
    begins_with_snapshot: bool = False
    duplicates: int = 0
    repeated: list[Run] = []
    """Where there were duplicates."""
    conflicts: list[Run] = []

    @property
    def events(self) -> int:
        return sum(run.count for run in self.runs)

    @property
    def missing(self) -> int:
        """How many places up to the last one are missing."""
        return self.runs[-1].last - self.events if self.runs else 0


class ClusterState(msgspec.Struct):
    """What the tables hold of one cluster."""

    epochs: dict[int, EpochState] = {}
    marks: list[Mark] = []
    is_stale: bool = False
    """Its derived tables do not have everything yet."""


class State(msgspec.Struct):
    """What the tables hold after the last change."""

    format: int = FORMAT
    changes: int = 0
    """How many there were: makes the names of files unique."""
    files: dict[str, Progress] = {}
    clusters: dict[str, ClusterState] = {}
    quarantined: int = 0
    torn: dict[str, int] = {}
    """Files that are finished and end in the middle of a line: how many bytes of it there are."""
    unreadable: dict[str, str] = {}
    """Files that could not be read: why."""

    @property
    def is_stale(self) -> bool:
        return any(cluster.is_stale for cluster in self.clusters.values())


class Journal(msgspec.Struct):
    """One change of the tables, with paths relative to their folder."""

    moves: list[tuple[str, str]]
    removes: list[str]
    state: State


class StateError(Exception):
    """The folder of the tables cannot be used; the message is a sentence that says why."""


class Ledger:
    """The state of one folder of tables, and its changes. To be used only under `locked`."""

    def __init__(self, tables: Path) -> None:
        self.tables = tables
        self.state = State()

    def open(self) -> None:
        """Finish a change that was interrupted, and clear what it left. Raises
        OSError, StateError.
        """
        journal = self.tables / JOURNAL_FILE
        if not journal.exists() and not (self.tables / STATE_FILE).exists() and (self.tables / EVENTS).exists():
            raise StateError(
                f"{self.tables} has events, but {STATE_FILE} is gone, which tells what is in them: ingest into another folder."
            )
        self.state = load(self.tables)
        if journal.exists():
            self._carry_out(_decoded(journal, Journal))
        self.clear()

    def clear(self) -> None:
        """Remove what was staged and not used."""
        shutil.rmtree(self.tables / STAGING, ignore_errors=True)

    def change(self, state: State, *, moves: Iterable[tuple[str, str]] = (), removes: Iterable[str] = ()) -> None:
        """Carry out a change; once it has begun, a later run finishes it. Raises OSError."""
        state.changes = self.state.changes + 1
        journal = Journal(list(moves), list(removes), state)
        for source, _ in journal.moves:
            sync(self.tables / source)
        write_whole(self.tables / JOURNAL_FILE, msgspec.json.encode(journal))
        self._carry_out(journal)

    def _carry_out(self, journal: Journal) -> None:
        folders = set()
        for source, target in journal.moves:
            folders.add((self.tables / target).parent)
            (self.tables / target).parent.mkdir(parents=True, exist_ok=True)
            if (self.tables / source).exists():
                (self.tables / source).replace(self.tables / target)
        for path in journal.removes:
            (self.tables / path).unlink(missing_ok=True)
        for folder in folders:
            sync(folder)
        write_whole(self.tables / STATE_FILE, msgspec.json.encode(journal.state))
        (self.tables / JOURNAL_FILE).unlink()
        self.state = journal.state


def load(tables: Path) -> State:
    """Load the state of a folder of tables. Raises OSError, StateError."""
    file = tables / STATE_FILE
    state: State = _decoded(file, State) if file.exists() else State()
    if state.format != FORMAT:
        raise StateError(
            f"{tables} was written by another version of this program (format {state.format}, and this is {FORMAT}): ingest into another folder."
        )
    return state


def copied(state: State) -> State:
    """Return a copy of a state, to be changed."""
    return msgspec.json.decode(msgspec.json.encode(state), type=State)


def _decoded(file: Path, type_: Any) -> Any:
    try:
        return msgspec.json.decode(file.read_bytes(), type=type_)
    except msgspec.DecodeError as error:
        raise StateError(
            f"{file} is broken ({error}): remove {file.parent.parent} and ingest everything again."
        ) from None


def check(tables: Path) -> None:
    """Check, without making anything, that a run could begin. Raises StateError, OSError."""
    there = next(folder for folder in (tables.absolute(), *tables.absolute().parents) if folder.exists())
    try:
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise StateError(f"Nothing can be written into {there}: {error.strerror or error}.") from None
    if (tables / LOCK_FILE).exists():
        with locked(tables):
            pass


@contextmanager
def locked(tables: Path) -> Iterator[None]:
    """Lock a folder of tables for one run. Raises StateError, OSError."""
    (tables / STATE).mkdir(parents=True, exist_ok=True)
    with (tables / LOCK_FILE).open("a+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateError(f"Another run is ingesting into {tables}: wait until it is done.") from None
        yield


def write_whole(file: Path, data: bytes) -> None:
    """Write a file so that it has all of the data or stays as it was."""
    new = file.with_name(file.name + ".new")
    with new.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)
    sync(file.parent)


def sync(path: Path) -> None:
    """Make a file or a folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
