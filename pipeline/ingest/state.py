"""The state that the ingest keeps between ranges. It changes with the events, all at once or not at
all.

Rule: a change is one commit of the table `events`, which carries the change's number. What is known
after it lies in `_state/NUMBER.json.zst`, written before; a state whose number no commit carries
was never in force. The other tables follow, and carry the number of the change that they have
done.
"""

import re
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress

import msgspec
import zstandard
from pyarrow import fs

from ..datafiles import DataFile
from ..delta import STATE, ChangedMeanwhileError, Snapshot, Tables, TablesError
from ..location import output_stream, reason
from ..schemas import Table
from .files import FileProgress
from .sequence_ranges import Position, SequenceRange
from .staging_result import Marker

NAMED = re.compile(r"_state/[0-9]{1,19}+\.json\.zst", re.ASCII)
FORMAT = 3
"""The version of the state's format."""
TRIED = f"{STATE}/tried"
"""An object that is written to see whether one can be."""
LARGEST = 1 << 30
"""How many bytes a state has at most, uncompressed."""


class EpochState(msgspec.Struct):
    node: int
    ranges: list[SequenceRange] = msgspec.field(default_factory=list, name="runs")
    """The sequence numbers that are in the tables."""
    decisions: int = 0
    begins_with_snapshot: bool = False
    duplicates: int = 0
    repeated: list[SequenceRange] = []
    """The sequence numbers of which a later copy was left out."""
    conflicts: list[SequenceRange] = []
    """The sequence numbers of which a later event with other content was left out."""

    @property
    def events(self) -> int:
        return sum(span.count for span in self.ranges)

    @property
    def missing(self) -> int:
        """The number of sequence numbers from 1 to the last one that are in no file."""
        return self.ranges[-1].last - self.events if self.ranges else 0


class ClusterLogState(msgspec.Struct):
    epochs: dict[int, EpochState] = {}
    markers: list[Marker] = msgspec.field(default_factory=list, name="marks")
    changed_from: Position | None = None
    """The lowest position that was added after the topic history was last brought up to date."""

    def events_from(self, position: Position) -> int:
        begin, sequence = position
        return sum(
            max(0, span.last + 1 - (span.first if number > begin else max(span.first, sequence)))
            for number, epoch in self.epochs.items()
            if number >= begin
            for span in epoch.ranges
        )


class State(msgspec.Struct):
    format: int = FORMAT
    files: dict[str, FileProgress] = {}
    clusters: dict[str, ClusterLogState] = {}
    quarantined: int = 0
    quarantine: list[DataFile] = []
    """The files that this change adds to the table `quarantine`."""
    unquarantined: list[str] = []
    """The names of the files that it removes from there."""
    lost: dict[str, int] = {}
    """How many events files hold no more that were read of them, by file."""
    torn: dict[str, int] = {}
    """How many bytes of a line without an end there are in finished files, by file."""
    unreadable: dict[str, str] = {}
    """The reasons why files could not be read, by file."""
    history: int = 0
    """The number of the change that the topic history had reached before this one."""


