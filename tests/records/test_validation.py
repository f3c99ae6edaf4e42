"""What a log takes of a producer, as a real Kafka 3.9.2 was seen to answer the same bytes."""

import zlib
from typing import Any

import pytest

from minicontroller.process.steps import finished
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.records.batches import HEADER_BYTES, Batch, Compression, TimestampType
from minicontroller.records.errors import LogError
from minicontroller.records.legacy import LegacyMessage, written
from minicontroller.records.records import Head, Record, built, records
from minicontroller.records.settings import LogSettings
from minicontroller.records.validation import LogPlace, begins_transactional, check_request, validated
from tests.records.made import NOW, changed, made

BATCH = made([b"a", b"b", b"c"])
GZIP = made([b"a", b"b", b"c"], codec=1)
CORRUPT, INVALID, UNKNOWN = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR
UNSUPPORTED = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
PLACE = LogPlace("t-0", NOW)


def code_of(data: bytes, **settings: Any) -> ErrorCode:
    with pytest.raises(LogError) as refusal:
        finished(validated(data, LogSettings(**settings), PLACE))
    return refusal.value.code


def taken(data: bytes, **settings: Any) -> Batch:
    batch = finished(validated(data, LogSettings(**settings), PLACE))
    assert batch is not None and batch.crc_is_right
    return batch


@pytest.mark.parametrize(
    ("version", "data", "code"),
    [
        (11, b"", INVALID),
        (11, BATCH[:40], INVALID),
        (11, BATCH + BATCH, INVALID),
        (11, BATCH[:16] + b"\x01" + BATCH[17:], INVALID),
        (11, BATCH[:16] + b"\x03" + BATCH[17:], CORRUPT),
        (11, BATCH[:8] + b"\x00\x00\x00\x05" + BATCH[12:], CORRUPT),
        (11, BATCH[:8] + b"\x00\x00\x00\x14" + BATCH[12:32], None),
        (6, made(codec=4), UNSUPPORTED),
        (6, changed(BATCH, attributes=5), UNKNOWN),
        (7, made(codec=4), None),
        (3, GZIP, None),
        (2, b"", None),
        (2, BATCH + BATCH, None),
        (11, None, INVALID),
    ],
)
def test_each_version_carries_what_it_may(version: int, data: bytes | None, code: ErrorCode | None) -> None:
    if code is None:
        check_request(version, data)
        return
    with pytest.raises(LogError) as refusal:
        check_request(version, data)
    assert refusal.value.code is code
    if code is CORRUPT:  # whose message is shown if it refuses all partitions of a request
        with pytest.raises(LogError) as refusal_of_all:
            begins_transactional(data)
        assert refusal_of_all.value.shown == refusal.value.message


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (BATCH[:17] + b"abcd" + BATCH[21:], CORRUPT),
        (changed(BATCH, base_offset=5), INVALID),
        (changed(BATCH, count=2), INVALID),
        (changed(BATCH, count=0), INVALID),
        (changed(BATCH, last_offset_delta=-1, count=0), INVALID),
        (changed(BATCH, last_offset_delta=5, count=6), INVALID),
        (changed(BATCH, count=2**31 - 1, last_offset_delta=2**31 - 2), INVALID),
        (changed(BATCH, content=BATCH[HEADER_BYTES:] + b"xyz"), INVALID),
        (changed(BATCH, content=BATCH[HEADER_BYTES:-3]), INVALID),
        (changed(GZIP, content=zlib.compress(BATCH[HEADER_BYTES:] + b"xyz", wbits=31)), INVALID),
        (changed(BATCH, attributes=0x20), INVALID),
        (changed(BATCH, producer_id=7, producer_epoch=0, base_sequence=-1), INVALID),
        (BATCH + BATCH, INVALID),
        (changed(BATCH, attributes=5), UNKNOWN),
        *((changed(BATCH, attributes=codec), UNKNOWN) for codec in (1, 2, 3, 4)),
        (built(Head(attributes=1, last_offset_delta=1), [Record(1, 0, b"k", b"v")] * 2).data, UNKNOWN),
        (made([bytes(1 << 21)]), ErrorCode.MESSAGE_TOO_LARGE),
    ],
)
def test_wrong_batches_are_refused_as_by_kafka(data: bytes, code: ErrorCode) -> None:
    assert code_of(data) is code


@pytest.mark.parametrize("codec", range(5))
def test_right_batches_are_kept_as_they_came(codec: int) -> None:
    data = made([b"a", b"b"], codec=codec, producer_id=7, producer_epoch=1, base_sequence=5)
    assert taken(data).data[16:] == data[16:]


def test_what_kafka_lets_pass_is_taken() -> None:
    offsets = built(Head(last_offset_delta=1), [Record(3, 0, b"k", b"v"), Record(1, 0, b"k", b"v")]).data
    for data in (offsets, changed(BATCH, attributes=0x80), BATCH + BATCH[:40], changed(GZIP, content=GZIP[61:] + b"x")):
        taken(data)
    assert finished(validated(BATCH[:40], LogSettings(), PLACE)) is None


