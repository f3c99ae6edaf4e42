"""The records within a batch (magic 2).

    length           varint          of what follows
    attributes       int8            unused
    timestamp        varint, 64 bits less the batch's base timestamp
    offset           varint          less the batch's base offset
    key, value       varint length and bytes, -1 for null
    headers          varint number, each a key and a value

(Kafka: DefaultRecord, DefaultRecordBatch.)
"""

import struct
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

import msgspec
from crc32c import crc32c

from ..process.steps import Steps, finished
from ..protocol.error_codes import ErrorCode
from .batches import (
    CHECKED_HEADER,
    COMPRESSION_BITS,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    OVERHEAD_BYTES,
    Batch,
)
from .compression import compressed_parts, decompressed_parts
from .errors import CompressionError, LogError, TooManyBytesError, invalid

T = TypeVar("T")

RECORDS_A_STEP = 100
"""The most records, or headers of one record, that are read in one step."""
FEW_HEADERS = 20
MOST_RECORDS = 1_000_000
"""The most records of a batch. It is the largest `batch.num.messages` of librdkafka, and 150,000
records are the most that fit into the `max.request.size` of Java's producer, 1 MiB. Java's producer
answers the refusal by sending the records again in smaller batches.
"""
SIZE_BYTES = 5
"""The most bytes that a record's length has. No record is shorter than this."""
NO_HEADERS = b"\x00"
_BITS_OF_INT, _BITS_OF_LONG = 32, 64


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One record of a batch. Its offset and timestamp are less those of the batch."""

    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    value: bytes | None
    headers: bytes = NO_HEADERS
    """The headers, encoded: their number and then each of them."""


class Survey(msgspec.Struct, gc=False):
    """What a log asks of all records of a batch together."""

    count: int = 0
    min_timestamp_delta: int = 2**63
    max_timestamp_delta: int = -(2**63)
    has_null_keys: bool = False
    counts_offsets: bool = True
    """Whether the offsets of the records are 0, 1, 2 and so on."""


class _Unread:
    """The bytes of a batch's records that were not read yet, decompressed as they are needed."""

    def __init__(self, batch: Batch) -> None:
        self._parts = decompressed_parts(batch.codec, batch.data[HEADER_BYTES:])
        self.data = b""
        self.at = 0
        """Where the next record begins."""

    def has(self, size: int) -> Steps[bool]:
        length = len(self.data) - self.at
        if length >= size:
            return True
        found = [self.data[self.at :]]
        while length < size and (part := self._part()) is not None:
            found.append(part)
            length += len(part)
            yield
        self.data, self.at = b"".join(found), 0
        return length >= size

    def has_record(self) -> Steps[bool]:
        yield from self.has(SIZE_BYTES)
        size, at = _varint(self.data, self.at)
        return (yield from self.has(at - self.at + max(0, size)))

    def _part(self) -> bytes | None:
        try:
            return next(self._parts, None)
        except TooManyBytesError as error:
            raise LogError(ErrorCode.MESSAGE_TOO_LARGE, f"A record batch is too large: {error}.") from None
        except CompressionError as error:
            raise LogError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Failed to decompress record stream: {error}") from None


def survey(batch: Batch) -> Steps[Survey]:
    """Check that the records of a batch can be read, and return what a log asks of them, without an
    object for each. Raises INVALID_RECORD; UNKNOWN_SERVER_ERROR for what its codec cannot
    decompress, as Kafka answers it; and MESSAGE_TOO_LARGE for what becomes too large.
    """
    unread, found = _Unread(batch), Survey()
    try:
        while found.count < batch.count:
            if not (yield from unread.has_record()):
                raise ValueError(f"{batch.count - found.count} of {batch.count} records are not there")
            if found.count >= MOST_RECORDS:
                text = f"A record batch has {batch.count} records, and {MOST_RECORDS} are the most."
                raise LogError(ErrorCode.MESSAGE_TOO_LARGE, text)
            if not _walk(unread, found, min(found.count + RECORDS_A_STEP, batch.count)):
                yield from _survey_one(unread, found)
            yield
        if (yield from unread.has(1)):
            raise ValueError(f"there are bytes behind the {batch.count} records")
    except (IndexError, ValueError) as error:
        raise invalid(f"Found invalid record structure: {error}") from None
    return found


