"""Record batches (magic 2, KIP-98) as producers send them and logs keep them.

A batch is kept as it came. Kafka's checksum does not cover the base offset and the leader epoch, so
a log gives a batch its place by writing these two alone.

    base offset      int64   at 0
    length           int32   at 8     of what follows
    leader epoch     int32   at 12
    magic            int8    at 16
    CRC-32C          uint32  at 17    of what follows
    attributes       int16   at 21
    last offset      int32   at 23    less the base offset
    base timestamp   int64   at 27
    max timestamp    int64   at 35
    producer id      int64   at 43
    producer epoch   int16   at 51
    base sequence    int32   at 53
    number of records int32  at 57
    records                  at 61

(Kafka: DefaultRecordBatch, ByteBufferLogInputStream.)
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Self

import msgspec
from crc32c import crc32c

from ..protocol.error_codes import ErrorCode
from .errors import LogError, corrupt

MAGIC = 2
HEADER_BYTES = 61
CHECKED_FROM = 21
"""The first byte that the checksum covers."""
OVERHEAD_BYTES = 12
"""The bytes of the base offset and the length, which the length does not count."""
SMALLEST_LENGTH = 14
"""That of a message of magic 0, the smallest that any batch has."""
LARGEST_SIZE = 2**31 - 1
MAGIC_AT = 16
NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
LAST_SEQUENCE = 2**31 - 1

HEADER = struct.Struct(">qiibIhiqqqhii")
CHECKED_HEADER = struct.Struct(">hiqqqhii")
"""The fields of a header that the checksum covers."""
_PLACE = struct.Struct(">qii")
"""The fields of a header before its magic."""
_LENGTH = struct.Struct(">i")


class Compression(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


COMPRESSION_BITS = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40


class Batch(msgspec.Struct, frozen=True, gc=False):
    """A batch's header, and the whole batch with it in `data`."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    """With the bit of the delete horizon, the time at which compaction may drop tombstones."""
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    data: bytes

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Return the batch that these bytes are, of at least a header."""
        fields = (*HEADER.unpack_from(data), data)
        return cls(*fields)

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def codec(self) -> int:
        """Return the number of the codec, which may be none of Kafka's."""
        return self.attributes & COMPRESSION_BITS

    @property
    def stamps_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_producer(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def delete_horizon(self) -> int | None:
        """Return the time from which compaction may drop the tombstones of this batch."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def last_sequence(self) -> int:
        """Return the sequence number of the last record, after 2^31 - 1 again 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & LAST_SEQUENCE

    @property
    def crc_is_right(self) -> bool:
        return crc32c(memoryview(self.data)[CHECKED_FROM:]) == self.crc

    def placed(self, base_offset: int, leader_epoch: int) -> "Batch":
        rest = memoryview(self.data)[MAGIC_AT:]
        return Batch.read(b"".join((_PLACE.pack(base_offset, self.length, leader_epoch), rest)))

    def stamped(self, timestamp_type: TimestampType, max_timestamp: int) -> "Batch":
        stamp = LOG_APPEND_TIME_BIT if timestamp_type is TimestampType.LOG_APPEND_TIME else 0
        attributes = self.attributes & ~LOG_APPEND_TIME_BIT | stamp
        if attributes == self.attributes and max_timestamp == self.max_timestamp:
            return self
        return Batch.read(self.data[:MAGIC_AT] + _checked(self, attributes, max_timestamp))


def _checked(batch: Batch, attributes: int, max_timestamp: int) -> bytes:
    """Return a batch from its magic on, with other attributes and another timestamp."""
    fields = batch.last_offset_delta, batch.base_timestamp, max_timestamp
    producer = batch.producer_id, batch.producer_epoch, batch.base_sequence
    checked = CHECKED_HEADER.pack(attributes, *fields, *producer, batch.count) + batch.data[HEADER_BYTES:]
    return struct.pack(">bI", batch.magic, crc32c(checked)) + checked


def entries(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the magic and the bytes of each batch, or message of an older magic, that is whole;
    Kafka leaves out what is cut at the end. Raises CORRUPT_MESSAGE for a length or a magic that
    none has.
    """
    at, left = 0, len(data)
    while left >= OVERHEAD_BYTES:
        (length,) = _LENGTH.unpack_from(data, at + 8)
        if length < SMALLEST_LENGTH:
            raise corrupt(f"Record size {length} is less than the minimum record overhead ({SMALLEST_LENGTH})")
        if left <= MAGIC_AT:
            return
        magic = data[at + MAGIC_AT]
        if magic > MAGIC:
            raise corrupt(f"Invalid magic found in record: {magic if magic < 128 else magic - 256}")
        size = OVERHEAD_BYTES + length
        if size > LARGEST_SIZE:  # Kafka's sum overflows
            raise LogError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Record size {length} is more than any has")
        if size > left:
            return
        yield magic, data[at : at + size]
        at += size
        left -= size


def batches(data: bytes) -> Iterator[Batch]:
    """Yield the batches of what a log gave to a reader. Raises CORRUPT_MESSAGE."""
    for magic, entry in entries(data):
        if magic != MAGIC or len(entry) < HEADER_BYTES:
            raise corrupt("The bytes are no record batch.")
        yield Batch.read(entry)
