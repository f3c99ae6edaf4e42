"""What a log is asked for, and what it answers."""

from collections.abc import Sequence
from enum import IntEnum

import msgspec

from .batches import NO_TIMESTAMP


class Isolation(IntEnum):
    """Up to where a reader sees records."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1
    NONE = 2
    """Up to the log's end, as replicas do."""


class Appended(msgspec.Struct, frozen=True, gc=False):
    """Where a request's records are in the log. `append_time` is -1 unless the log stamps its
    records with that time, or if they were sent before: then it is that batch's timestamp.
    """

    first_offset: int
    last_offset: int
    append_time: int = NO_TIMESTAMP


NOTHING_APPENDED = Appended(-1, -1)


class AbortedTransaction(msgspec.Struct, frozen=True, gc=False):
    """A transaction in the log that readers of committed records skip."""

    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of its marker."""
    last_stable_offset: int
    """The log's last stable offset when the marker was written."""


class ReadBatches(msgspec.Struct, frozen=True, gc=False):
    """Batches of a log from an offset on, with what readers of committed records skip."""

    data: bytes = b""
    aborted: Sequence[AbortedTransaction] = ()


class FoundRecord(msgspec.Struct, frozen=True, gc=False):
    """An offset that ListOffsets asked for."""

    offset: int
    timestamp: int = NO_TIMESTAMP
    epoch: int = -1
