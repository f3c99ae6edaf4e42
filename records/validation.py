"""What a log checks of a producer's batches, and what it makes of them (Kafka: ProduceRequest,
UnifiedLog.analyzeAndValidateRecords, LogValidator).
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ..process.steps import Steps
from ..protocol.error_codes import ErrorCode
from .batches import (
    COMPRESSION_BITS,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    Batch,
    Compression,
    TimestampType,
    entries,
)
from .errors import LogError, RecordError, corrupt, invalid
from .legacy import LegacyMessage, inner_messages, message
from .records import RECORDS_A_STEP, Head, Record, Survey, building, each_record, records_in_steps, survey
from .settings import LogSettings

FIRST_VERSION_WITH_BATCHES = 3
FIRST_VERSION_WITH_ZSTD = 7
ERRORS_IN_A_MESSAGE = 3
SHOWN_ERRORS = 1_000
"""The most records whose errors are answered, each with its text. A batch may have a million."""
MOST_MESSAGES = 100_000
"""The most messages of an older magic in one request, each of which is an object."""


class LogPlace(msgspec.Struct, frozen=True):
    """Where and when a batch comes into a log."""

    partition: str
    """Its topic and number, as Kafka's messages name it."""
    now: int


def check_request(version: int, data: bytes | None) -> None:
    """Check what a version of Produce may carry, before a log is asked. Raises LogError, for which
    Produce answers no start of the log.
    """
    if version < FIRST_VERSION_WITH_BATCHES:
        return  # older clients were never checked here
    found = entries(data or b"")
    versioned = f"Produce requests with version {version} "
    magic, entry = next(found, (None, b""))
    if magic is None:
        raise invalid(versioned + "must have at least one record batch per partition")
    if magic != MAGIC:
        raise invalid(versioned + "are only allowed to contain record batches with magic version 2")
    if version < FIRST_VERSION_WITH_ZSTD:
        _check_codec(magic, entry)
        if _codec(magic, entry) == Compression.ZSTD:
            text = versioned + "are not allowed to use ZStandard compression"
            raise LogError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, text)
    if next(found, None) is not None:
        raise invalid(versioned + "are only allowed to contain exactly one record batch per partition")


def begins_transactional(data: bytes | None) -> bool:
    """Return whether the first batch belongs to a transaction. Raises the LogError with which Kafka
    refuses all partitions of a request if the first batch of one has no size or magic of a batch.
    """
    try:
        magic, entry = next(entries(data or b""), (None, b""))
    except LogError as error:
        raise LogError(error.code, error.message, shows_message=error.code is ErrorCode.CORRUPT_MESSAGE) from None
    return magic == MAGIC and bool(entry[22] & TRANSACTIONAL_BIT)


def validated(data: bytes, settings: LogSettings, place: LogPlace) -> Steps[Batch | None]:
    """Return the one batch that a log appends for a producer's bytes, but for its offset and leader
    epoch; None if they have no whole batch. Raises LogError.

    A batch of a few bytes can have a million records, so this takes steps.
    """
    found: list[tuple[int, bytes]] = []
    for magic, entry in entries(data):
        _check_entry(magic, entry, settings, place)
        found.append((magic, entry))
        if not len(found) % RECORDS_A_STEP:
            yield
    if not found:
        return None
    first_magic = found[0][0]
    codecs = [codec for magic, entry in found if (codec := _codec(magic, entry))]
    if len(found) > 1 and (first_magic == MAGIC or codecs):
        raise invalid("Compressed outer record has more than one batch")
    if odd := next((magic for magic, _ in found if magic != first_magic), None):
        text = f"Batch magic {odd} is not the same as the first batch's magic byte {first_magic}"
        raise invalid(f"{text} in topic partition {place.partition}.")
    codec = Compression(codecs[-1] if codecs else 0)
    target = codec if settings.compression is None else settings.compression
    if first_magic == MAGIC:
        return (yield from _of_batch(Batch.read(found[0][1]), target, settings, place))
    return (yield from _of_messages([entry for _, entry in found], target, settings, place))


def _check_entry(magic: int, entry: bytes, settings: LogSettings, place: LogPlace) -> None:
    """Check a batch or message as a whole. Raises LogError."""
    append = f"in the append to {place.partition}"
    base = int.from_bytes(entry[:8], signed=True)
    if magic == MAGIC and base != 0:
        raise invalid(f"The baseOffset of the record batch {append} should be 0, but it is {base}")
    if len(entry) > settings.max_message_bytes:
        raise _too_large(f"The record batch size {append} is {len(entry)} bytes", settings)
    if magic == MAGIC and len(entry) < HEADER_BYTES:
        raise _unexpected("A record batch is shorter than its header.")
    if magic == MAGIC and not Batch.read(entry).crc_is_right:
        raise corrupt(f"Record is corrupt (stored crc = {entry[17:21].hex()}) in topic partition {place.partition}.")
    if magic != MAGIC:
        message(entry)
    _check_codec(magic, entry)


