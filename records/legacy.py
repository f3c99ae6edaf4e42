"""Messages of magic 0 and 1, which clients before Kafka 0.11 produce and fetch.

    offset      int64   at 0
    length      int32   at 8     of what follows
    CRC-32      uint32  at 12    of what follows
    magic       int8    at 16
    attributes  int8    at 17
    timestamp   int64   at 18    only with magic 1
    key, value  int32 length and bytes, -1 for null

A compressed message has further messages as its value. Their offsets are less that of the first
with magic 1. (Kafka: LegacyRecord, AbstractLegacyRecordBatch.)
"""

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ..protocol.error_codes import ErrorCode
from .batches import COMPRESSION_BITS, LOG_APPEND_TIME_BIT, NO_TIMESTAMP, Compression, entries
from .compression import compressed, decompressed_parts
from .errors import CompressionError, LogError, corrupt, invalid

LARGEST_BYTES = 16 << 20
"""What a compressed message becomes at most. It is decompressed at once, unlike a batch."""
NULL = -1
_HEAD = struct.Struct(">qiIbb")
_SIZE = struct.Struct(">i")
_TIMESTAMP = struct.Struct(">q")


class LegacyMessage(msgspec.Struct, frozen=True, gc=False):
    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def codec(self) -> int:
        return self.attributes & COMPRESSION_BITS

    @property
    def stamps_append_time(self) -> bool:
        return self.magic == 1 and bool(self.attributes & LOG_APPEND_TIME_BIT)


def message(entry: bytes) -> LegacyMessage:
    """Return the message that these bytes are. Raises CORRUPT_MESSAGE for a checksum that is not
    theirs, and INVALID_RECORD for fields that do not fit.
    """
    offset, _, crc, magic, attributes = _HEAD.unpack_from(entry)
    if zlib.crc32(memoryview(entry)[16:]) != crc:
        raise corrupt(f"Record is corrupt (stored crc = {crc})")
    try:
        at = 18
        timestamp = NO_TIMESTAMP
        if magic:
            (timestamp,) = _TIMESTAMP.unpack_from(entry, at)
            at += 8
        key, at = _bytes(entry, at)
        value, at = _bytes(entry, at)
    except struct.error:
        raise invalid("A message is shorter than its fields.") from None
    return LegacyMessage(offset, magic, attributes, timestamp, key, value)


def _bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = _SIZE.unpack_from(data, at)
    at += 4
    if size < 0:
        return None, at
    if size > len(data) - at:
        raise invalid(f"A field of {size} bytes does not fit its message.")
    return data[at : at + size], at + size


def inner_messages(outer: LegacyMessage) -> Iterator[LegacyMessage]:
    """Yield the messages within a compressed one, or the message itself."""
    if not outer.codec:
        yield outer
        return
    if outer.codec == Compression.ZSTD:
        raise invalid(f"Messages of magic {outer.magic} are not compressed with zstandard")
    if outer.value is None:
        raise invalid(f"Found invalid compressed record set with null value (magic = {outer.magic})")
    try:
        data = _bounded(decompressed_parts(outer.codec, outer.value))
    except CompressionError as error:
        raise LogError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Failed to decompress record stream: {error}") from None
    found = False
    for magic, entry in entries(data):
        found = True
        if magic != outer.magic:
            raise invalid(f"Inner record's magic {magic} does not match outer magic {outer.magic}")
        yield message(entry)
    if not found:
        raise invalid("Found invalid compressed record set with no inner records")


def _bounded(parts: Iterable[bytes]) -> bytes:
    found = bytearray()
    for part in parts:
        found += part
        if len(found) > LARGEST_BYTES:
            raise LogError(ErrorCode.MESSAGE_TOO_LARGE, f"Compressed messages take more than {LARGEST_BYTES} bytes.")
    return bytes(found)


def written(found: Sequence[LegacyMessage], codec: int) -> bytes:
    """Return messages of one magic as readers get them, in one message if they are compressed."""
    if not codec or not found:
        return b"".join(map(_encoded, found))
    first, last = found[0], found[-1]
    inner = [_within(each, first) for each in found]
    value = compressed(codec, b"".join(map(_encoded, inner)))
    attributes = codec | first.attributes & LOG_APPEND_TIME_BIT
    timestamp = max(each.timestamp for each in found)
    return _encoded(LegacyMessage(last.offset, first.magic, attributes, timestamp, None, value))


def _within(message: LegacyMessage, first: LegacyMessage) -> LegacyMessage:
    less = first.offset if first.magic else 0
    return msgspec.structs.replace(message, offset=message.offset - less)


def _encoded(message: LegacyMessage) -> bytes:
    timestamp = _TIMESTAMP.pack(message.timestamp) if message.magic else b""
    checked = b"".join(
        (struct.pack(">bb", message.magic, message.attributes), timestamp, _sized(message.key), _sized(message.value))
    )
    return struct.pack(">qiI", message.offset, len(checked) + 4, zlib.crc32(checked)) + checked


def _sized(data: bytes | None) -> bytes:
    return _SIZE.pack(NULL) if data is None else _SIZE.pack(len(data)) + data
