"""What one reader found, as it tells the driver: everything about its share of a batch but the
rows, which are in files.

Rule: small, however many events there were, and plain: the driver decides from it what is new.
"""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from ...audit.event import AuditEvent, Decision, Dropped, SnapshotBegin, SnapshotEnd
from .files import Read
from .places import Run

MAX_REASON = 1000
"""Characters of why events were dropped."""


class Share(msgspec.Struct, frozen=True):
    """What one reader reads of a batch."""

    number: int
    reads: list[Read]
    leaves_out: bool = False
    """Leave out what is known, and what comes twice. At first everything is staged, because mostly
    nothing is.
    """
    known: dict[str, dict[int, list[tuple[int, int]]]] = {}
    """By cluster and epoch: places that are in the tables, or are another reader's; first and last.
    """


class StagedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that a reader wrote, to be moved to its place."""

    path: str
    """Relative to the folder of the tables."""
    target: str
    """The folder to which it goes, likewise."""
    rows: int


class Stretch(msgspec.Struct, array_like=True):
    """Consecutive events of one epoch, as they stood in a file."""

    cluster_id: str
    epoch: int
    run: Run
    node: int
    decisions: int
    begins_with_snapshot: bool
    """It begins at place 1, and with a snapshot."""
    read: int
    """Which of the share's reads."""


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """An event that matters for the history as a whole."""

    cluster_id: str
    epoch: int
    sequence: int
    kind: str
    """`snapshot_begin`, `snapshot_end` or `dropped`."""
    time_ms: int
    text: str = ""
    """Why events were dropped."""
    first: int = 0
    last: int = 0


class Reached(msgspec.Struct, frozen=True, array_like=True):
    """How far a read came."""

    read: Read
    consumed: int
    rest: int
    failure: str | None = None
    """Why the file could not be read."""

    @property
    def size(self) -> int:
        """How many bytes were read, uncompressed."""
        return self.consumed - self.read.begin


class Report(msgspec.Struct):
    """What a reader found in its share, and wrote."""

    number: int
    files: list[StagedFile] = []
    stretches: list[Stretch] = []
    marks: list[Mark] = []
    repeated: list[Stretch] = []
    """What was left out, although its place is taken by another line of a file."""
    reached: list[Reached] = []
    events: int = 0
    quarantined: int = 0

    @property
    def duplicates(self) -> int:
        """How many events the files hold more than once."""
        return sum(each.run.count for each in self.repeated if not self.reached[each.read].read.again)


def stretch_on(stretches: list[Stretch], events: Iterable[AuditEvent], read: int) -> None:
    """Add an event to the last stretch, or begin another one."""
    last = stretches[-1] if stretches else None
    for event in events:
        if (
            last is None
            or event.sequence != last.run.last + 1
            or event.epoch != last.epoch
            or event.cluster_id != last.cluster_id
            or read != last.read
        ):
            run = Run(event.sequence, event.sequence, event.time_ms, event.time_ms)
            begins = event.sequence == 1 and isinstance(event, SnapshotBegin)
            last = Stretch(event.cluster_id, event.epoch, run, event.decided_node, 0, begins, read)
            stretches.append(last)
        else:
            last.run.last = event.sequence
            last.run.last_ms = event.time_ms
        last.decisions += isinstance(event, Decision)


def marks_of(events: Iterable[AuditEvent]) -> Iterator[Mark]:
    for event in events:
        if isinstance(event, SnapshotBegin | SnapshotEnd | Dropped):
            kind = str(event.__struct_config__.tag)
            mark = Mark(event.cluster_id, event.epoch, event.sequence, kind, event.time_ms)
            if isinstance(event, Dropped):
                told = event.reason[:MAX_REASON]
                mark = replace(mark, text=told, first=event.first_sequence, last=event.last_sequence)
            yield mark