def _check_codec(magic: int, entry: bytes) -> None:
    if (codec := _codec(magic, entry)) > Compression.ZSTD:
        raise _unexpected(f"Unknown compression type id: {codec}")


def _unexpected(message: str) -> LogError:
    return LogError(ErrorCode.UNKNOWN_SERVER_ERROR, message)


def _codec(magic: int, entry: bytes) -> int:
    return entry[22 if magic == MAGIC else 17] & COMPRESSION_BITS


def _too_large(what: str, settings: LogSettings) -> LogError:
    bound = f"exceeds the maximum configured value of {settings.max_message_bytes}"
    return LogError(ErrorCode.MESSAGE_TOO_LARGE, f"{what} which {bound}.")


def _of_batch(batch: Batch, target: Compression, settings: LogSettings, place: LogPlace) -> Steps[Batch]:
    _check_header(batch, place)
    found = yield from survey(batch)
    yield from _check_records(batch, found, settings, place)
    if batch.codec != target:
        return (yield from _rebuilt(batch, target, settings, place))
    if target and not found.counts_offsets:
        raise _unexpected("The offsets of a compressed batch are not those of its records in order.")
    stamps = settings.timestamp_type is TimestampType.LOG_APPEND_TIME
    latest = place.now if stamps else batch.base_timestamp + found.max_timestamp_delta
    return batch.stamped(settings.timestamp_type, max(latest, NO_TIMESTAMP))


def _check_header(batch: Batch, place: LogPlace) -> None:
    where = f"in topic partition {place.partition}."
    offsets = f"[{batch.base_offset}, {batch.last_offset}]"
    if batch.last_offset_delta < 0:
        raise invalid(f"Batch has an invalid offset range: {offsets} {where}")
    if batch.count <= 0:
        raise invalid(f"Invalid reported count for record batch: {batch.count} {where}")
    if batch.count != batch.last_offset_delta + 1:
        raise invalid(f"Inconsistent batch offset range {offsets} and count of records {batch.count} {where}")
    if batch.is_control:
        raise invalid(f"Clients are not allowed to write control records {where}")
    if batch.has_producer and batch.base_sequence < 0:
        raise invalid(
            f"Invalid sequence number {batch.base_sequence} in record batch with producerId {batch.producer_id} {where}"
        )


def _check_records(batch: Batch, found: Survey, settings: LogSettings, place: LogPlace) -> Steps[None]:
    """Look at single records only if those of the batch together are not right."""
    least, most = batch.base_timestamp + found.min_timestamp_delta, batch.base_timestamp + found.max_timestamp_delta
    in_time = settings.timestamp_type is TimestampType.LOG_APPEND_TIME or (
        place.now - least <= settings.timestamp_before_max_ms and most - place.now <= settings.timestamp_after_max_ms
    )
    if in_time and not batch.stamps_append_time and not (settings.compacts and found.has_null_keys):
        return
    stamped = batch.max_timestamp if batch.stamps_append_time else None
    checked = ([_checked(batch, each, stamped) for each in some] for some in records_in_steps(batch))
    yield from _check_each(checked, settings, place)


def _checked(batch: Batch, record: Record, stamped: int | None) -> "_CheckedRecord":
    return _CheckedRecord(
        record.key,
        batch.base_timestamp + record.timestamp_delta if stamped is None else stamped,
        record.offset_delta,
        stamped is not None,
        f"DefaultRecord(offset={record.offset_delta}, timestamp={stamped}, "
        f"key={len(record.key or b'')} bytes, value={len(record.value or b'')} bytes)",
    )


class _CheckedRecord(msgspec.Struct, frozen=True):
    """What the checks ask of a record or message."""

    key: bytes | None
    timestamp: int
    offset: int
    stamps_append_time: bool
    text: str


def _check_each(found: Iterable[Sequence[_CheckedRecord]], settings: LogSettings, place: LogPlace) -> Steps[None]:
    """Raise INVALID_TIMESTAMP or INVALID_RECORD with the records that are not right."""
    rows: list[RecordError] = []
    count = first = 0
    has_wrong_time = False
    for some in found:
        for index, each in enumerate(some, first):
            for code, text in _record_errors(each, settings, place):
                count += 1
                has_wrong_time = has_wrong_time or code is ErrorCode.INVALID_TIMESTAMP
                if count <= SHOWN_ERRORS:
                    rows.append(RecordError(index, text))
        first += len(some)
        yield
    if has_wrong_time:
        text = "One or more records have been rejected due to invalid timestamp"
        raise LogError(ErrorCode.INVALID_TIMESTAMP, text, rows)
    if count:
        shown = ", ".join(map(str, rows[:ERRORS_IN_A_MESSAGE]))
        raise LogError(
            ErrorCode.INVALID_RECORD,
            f"One or more records have been rejected due to {count} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]",
            rows,
        )


