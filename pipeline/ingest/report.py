"""What one reader found, as it tells the driver: everything about its share of a batch but the rows, which are in files.

Rule: small, however many events there were, and plain: the driver decides from it what is new.
"""

import msgspec

from .files import Read
from .places import Run


class Share(msgspec.Struct, frozen=True):
    """What one reader reads of a batch."""

    number: int
    reads: list[Read]
    known: dict[str, dict[int, list[tuple[int, int]]]] = {}
    """By cluster and epoch: places that are in the tables, or are another reader's; first and last. They are left out."""
    whole: bool = False
    """`known` is complete: only what is not in it is staged. Otherwise the driver looks first."""


class StagedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that was written, to be moved to its place."""

    path: str
    """Relative to the folder of the tables."""
    target: str
    """The folder to which it goes, likewise."""
    rows: int


class Stretch(msgspec.Struct, array_like=True):
    """Events of one epoch in a row, as they stood in a file."""

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


class Report(msgspec.Struct):
    """Of one share."""

    number: int
    files: list[StagedFile] = []
    stretches: list[Stretch] = []
    marks: list[Mark] = []
    repeated: list[Stretch] = []
    """What was left out."""
    reached: list[Reached] = []
    events: int = 0
    quarantined: int = 0
