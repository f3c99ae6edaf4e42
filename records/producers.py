"""What a partition's log knows of its idempotent producers (Kafka: ProducerStateManager).

A log keeps the last five batches of each producer, so that a batch that is sent again is answered
with the offsets it has, and refuses a batch that does not follow the last one.
"""

from collections import deque
from collections.abc import Iterator

import msgspec

from ..protocol.error_codes import ErrorCode
from .batches import LAST_SEQUENCE, NO_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, Batch
from .control import EndMarker
from .errors import LogError

REMEMBERED_BATCHES = 5
"""A producer has at most this many requests in flight, so no older batch is sent again."""
NO_OFFSET = -1


class SentBatch(msgspec.Struct, frozen=True, gc=False):
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class Producer(msgspec.Struct):
    """A producer that has written to a log."""

    producer_id: int
    epoch: int = NO_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = NO_TIMESTAMP
    """The largest timestamp of its last batch or marker, in milliseconds."""
    first_open_offset: int = NO_OFFSET
    """The first offset of its open transaction."""
    sent: deque[SentBatch] = msgspec.field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))

    @property
    def last_sequence(self) -> int:
        return self.sent[-1].last_sequence if self.sent else NO_SEQUENCE

    @property
    def is_open(self) -> bool:
        return self.first_open_offset != NO_OFFSET


class Producers:
    """The producers of one log."""

    def __init__(self, partition: str) -> None:
        self._partition = partition
        self._producers: dict[int, Producer] = {}
        self._open: dict[int, int] = {}
        """The first offsets of the open transactions by producer, which only grow."""

    def __iter__(self) -> Iterator[Producer]:
        return iter(self._producers.values())

    def __len__(self) -> int:
        return len(self._producers)

    def get(self, producer_id: int) -> Producer | None:
        return self._producers.get(producer_id)

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        producer = self._producers.get(producer_id)
        return producer is not None and producer.epoch == epoch and producer.is_open

    def duplicate_of(self, batch: Batch) -> SentBatch | None:
        producer = self._producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.producer_epoch:
            return None
        wanted = batch.base_sequence, batch.last_sequence
        return next((sent for sent in producer.sent if (sent.first_sequence, sent.last_sequence) == wanted), None)

    def check(self, batch: Batch) -> None:
        """Check that a batch follows what its producer wrote before. Raises LogError."""
        producer = self._producers.get(batch.producer_id)
        if producer is None:
            return  # its earlier records may have been deleted, so each sequence number is taken
        self._check_epoch(producer, batch.producer_epoch, batch.base_offset)
        if producer.epoch == NO_EPOCH:
            pass  # it has no sequence yet
        elif batch.producer_epoch != producer.epoch:
            if batch.base_sequence != 0:
                text = f"{batch.base_sequence} is not the first of a new epoch after {producer.epoch}"
                raise self._out_of_order(batch, text)
        elif not _follows(producer.last_sequence, batch.base_sequence):
            text = (
                f"{batch.base_sequence} (incoming seq. number), {producer.last_sequence} (current end sequence number)"
            )
            raise self._out_of_order(batch, text)
        if producer.is_open and not batch.is_transactional:
            raise LogError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {batch.producer_id} at offset {batch.base_offset} "
                f"in partition {self._partition}",
            )

    def check_marker(self, marker: EndMarker, offset: int) -> None:
        """Check that a marker is of no older epoch than its producer, and of no older coordinator
        than an earlier marker. Raises LogError.
        """
        producer = self._producers.get(marker.producer_id)
        if producer is None:
            return
        self._check_epoch(producer, marker.producer_epoch, offset)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise LogError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {marker.producer_id} at offset {offset} in partition "
                f"{self._partition}: {marker.coordinator_epoch} (zombie), {producer.coordinator_epoch} (current)",
            )

    def _check_epoch(self, producer: Producer, epoch: int, offset: int) -> None:
        if epoch < producer.epoch:
            raise LogError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer.producer_id} at offset {offset} in {self._partition} is {epoch}, "
                f"which is smaller than the last seen epoch {producer.epoch}",
            )

    def _out_of_order(self, batch: Batch, why: str) -> LogError:
        text = f"Out of order sequence number for producer {batch.producer_id} at offset {batch.base_offset}"
        return LogError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"{text} in partition {self._partition}: {why}")

    def wrote(self, batch: Batch) -> None:
        """Note a batch at its place in the log, which `check` has let through."""
        producer = self._of(batch.producer_id, batch.producer_epoch)
        producer.last_timestamp = batch.max_timestamp
        producer.sent.append(
            SentBatch(
                batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset, batch.max_timestamp
            )
        )
        if batch.is_transactional and not producer.is_open:
            producer.first_open_offset = self._open[batch.producer_id] = batch.base_offset

    def ended(self, marker: EndMarker, timestamp: int) -> int:
        """Note a marker that ends a producer's transaction, and return the first offset of that
        transaction in this log, or NO_OFFSET if it wrote nothing to it.
        """
        producer = self._of(marker.producer_id, marker.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = timestamp
        first, producer.first_open_offset = producer.first_open_offset, NO_OFFSET
        self._open.pop(marker.producer_id, None)
        return first

    @property
    def first_open_offset(self) -> int | None:
        return next(iter(self._open.values()), None)

    def expire(self, now: int, after: int) -> None:
        """Forget producers without a transaction that wrote nothing for a time
        (`producer.id.expiration.ms`).
        """
        gone = [each.producer_id for each in self if not each.is_open and now - each.last_timestamp >= after]
        for producer_id in gone:
            del self._producers[producer_id]

    def _of(self, producer_id: int, epoch: int) -> Producer:
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = Producer(producer_id)
        if producer.epoch != epoch:
            producer.epoch = epoch
            producer.sent.clear()
        return producer


def _follows(last: int, sequence: int) -> bool:
    return sequence == (0 if last == LAST_SEQUENCE else last + 1)