@pytest.mark.parametrize("source", range(5))
@pytest.mark.parametrize("target", list(Compression))
def test_a_log_has_the_codec_of_its_topic(source: int, target: Compression) -> None:
    data = made([b"a", None], timestamps=[50, 0], codec=source, producer_id=7, producer_epoch=1, base_sequence=5)
    batch = taken(data, compression=target)
    assert (batch.codec, batch.producer_id, batch.base_sequence) == (target, 7, 5)
    times = [batch.base_timestamp + each.timestamp_delta for each in records(batch)]
    assert (times, batch.max_timestamp) == ([NOW + 50, NOW], NOW + 50)


def test_a_batch_that_grows_too_large_is_refused() -> None:
    data = made([bytes(1000)], codec=1)
    assert code_of(data, max_message_bytes=300, compression=Compression.NONE) is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", [0, 1])
def test_compacted_topics_want_keys(codec: int) -> None:
    data = made([b"x"] * 3, keys=[None, b"k", None], codec=codec)
    with pytest.raises(LogError) as refusal:
        finished(validated(data, LogSettings(compacts=True), PLACE))
    text = "Compacted topic cannot accept message without key in topic partition t-0"
    assert refusal.value.code is INVALID
    assert [(each.index, each.message) for each in refusal.value.record_errors] == [(0, text), (2, text)]
    assert refusal.value.shown == (
        "One or more records have been rejected due to 2 record errors in total, and only showing the first three "
        f"errors at most: [RecordError(batchIndex=0, message='{text}'), RecordError(batchIndex=2, message='{text}')]"
    )


def test_timestamps_are_within_bounds() -> None:
    bounds: dict[str, Any] = {"timestamp_before_max_ms": 100, "timestamp_after_max_ms": 50}
    taken(made([b"a", b"b"], timestamps=[-100, 50]), **bounds)
    for outside in (-101, 51):
        with pytest.raises(LogError) as refusal:
            finished(validated(made([b"a", b"b"], timestamps=[0, outside]), LogSettings(**bounds), PLACE))
        assert refusal.value.code is ErrorCode.INVALID_TIMESTAMP
        assert refusal.value.shown == "One or more records have been rejected due to invalid timestamp"
        (error,) = refusal.value.record_errors
        assert error.message == (
            f"Timestamp {NOW + outside} of message with offset 1 is out of range. "
            f"The timestamp should be within [{NOW - 100}, {NOW + 50}]"
        )
    taken(made(timestamps=[-101]), timestamp_type=TimestampType.LOG_APPEND_TIME, **bounds)
    taken(made(timestamps=[-NOW - 1]), **bounds)  # none at all


def test_producers_do_not_stamp_append_times() -> None:
    data = changed(BATCH, attributes=8)
    assert code_of(data, timestamp_type=TimestampType.LOG_APPEND_TIME) is ErrorCode.INVALID_TIMESTAMP
    assert not taken(data).stamps_append_time  # Kafka makes it a time of creation


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_older_messages_become_a_batch(magic: int, codec: int) -> None:
    found = [LegacyMessage(index, magic, 0, NOW + index if magic else -1, b"k", b"v%d" % index) for index in range(3)]
    batch = taken(written(found, codec))
    assert (batch.magic, batch.codec, batch.count) == (2, codec, 3)
    read = [(each.offset_delta, batch.base_timestamp + each.timestamp_delta, each.value) for each in records(batch)]
    assert read == [(index, each.timestamp, each.value) for index, each in enumerate(found)]
    assert taken(written(found, codec), compression=Compression.GZIP).codec == Compression.GZIP


def one(magic: int = 1, codec: int = 0, value: bytes | None = b"v") -> bytes:
    return written([LegacyMessage(0, magic, codec, NOW if magic else -1, None, value)], 0)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (one(0) + one(1), INVALID),
        (one(1) + BATCH, INVALID),
        (one(1) + written([LegacyMessage(0, 1, 0, NOW, None, b"v")], 1), INVALID),
        (one(codec=1, value=zlib.compress(one(codec=1, value=zlib.compress(one(), wbits=31)), wbits=31)), INVALID),
        (one(codec=1, value=None), INVALID),
        (one(codec=1, value=zlib.compress(b"", wbits=31)), INVALID),
        (one(codec=1, value=zlib.compress(one(0), wbits=31)), INVALID),
        (one(codec=1, value=zlib.compress(one()[:20] + b"x" + one()[21:], wbits=31)), CORRUPT),
        (one(codec=1, value=b"no gzip"), UNKNOWN),
        (one(codec=4), INVALID),
        (one()[:12] + b"abcd" + one()[16:], CORRUPT),
    ],
)
def test_wrong_messages_are_refused_as_by_kafka(data: bytes, code: ErrorCode) -> None:
    assert code_of(data) is code


def test_settings_are_those_of_the_topics_configs() -> None:
    assert LogSettings.from_configs({}) == LogSettings()
    configs = {
        "cleanup.policy": "compact, delete",
        "compression.type": "gzip",
        "compression.gzip.level": "9",
        "message.timestamp.type": "LogAppendTime",
        "max.message.bytes": "5",
        "min.cleanable.dirty.ratio": "0.1",
        "retention.ms": "-1",
    }
    assert LogSettings.from_configs(configs) == LogSettings(
        compacts=True,
        deletes=True,
        compression=Compression.GZIP,
        compression_level=9,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        max_message_bytes=5,
        min_cleanable_dirty_ratio=0.1,
        retention_ms=-1,
    )
    assert LogSettings.from_configs({"compression.type": "uncompressed"}).compression is Compression.NONE
