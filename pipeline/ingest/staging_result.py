"""The work unit that one task of a batch is given, and the staging result that it returns.

The rows are in files. The size of a result does not depend on the number of events, and the driver
uses it to find new events.
"""

import msgspec

from ..datafiles import DataFile
from .digests import Digest
from .files import Read
from .sequence_ranges import SequenceRange

MAX_REASON = 1000
"""The most characters that are kept of the reason why events were dropped or a line is invalid."""


class WorkUnit(msgspec.Struct, frozen=True):
    """The part of a batch that one task reads."""

    number: int
    reads: list[Read]
    known: dict[tuple[str, int], list[tuple[int, int]]] | None = None
    """The first and last sequence number of each range to leave out, by cluster and epoch: they are
    in the tables or in an earlier work unit. Repetitions within the unit are left out, too. None on
    the first pass, which stages every event, because a batch rarely repeats one.
    """


class StagedRange(msgspec.Struct, array_like=True):
    """Consecutive events of one epoch, in the order of one file."""

    cluster_id: str
    epoch: int
    range: SequenceRange
    node: int
    decisions: int
    begins_with_snapshot: bool
    """Whether the range begins at sequence 1, and with a snapshot."""
    read: int
    """The index of the read among those of the work unit."""


class Marker(msgspec.Struct, frozen=True, array_like=True):
    """An event that begins or ends a snapshot, or reports dropped events."""

    cluster_id: str
    epoch: int
    sequence: int
    kind: str
    """`snapshot_begin`, `snapshot_end` or `dropped`."""
    time_ms: int
    text: str = ""
    """The reason why events were dropped."""
    first: int = 0
    last: int = 0


class ReadProgress(msgspec.Struct, frozen=True, array_like=True):
    read: Read
    consumed: int
    rest: int
    failure: str | None = None
    """The reason why the file could not be read; None if it could."""
    digest: Digest | None = None
    """The digest of the part; if the read is whole, of the file up to the part's end. None if the
    file has been replaced.
    """
    lines: int = 0
    """The number of lines of the part; if the read is whole, of the file up to the part's end."""
    events: int = 0
    is_broken: bool = False
    """Whether the compressed file is damaged, so that its end cannot be read."""

    @property
    def is_other(self) -> bool:
        """Whether the file was replaced since it was last read."""
        return self.failure is None and self.consumed < self.read.begin

    @property
    def size(self) -> int:
        """How many bytes were read, uncompressed."""
        return max(0, self.consumed - self.read.begin)


class StagingResult(msgspec.Struct):
    """The events that a task found in its work unit, and the files that it wrote."""

    number: int
    events_files: list[DataFile] = []
    repeated_files: list[DataFile] = []
    """Files with the events that were left out; no table has them."""
    quarantine_files: list[DataFile] = []
    ranges: list[StagedRange] = []
    markers: list[Marker] = []
    repeated: list[StagedRange] = []
    """The events that were left out, because another event has their position."""
    progress: list[ReadProgress] = []
    events: int = 0
    quarantined: int = 0

    @property
    def duplicates(self) -> int:
        """The number of events that the files hold more than once."""
        return sum(each.range.count for each in self.repeated if not self.progress[each.read].read.again)
