"""What ingest remembers between runs, and how it changes: with the events, all at once or not at
all.

Rule: a change is one commit of the table `events`, which carries the change's number. What is known
after it lies in `_state/NUMBER.json.zst`, written before; a state whose number no commit carries
was never in force. The other tables follow, and carry the number of the change that they have
reached.
"""

import tempfile
import time
from contextlib import suppress

import msgspec
import zstandard

from ..delta import STATE, DataFile, Tables, TablesError
from ..location import output_stream, reason
from ..schemas import Table
from .files import Progress
from .places import Run
from .report import Mark

FORMAT = 3
"""Of the state."""
TRIED = f"{STATE}/tried"
"""An object that is written to see whether one can be."""
LARGEST = 1 << 30
"""Bytes of a state, uncompressed."""

Place = tuple[int, int]
"""Epoch and sequence."""


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
    changed_from: Place | None = None
    """The first place that came since the topic history was brought up to date."""

    def events_from(self, place: Place) -> int:
        """Count the events from a place on."""
        begin, sequence = place
        return sum(
            max(0, run.last + 1 - (run.first if number > begin else max(run.first, sequence)))
            for number, epoch in self.epochs.items()
            if number >= begin
            for run in epoch.runs
        )


class State(msgspec.Struct):
    """What is known after a change."""

    format: int = FORMAT
    files: dict[str, Progress] = {}
    clusters: dict[str, ClusterState] = {}
    quarantined: int = 0
    quarantine: list[DataFile] = []
    """The files that this change adds to the table `quarantine`."""
    torn: dict[str, int] = {}
    """Files that are finished and end in the middle of a line: how many bytes of it there are."""
    unreadable: dict[str, str] = {}
    """Files that could not be read: why."""


class Ledger:
    """The events of one place and the state that belongs to them."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.events = tables.snapshot(Table.EVENTS)
        self._check_form()
        self.state = State() if not self.number else self._loaded()
        if tables.snapshot(Table.TOPIC_HISTORY).change >= self.number:
            self.has_history()

    @property
    def number(self) -> int:
        """The number of the last change; 0 before the first one."""
        return self.events.change

    def change(self, state: State, adds: list[DataFile], quarantine: list[DataFile]) -> None:
        """Make one change. Raises ChangedMeanwhileError if another run made one since, which wins,
        TablesError and OSError.
        """
        before = self.number
        number = max(before + 1, time.time_ns() // 1000)
        state.quarantine = quarantine
        self._save(number, state)
        self.events = self.tables.commit(self.events, number, adds)
        self.state = state
        self.follow_with_quarantine()
        self._forget(before)

    def merge_small(self) -> int:
        """Merge small files of the events and of the quarantine, and return how many fewer there
        are. Raises TablesError.
        """
        merged = sum(self.tables.merge_small(each) for each in (self.events, self.tables.snapshot(Table.QUARANTINE)))
        self.events = self.tables.snapshot(Table.EVENTS)
        return merged

    def follow_with_quarantine(self) -> None:
        """Bring the table `quarantine` up to date with the events. Raises TablesError."""
        there = self.tables.snapshot(Table.QUARANTINE)
        if there.change < self.number:
            self.tables.commit(there, self.number, self.state.quarantine)

    @property
    def is_stale(self) -> bool:
        """Whether the topic history lacks events."""
        return any(cluster.changed_from is not None for cluster in self.state.clusters.values())

    def has_history(self) -> None:
        """Note that the topic history is up to date with the events."""
        for cluster in self.state.clusters.values():
            cluster.changed_from = None

    # ------------------------------------------------------------------ files

    def _save(self, number: int, state: State) -> None:
        with output_stream(self.tables.location, _name(number)) as stream:
            stream.write(zstandard.compress(msgspec.json.encode(state)))

    def _loaded(self) -> State:
        name = _name(self.number)
        try:
            with self.tables.location.filesystem().open_input_stream(name, compression=None) as stream:
                text = zstandard.decompress(stream.readall(), max_output_size=LARGEST)
            return _decoded(text)
        except FileNotFoundError:
            raise TablesError(
                f"{self.tables.location} has events, but {name} is gone, which tells what is in them: ingest into another folder."
            ) from None
        except (zstandard.ZstdError, msgspec.DecodeError) as error:
            raise TablesError(
                f"{self.tables.location.child(name)} is broken ({error}): ingest everything into another folder."
            ) from None

    def _forget(self, number: int) -> None:
        """Remove the state of a change that was not the last one any more before this one."""
        if number:
            with suppress(FileNotFoundError):
                self.tables.location.filesystem().delete_file(_name(number))

    def _check_form(self) -> None:
        if self.number:
            return
        if self.events.files:
            raise TablesError(
                f"{self.tables.folder(Table.EVENTS)} is a table of another program: ingest into another folder."
            )
        self.tables.check_form()


def check(tables: Tables) -> None:
    """Check, without making anything that stays, that a run could begin. Raises TablesError,
    OSError.
    """
    if tables.location.is_local:
        folder = tables.location.path
        there = next(each for each in (folder, *folder.parents) if each.exists())
        try:
            tempfile.TemporaryFile(dir=there).close()
        except OSError as error:
            raise TablesError(f"Nothing can be written into {there}: {error.strerror or error}.") from None
    Ledger(tables)
    if not tables.location.is_local:
        try:
            output_stream(tables.location, TRIED).close()
            tables.location.filesystem().delete_file(TRIED)
        except OSError as error:
            raise TablesError(f"Nothing can be written to {tables.location}: {reason(error)}.") from None


def _name(number: int) -> str:
    return f"{STATE}/{number}.json.zst"


def _decoded(text: bytes) -> State:
    form = msgspec.json.decode(text, type=_Form).format
    if form != FORMAT:
        raise TablesError(
            f"The tables were written by another version of this program (format {form}, and this is {FORMAT}): ingest into another folder."
        )
    return msgspec.json.decode(text, type=State)


class _Form(msgspec.Struct):
    format: int


def copied(state: State) -> State:
    """Return a copy of a state, to be changed."""
    return msgspec.json.decode(msgspec.json.encode(state), type=State)
