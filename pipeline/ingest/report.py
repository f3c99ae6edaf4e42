"""The report of one reader to the driver: everything about its share of a batch but the rows, which
are in files.

Rule: small, however many events there were, and plain: the driver decides from it what is new.
"""

import msgspec

from ..datafiles import DataFile
from .digests import Digest
from .files import Read
from .places import Run

MAX_REASON = 1000
"""How many characters are kept of a reason why events were dropped, or why a line is no event."""


class Share(msgspec.Struct, frozen=True):
    """The part of a batch that one reader reads."""

    number: int
    reads: list[Read]
    known: dict[tuple[str, int], list[tuple[int, int]]] | None = None
    """The first and last of the places that are in the tables, or are another reader's, by cluster
    and epoch. They are left out, and so is what comes twice; at first everything is staged, because
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
    """Whether the stretch begins at place 1, and with a snapshot."""
    read: int
    """The index of the stretch's read among those of the share."""


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """An event that matters for the history as a whole."""

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


class Reached(msgspec.Struct, frozen=True, array_like=True):
    """How far a read came."""

    read: Read
    consumed: int
    rest: int
    failure: str | None = None
    """The reason why the file could not be read; None if it could."""
    digest: Digest | None = None
    """The digest of the part or, of a read that is whole, of all up to its end; None if the file is
    another one.
    """
    lines: int = 0
    """How many lines were read; of a read that is whole, and those before."""
    events: int = 0
    is_broken: bool = False
    """Whether the file can never be read to its end."""

    @property
    def is_other(self) -> bool:
        """Whether the file is not what was read before."""
        return self.failure is None and self.consumed < self.read.begin

    @property
    def size(self) -> int:
        """How many bytes were read, uncompressed."""
        return max(0, self.consumed - self.read.begin)


class Report(msgspec.Struct):
    """The findings of a reader in its share, and the files that it wrote."""

    number: int
    events_files: list[DataFile] = []
    repeated_files: list[DataFile] = []
    """Files with the events that were left out, which belong to no table."""
    quarantine_files: list[DataFile] = []
    stretches: list[Stretch] = []
    marks: list[Mark] = []
    repeated: list[Stretch] = []
    """The events that were left out, because their places are taken."""
    reached: list[Reached] = []
    events: int = 0
    quarantined: int = 0

    @property
    def duplicates(self) -> int:
        """How many events the files hold more than once."""
        return sum(each.run.count for each in self.repeated if not self.reached[each.read].read.again)
