"""Batches, their records and the older messages: what anybody writes is read, and what nobody
writes is refused without a crash.
"""

from collections.abc import Callable

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.process.steps import finished
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.records.batches import Batch, batches, entries
from minicontroller.records.conversion import down_converted
from minicontroller.records.errors import LogError
from minicontroller.records.legacy import LegacyMessage, inner_messages, message, written
from minicontroller.records.records import RECORDS_A_STEP, Head, Record, built, encoded, records, survey, varint
from tests.records.made import NOW, changed, made

CODECS = range(5)
LEGACY_CODECS = range(4)
REFUSALS = {
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}

blobs = st.none() | st.binary(max_size=200)
rows = st.lists(
    st.builds(Record, st.integers(0, 2**31 - 1), st.integers(-(2**62), 2**62), blobs, blobs),
    min_size=1,
    max_size=20,
)


@given(rows, st.sampled_from(CODECS))
def test_records_are_read_as_they_were_written(found: list[Record], codec: int) -> None:
    batch = built(Head(attributes=codec, base_timestamp=0), found)
    assert batch.crc_is_right
    assert records(Batch.read(batch.data)) == found
    survey_of = finished(survey(batch))
    deltas = [each.timestamp_delta for each in found]
    assert (survey_of.min_timestamp_delta, survey_of.max_timestamp_delta) == (min(deltas), max(deltas))
    assert survey_of.has_null_keys == any(each.key is None for each in found)


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_take_at_most_ten_bytes(value: int) -> None:
    assert 1 <= len(varint(value)) <= 10


@given(st.binary(max_size=300), st.sampled_from(CODECS), st.integers(-1, 2**31 - 1))
def test_any_bytes_as_records_are_read_or_refused(content: bytes, codec: int, count: int) -> None:
    batch = Batch.read(changed(made(codec=codec), content=content, count=count))
    answers = [refusal_of(lambda: finished(survey(batch))), refusal_of(lambda: records(batch))]
    assert set(answers) <= REFUSALS | {None}
    assert (answers[0] is None) == (answers[1] is None)  # both readers agree on what is right


@given(st.data())
def test_mutated_batches_are_read_or_refused(data: st.DataObject) -> None:
    codec = data.draw(st.sampled_from(CODECS))
    whole = bytearray(made([b"value" * 9, None, b""] * 4, codec=codec))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    assert refusal_of(lambda: [finished(survey(batch)) for batch in batches(bytes(whole))]) in REFUSALS | {None}


@given(st.binary(max_size=200), st.integers(0, 1))
def test_any_bytes_as_messages_are_read_or_refused(data: bytes, magic: int) -> None:
    def read() -> None:
        for _, entry in entries(data[:16] + bytes([magic]) + data[17:]):
            list(inner_messages(message(entry)))

    assert refusal_of(read) in REFUSALS | {None}


@pytest.mark.parametrize("codec", CODECS)
def test_aiokafka_reads_what_is_written(codec: int) -> None:
    data = made([b"v" * 100_000, None, b""], key=None, codec=codec)
    batch = DefaultRecordBatch(data)
    assert batch.validate_crc()
    assert [(each.offset, each.value) for each in batch] == [(0, b"v" * 100_000), (1, None), (2, b"")]


@pytest.mark.parametrize("codec", CODECS)
def test_what_aiokafka_writes_is_read(codec: int) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    for offset in range(100):
        builder.append(offset, NOW + offset, b"key", b"value" * 9, [("header", b"x")])
    (batch,) = batches(bytes(builder.build()))
    found = records(batch)
    assert [(each.offset_delta, each.timestamp_delta) for each in found] == [(index, index) for index in range(100)]
    assert {(each.key, each.value, each.headers) for each in found} == {(b"key", b"value" * 9, b"\x02\x0cheader\x02x")}
    assert finished(survey(batch)).counts_offsets


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", LEGACY_CODECS)
def test_older_readers_get_messages(magic: int, codec: int) -> None:
    if (magic, codec) == (0, 3):
        return  # aiokafka writes the checksum of LZ4's header as clients before 0.10 did
    data = made([b"one", None, b"three"], timestamps=[0, 1, 2], codec=codec, base_offset=40)
    found = MemoryRecords(down_converted(data, magic, 40))
    read = []
    while (batch := found.next_batch()) is not None:
        assert batch.validate_crc()
        read += [(each.offset, each.timestamp, each.value) for each in batch]
    times = [NOW, NOW + 1, NOW + 2] if magic else [None] * 3
    assert read == list(zip([40, 41, 42], times, [b"one", None, b"three"], strict=True))


def test_older_readers_get_no_records_before_their_offset() -> None:
    found = [message(entry).offset for _, entry in entries(down_converted(made([b"v"] * 5), 1, 3))]
    assert found == [3, 4]


def test_older_readers_do_not_get_zstandard() -> None:
    with pytest.raises(LogError) as refusal:
        down_converted(made(codec=4), 1, 0)
    assert refusal.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@given(st.integers(0, 1), st.sampled_from(LEGACY_CODECS), st.lists(blobs, min_size=1, max_size=9))
def test_messages_are_read_as_they_were_written(magic: int, codec: int, values: list[bytes | None]) -> None:
    found = [LegacyMessage(index, magic, 0, NOW if magic else -1, b"k", value) for index, value in enumerate(values)]
    data = written(found, codec)
    assert [each for _, entry in entries(data) for each in inner_messages(message(entry))] == found


def test_what_is_cut_at_the_end_is_left_out() -> None:
    whole = made() + made([b"b"])
    for size in range(len(made()), len(whole)):
        assert len(list(batches(whole[:size]))) == 1


def test_a_long_varint_is_refused() -> None:
    row = encoded(Record(0, 0, b"k", b"v"))
    batch = Batch.read(changed(made(), content=b"\xff" * 20 + row))
    assert refusal_of(lambda: finished(survey(batch))) is ErrorCode.INVALID_RECORD


def refusal_of(action: Callable[[], object]) -> ErrorCode | None:
    try:
        action()
    except LogError as error:
        return error.code
    return None


@pytest.mark.parametrize("codec", CODECS)
def test_many_records_are_checked_in_short_steps(codec: int) -> None:
    batch = built(Head(attributes=codec), [Record(index, 0, b"", b"") for index in range(30_000)])
    steps = survey(batch)
    assert sum(1 for _ in steps) >= 30_000 // RECORDS_A_STEP
    with_headers = Record(0, 0, b"", b"", varint(30_000) + varint(0) + b"\x00" * 59_999)
    steps = survey(built(Head(attributes=codec), [with_headers]))
    assert sum(1 for _ in steps) >= 30_000 // RECORDS_A_STEP


def test_more_records_than_any_producer_sends_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minicontroller.records.records.MOST_RECORDS", 500)
    assert finished(survey(Batch.read(made([b""] * 500)))).count == 500
    with pytest.raises(LogError) as refusal:
        finished(survey(Batch.read(made([b""] * 501))))
    assert refusal.value.code is ErrorCode.MESSAGE_TOO_LARGE