def _walk(unread: _Unread, found: Survey, stop: int) -> int:
    """Walk over records up to the one with the index `stop`, or up to the first that is not whole
    or has many headers, and return their number.

    This is where a producer's request takes its time, so numbers of one and two bytes, which are
    the usual ones, are read in place, and stay in zigzag encoding: even ones are not negative.
    """
    data, at, index = unread.data, unread.at, found.count
    left = len(data)
    least, most, null_keys, counts = (
        found.min_timestamp_delta,
        found.max_timestamp_delta,
        found.has_null_keys,
        found.counts_offsets,
    )
    begin, last, former = at, left - SIZE_BYTES, -1
    while index < stop and at <= last:
        size = data[at]
        at += 1
        if size > 0x7F:
            size, at = (size & 0x7F | more << 7, at + 1) if (more := data[at]) < 0x80 else _zigzag(data, at - 1)
        end = at + (size >> 1)
        if size & 1 or end > left:
            break
        at += 2  # the attributes, and the first byte of the timestamp
        delta = data[at - 1]
        if delta > 0x7F:
            if (more := data[at]) < 0x80:
                delta, at = delta & 0x7F | more << 7, at + 1
            else:
                delta, at = _zigzag(data, at - 1, _BITS_OF_LONG)
        if delta != former:
            former = delta
            delta = (delta >> 1) ^ -(delta & 1)
            least = min(least, delta)
            most = max(most, delta)
        offset = data[at]
        at += 1
        if offset > 0x7F:
            offset, at = (offset & 0x7F | more << 7, at + 1) if (more := data[at]) < 0x80 else _zigzag(data, at - 1)
        if offset != index << 1:
            counts = False
        size = data[at]
        at += 1
        if size > 0x7F:
            size, at = (size & 0x7F | more << 7, at + 1) if (more := data[at]) < 0x80 else _zigzag(data, at - 1)
        if size & 1:
            null_keys = True
        else:
            at += size >> 1
        size = data[at]
        at += 1
        if size > 0x7F:
            size, at = (size & 0x7F | more << 7, at + 1) if (more := data[at]) < 0x80 else _zigzag(data, at - 1)
        if not size & 1:
            at += size >> 1
        number = data[at]
        at += 1
        if number:
            if number & 1 or number > FEW_HEADERS << 1:
                break
            at = _after_headers(data, at, end, number >> 1)
        if at != end:
            raise ValueError("a record's length is not that of its fields")
        index += 1
        begin = at
    read = index - found.count
    unread.at, found.count = begin, index
    found.min_timestamp_delta, found.max_timestamp_delta = least, most
    found.has_null_keys, found.counts_offsets = null_keys, counts
    return read


def _survey_one(unread: _Unread, found: Survey) -> Steps[None]:
    """Look at a record that is not as most are."""
    record, unread.at = yield from _record(unread.data, unread.at)
    found.min_timestamp_delta = min(found.min_timestamp_delta, record.timestamp_delta)
    found.max_timestamp_delta = max(found.max_timestamp_delta, record.timestamp_delta)
    found.has_null_keys |= record.key is None
    found.counts_offsets &= record.offset_delta == found.count
    found.count += 1


def records(batch: Batch) -> list[Record]:
    """Return the records of a small batch at once. Raises LogError, as `survey` does."""
    return [record for some in records_in_steps(batch) for record in some]


def each_record(batch: Batch) -> Iterator[Record]:
    """Yield the records of a batch, which are not in memory together. Raises as `survey` does."""
    return chain.from_iterable(records_in_steps(batch))


def records_in_steps(batch: Batch) -> Iterator[list[Record]]:
    """Yield the records of a batch, some or none at a time, so that whoever reads them can let
    other tasks run in between. Raises as `survey` does.
    """
    unread, found = _Unread(batch), []
    try:
        for index in range(batch.count):
            if not (yield from _as_none_found(unread.has_record())):
                raise ValueError(f"{batch.count - index} of {batch.count} records are not there")
            record, unread.at = yield from _as_none_found(_record(unread.data, unread.at))
            found.append(record)
            if len(found) == RECORDS_A_STEP:
                yield found
                found = []
        yield found
        if (yield from _as_none_found(unread.has(1))):
            raise ValueError(f"there are bytes behind the {batch.count} records")
    except (IndexError, ValueError) as error:
        raise invalid(f"Found invalid record structure: {error}") from None


def _as_none_found(steps: Steps[T]) -> Generator[list[Record], None, T]:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        yield []


def _record(data: bytes, at: int) -> Steps[tuple[Record, int]]:
    """Read the record that begins at a place, and return it with the place of the next."""
    size, at = _varint(data, at)
    end = at + size
    if size < 0 or end > len(data):
        raise ValueError(f"a record of {size} bytes does not fit")
    timestamp_delta, at = _varint(data, at + 1, _BITS_OF_LONG)
    offset_delta, at = _varint(data, at)
    key, at = _bytes(data, at, end)
    value, at = _bytes(data, at, end)
    number, behind = _varint(data, at)
    if not 0 <= number <= end - behind:
        raise ValueError(f"a record has {number} headers")
    for first in range(0, number, RECORDS_A_STEP):
        behind = _after_headers(data, behind, end, min(RECORDS_A_STEP, number - first))
        yield
    if behind != end:
        raise ValueError("a record's length is not that of its fields")
    return Record(offset_delta, timestamp_delta, key, value, data[at:end]), end


def _bytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = _varint(data, at)
    if size < 0:
        return None, at
    if at + size > end:
        raise ValueError(f"a field of {size} bytes does not fit its record")
    return data[at : at + size], at + size


