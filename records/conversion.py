"""Batches as readers of older messages get them (Kafka: RecordsUtil.downConvert)."""

from ..protocol.error_codes import ErrorCode
from .batches import LOG_APPEND_TIME_BIT, MAGIC, NO_TIMESTAMP, Batch, Compression, batches
from .errors import LogError
from .legacy import LegacyMessage, written
from .records import each_record


def down_converted(data: bytes, magic: int, from_offset: int) -> bytes:
    """Return what a log gave to a reader as messages of an older magic, without control records
    and, if it is not compressed, without what is before the offset that the reader asked for.
    What is longer than it was is cut, but not in the first batch. Raises
    UNSUPPORTED_COMPRESSION_TYPE if the first batch is compressed with Zstandard.
    """
    found: list[bytes] = []
    for batch in batches(data):
        if batch.codec == Compression.ZSTD:
            if found:
                break  # what is before it can be given
            raise LogError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                "Down-conversion of zstandard-compressed batches is not supported",
            )
        if not batch.is_control:
            found.append(_converted(batch, magic, from_offset))
    return b"".join(found)[: max(len(data), len(found[0]))] if found else b""


def _converted(batch: Batch, magic: int, from_offset: int) -> bytes:
    assert magic < MAGIC
    attributes = batch.attributes & LOG_APPEND_TIME_BIT if magic else 0
    found = []
    for record in each_record(batch):
        offset = batch.base_offset + record.offset_delta
        if offset < from_offset and not batch.codec:
            continue
        timestamp = NO_TIMESTAMP
        if magic:
            stamped = batch.stamps_append_time
            timestamp = batch.max_timestamp if stamped else batch.base_timestamp + record.timestamp_delta
        found.append(LegacyMessage(offset, magic, attributes, timestamp, record.key, record.value))
    return written(found, batch.codec)
