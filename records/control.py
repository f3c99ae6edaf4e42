"""Control batches: the markers that end a producer's transaction in a log.

The key of their one record is a version and a type, the value a version and the epoch of the
coordinator. (Kafka: ControlRecordType, EndTransactionMarker.)
"""

import struct

import msgspec

from .batches import CONTROL_BIT, TRANSACTIONAL_BIT, Batch
from .records import Head, Record, built

ABORT, COMMIT = 0, 1
_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")


class EndMarker(msgspec.Struct, frozen=True):
    """The end of a transaction, as its coordinator asks for it."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commits: bool


def marker_batch(marker: EndMarker, *, offset: int, leader_epoch: int, now: int) -> Batch:
    head = Head(
        base_offset=offset,
        leader_epoch=leader_epoch,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
        base_timestamp=now,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
    )
    kind = COMMIT if marker.commits else ABORT
    return built(head, [Record(0, 0, _KEY.pack(0, kind), _VALUE.pack(0, marker.coordinator_epoch))])