def _record_errors(each: _CheckedRecord, settings: LogSettings, place: LogPlace) -> Iterator[tuple[ErrorCode, str]]:
    before, after = settings.timestamp_before_max_ms, settings.timestamp_after_max_ms
    if settings.compacts and each.key is None:
        yield (
            ErrorCode.INVALID_RECORD,
            f"Compacted topic cannot accept message without key in topic partition {place.partition}",
        )
    elif settings.timestamp_type is TimestampType.CREATE_TIME and each.timestamp != NO_TIMESTAMP:
        if place.now - each.timestamp > before or each.timestamp - place.now > after:
            yield (
                ErrorCode.INVALID_TIMESTAMP,
                (
                    f"Timestamp {each.timestamp} of message with offset {each.offset} is out of range. "
                    f"The timestamp should be within [{place.now - before}, {place.now + after}]"
                ),
            )
    elif each.stamps_append_time:
        yield (
            ErrorCode.INVALID_TIMESTAMP,
            f"Invalid timestamp type in message {each.text}. Producer should not set timestamp type to LogAppendTime.",
        )


def _rebuilt(batch: Batch, target: Compression, settings: LogSettings, place: LogPlace) -> Steps[Batch]:
    """Return the records of a batch in one with the codec of the log."""
    shift = next(each_record(batch)).timestamp_delta
    head = msgspec.structs.replace(
        _head(target, settings, place),
        base_timestamp=batch.base_timestamp + shift,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
    )
    if batch.is_transactional:
        head = msgspec.structs.replace(head, attributes=head.attributes | TRANSACTIONAL_BIT)
    found = _renumbered(records_in_steps(batch), shift)
    return _of_right_size((yield from building(head, found, settings.compression_level)), settings, place)


def _renumbered(found: Iterable[Sequence[Record]], shift: int) -> Iterator[list[Record]]:
    first = 0
    for some in found:
        yield [
            Record(index, each.timestamp_delta - shift, each.key, each.value, each.headers)
            for index, each in enumerate(some, first)
        ]
        first += len(some)


def _of_messages(outer: Sequence[bytes], target: Compression, settings: LogSettings, place: LogPlace) -> Steps[Batch]:
    """Return the batch that a log keeps for messages of an older magic."""
    found: list[LegacyMessage] = []
    for entry in outer:
        for each in inner_messages(message(entry)):
            found.append(each)
            if not len(found) % RECORDS_A_STEP:
                yield
            if len(found) > MOST_MESSAGES:
                text = f"A request has more than {MOST_MESSAGES} messages for a partition."
                raise LogError(ErrorCode.MESSAGE_TOO_LARGE, text)
    if len(outer) == 1 and message(outer[0]).codec and any(each.codec for each in found):
        raise invalid("Compressed outer record should not have an inner record with a compression attribute set")
    some = [found[at : at + RECORDS_A_STEP] for at in range(0, len(found), RECORDS_A_STEP)]
    checked = (
        [
            _CheckedRecord(
                each.key, each.timestamp, each.offset, each.stamps_append_time, f"LegacyRecordBatch({each.offset})"
            )
            for each in part
        ]
        for part in some
    )
    yield from _check_each(checked, settings, place)
    shift = found[0].timestamp
    again = ([Record(0, each.timestamp, each.key, each.value) for each in part] for part in some)
    head = msgspec.structs.replace(_head(target, settings, place), base_timestamp=shift)
    built = yield from building(head, _renumbered(again, shift), settings.compression_level)
    return _of_right_size(built, settings, place)


def _head(target: Compression, settings: LogSettings, place: LogPlace) -> Head:
    stamps = settings.timestamp_type is TimestampType.LOG_APPEND_TIME
    return Head(
        attributes=target | (LOG_APPEND_TIME_BIT if stamps else 0),
        append_time=place.now if stamps else NO_TIMESTAMP,
    )


def _of_right_size(batch: Batch, settings: LogSettings, place: LogPlace) -> Batch:
    if batch.size > settings.max_message_bytes:
        raise _too_large(f"Message batch size is {batch.size} bytes in append to partition {place.partition}", settings)
    return batch