class Ledger:
    """The events of one location and the state that belongs to them."""

    quarantine: Snapshot
    """The snapshot of the table `quarantine`, as soon as it was brought up to date."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        try:
            self.events = tables.snapshot(Table.EVENTS)  # first, because of a refusal it says more
        except TablesError:
            with suppress(OSError):
                tables.check_form()
            raise
        tables.check_form()
        if not self.number:
            self._check_nothing_is_left()
        self.state = loaded(tables, _name(self.number)) if self.number else State()
        self._check_rows()
        history = tables.snapshot(Table.TOPIC_HISTORY).change
        if history >= self.number:
            self.has_history()
        elif history < self.state.history:  # it was removed, or an older one restored
            for cluster in self.state.clusters.values():
                cluster.changed_from = (0, 0)

    @property
    def number(self) -> int:
        """The number of the last change; 0 before the first one."""
        return self.events.change

    def change(
        self, state: State, adds: list[DataFile], quarantine: list[DataFile], unquarantined: Iterable[DataFile] = ()
    ) -> None:
        """Make one change. Raises ChangedMeanwhileError if another run made one since, which wins,
        TablesError and OSError.
        """
        before = self.number
        number = max(before + 1, time.time_ns() // 1000)
        state.quarantine, state.unquarantined = quarantine, [file.path for file in unquarantined]
        with output_stream(self.tables.location, _name(number)) as stream:
            stream.write(zstandard.compress(msgspec.json.encode(state)))
        self.events = self.tables.commit(self.events, number, adds)
        self.state = state
        self.follow_with_quarantine()
        for name in states(self.tables):
            if _number(name) < before:  # the one before stays: a disk may lose the last commit
                with suppress(FileNotFoundError):
                    self.tables.location.filesystem().delete_file(name)

    def merge_small(self) -> int:
        """Merge small files of the events and of the quarantine, and return how many fewer there
        are. Raises TablesError.
        """
        merged = sum(self.tables.merge_small(each) for each in (self.events, self.quarantine))
        self.events, self.quarantine = map(self.tables.snapshot, (Table.EVENTS, Table.QUARANTINE))
        return merged

    def follow_with_quarantine(self) -> None:
        """Bring the table `quarantine` up to date with the events. Raises TablesError."""
        self.quarantine = self.tables.snapshot(Table.QUARANTINE)
        if self.quarantine.change < self.number:
            names = [file.path for file in self.state.quarantine]
            found = self.tables.folder(Table.QUARANTINE).filesystem().get_file_info(names) if names else []
            adds = [file for file, info in zip(self.state.quarantine, found, strict=True) if info.is_file]
            removes = [file for file in self.quarantine.files if file.path in self.state.unquarantined]
            self.quarantine = self.tables.commit(self.quarantine, self.number, adds, removes)

    @property
    def is_stale(self) -> bool:
        """Whether the topic history lacks events."""
        return any(cluster.changed_from is not None for cluster in self.state.clusters.values())

    def has_history(self) -> None:
        """Note that the topic history is up to date with the events."""
        self.state.history = self.number
        for cluster in self.state.clusters.values():
            cluster.changed_from = None

    def _check_rows(self) -> None:
        rows = sum(file.rows for file in self.events.files)
        known = sum(epoch.events for cluster in self.state.clusters.values() for epoch in cluster.epochs.values())
        if rows != known:
            raise TablesError(
                f"{self.tables.folder(Table.EVENTS)} has {rows:,} events, but ingest has added {known:,}: "
                "`minicontroller pipeline ingest --anew` rebuilds the tables."
            )

    def _check_nothing_is_left(self) -> None:
        """Raise TablesError if there are tables that belonged to events which are gone."""
        for table in Table:
            if self.tables.snapshot(table).change:
                if self.tables.snapshot(Table.EVENTS).change:
                    raise ChangedMeanwhileError(f"Another run has changed {self.tables.location} meanwhile.")
                raise TablesError(
                    f"{self.tables.location} has the table {table.value}, but the events are gone: "
                    "`minicontroller pipeline ingest --anew` rebuilds it from all audit files."
                )


def states(tables: Tables) -> list[str]:
    """Return the names of all states, the oldest first. Raises OSError."""
    selector = fs.FileSelector(STATE, allow_not_found=True)
    found = [info.path for info in tables.location.filesystem().get_file_info(selector)]
    return sorted((name for name in found if NAMED.fullmatch(name)), key=_number)


def loaded(tables: Tables, name: str) -> State:
    """Read a state. Raises TablesError, OSError."""
    try:
        with tables.location.filesystem().open_input_stream(name, compression=None) as stream:
            text = zstandard.decompress(stream.readall(), max_output_size=LARGEST)
        form = msgspec.json.decode(text, type=_Form).format
        if form == FORMAT:
            return msgspec.json.decode(text, type=State)
    except FileNotFoundError:
        raise TablesError(
            f"{tables.location} has events, but their state {name} is gone: ingest into another folder."
        ) from None
    except (zstandard.ZstdError, msgspec.DecodeError) as error:
        raise TablesError(
            f"{tables.location.child(name)} is broken ({error}): ingest everything into another folder."
        ) from None
    raise TablesError(
        f"The tables were written by another version of this program (format {form}; this version has format {FORMAT}): ingest into another folder."
    )


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


def _number(name: str) -> int:
    return int(name.rpartition("/")[2].partition(".")[0])


class _Form(msgspec.Struct):
    format: int


def copied(state: State) -> State:
    return msgspec.json.decode(msgspec.json.encode(state), type=State)
