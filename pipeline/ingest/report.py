"""What one reader found, as it tells the driver: everything about its share of a batch but the
rows, which are in files.

Rule: small, however many events there were, and plain: the driver decides from it what is new.
"""

import msgspec

from ..datafiles import DataFile
from .files import Read
from .places import Run

MAX_REASON = 1000
"""Characters of why events were dropped."""


class Share(msgspec.Struct, frozen=True):
    """What one reader reads of a batch."""

    number: int
    reads: list[Read]
    known: dict[tuple[str, int], list[tuple[int, int]]] | None = None
    """By cluster and epoch: the first and last of places that are in the tables, or are another
    reader's. They are left out, and so is what comes twice; at first everything is staged, because
    mostly nothing is known.
    """


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
        return max(0, self.consumed - self.read.begin)


class Report(msgspec.Struct):
    """What a reader found in its share, and wrote."""

    number: int
    events_files: list[DataFile] = []
    repeated_files: list[DataFile] = []
    """They hold what was left out, and belong to no table."""
    quarantine_files: list[DataFile] = []
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