def _after_headers(data: bytes, at: int, end: int, number: int) -> int:
    for _ in range(number):
        size, at = _varint(data, at)
        if not 0 <= size <= end - at:
            raise ValueError(f"the key of a header has {size} bytes")
        size, at = _varint(data, at + size)
        at += max(0, size)
        if at > end:
            raise ValueError("a header does not fit its record")
    return at


def _varint(data: bytes, at: int, bits: int = _BITS_OF_INT) -> tuple[int, int]:
    """Read a number. Raises IndexError and ValueError."""
    value, at = _zigzag(data, at, bits)
    return (value >> 1) ^ -(value & 1), at


def _zigzag(data: bytes, at: int, bits: int = _BITS_OF_INT) -> tuple[int, int]:
    """Read a number and leave it in zigzag encoding."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << bits) - 1, at
        shift += 7
        if shift >= bits:
            raise ValueError(f"a number has more than {bits} bits")


def varint(value: int) -> bytes:
    """Encode a number of 64 bits in zigzag encoding."""
    left = (value << 1) ^ (value >> 63)
    if left < 0x80:
        return left.to_bytes()
    encoded = bytearray()
    while left > 0x7F:
        encoded.append(0x80 | left & 0x7F)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)


def encoded(record: Record) -> bytes:
    key, value = record.key, record.value
    body = b"".join(
        (
            b"\x00",
            varint(record.timestamp_delta),
            varint(record.offset_delta),
            b"\x01" if key is None else varint(len(key)) + key,
            b"\x01" if value is None else varint(len(value)) + value,
            record.headers,
        )
    )
    return varint(len(body)) + body


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a batch that its records do not say. Those of a producer are usually absent."""

    base_offset: int = 0
    leader_epoch: int = NO_EPOCH
    attributes: int = 0
    last_offset_delta: int | None = None
    """None for that of the last record."""
    base_timestamp: int = 0
    append_time: int = NO_TIMESTAMP
    """The timestamp of all records, if the attributes say that the log stamps them."""
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    base_sequence: int = NO_SEQUENCE

    @classmethod
    def of(cls, batch: Batch) -> "Head":
        return cls(
            base_offset=batch.base_offset,
            leader_epoch=batch.leader_epoch,
            attributes=batch.attributes,
            last_offset_delta=batch.last_offset_delta,
            base_timestamp=batch.base_timestamp,
            append_time=batch.max_timestamp if batch.stamps_append_time else NO_TIMESTAMP,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
        )


def built(head: Head, found: Sequence[Record], level: int | None = None) -> Batch:
    """Return a batch of records, compressed with the codec that the attributes name."""
    return finished(building(head, [found], level))


def building(head: Head, found: Iterable[Sequence[Record]], level: int | None = None) -> Steps[Batch]:
    """Return what `built` does, in steps: one for each sequence of records."""
    content, count, last, latest = bytearray(), 0, 0, NO_TIMESTAMP
    for some in found:
        content += b"".join(map(encoded, some))
        count += len(some)
        if some:
            last = some[-1].offset_delta
            highest = head.base_timestamp + max(each.timestamp_delta for each in some)
            latest = highest if count == len(some) else max(latest, highest)
        yield
    packed = bytearray()
    for part in compressed_parts(head.attributes & COMPRESSION_BITS, bytes(content), level):
        packed += part
        yield
    checked = CHECKED_HEADER.pack(
        head.attributes,
        last if head.last_offset_delta is None else head.last_offset_delta,
        head.base_timestamp,
        head.append_time if head.attributes & LOG_APPEND_TIME_BIT else latest,
        head.producer_id,
        head.producer_epoch,
        head.base_sequence,
        count,
    )
    crc = crc32c(packed, crc32c(checked))
    length = HEADER_BYTES - OVERHEAD_BYTES + len(packed)
    front = struct.pack(">qiibI", head.base_offset, length, head.leader_epoch, MAGIC, crc)
    return Batch.read(b"".join((front, checked, packed)))


def rebased(found: Sequence[Record], less: int) -> list[Record]:
    """Return records for a batch whose base timestamp is later by `less`."""
    if not less:
        return list(found)
    return [msgspec.structs.replace(each, timestamp_delta=each.timestamp_delta - less) for each in found]


def with_delete_horizon(batch: Batch, found: Sequence[Record], horizon: int | None) -> Steps[Batch]:
    """Return a batch with those of its records that compaction keeps. With a horizon, that time
    takes the place of the base timestamp, as in Kafka.
    """
    head = Head.of(batch)
    if horizon is None:
        return (yield from building(head, _some_at_a_time(found)))
    marked = msgspec.structs.replace(head, attributes=head.attributes | DELETE_HORIZON_BIT, base_timestamp=horizon)
    return (yield from building(marked, _some_at_a_time(rebased(found, horizon - batch.base_timestamp))))


def _some_at_a_time(found: Sequence[Record]) -> Iterator[Sequence[Record]]:
    return (found[at : at + RECORDS_A_STEP] for at in range(0, len(found), RECORDS_A_STEP))
