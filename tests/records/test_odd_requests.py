"""What a log's shell and machines answer to odd requests, as a real Kafka 3.9.2 was seen to answer
(`beside_kafka.py` asks one).
"""

import pytest

from minicontroller.process.steps import finished
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.records.batches import entries
from minicontroller.records.conversion import down_converted
from minicontroller.records.epochs import Epochs, EpochStart
from minicontroller.records.errors import LogError
from minicontroller.records.log_values import Isolation
from minicontroller.records.validation import begins_transactional, check_request
from tests.records.made import NOW, a_log, changed, made, put

BATCH = made([b"a", b"b"])
TRANSACTIONAL_BIT = 0x10
MAX_TIMESTAMP = -3


def refusal(version: int, data: bytes | None) -> ErrorCode:
    with pytest.raises(LogError) as caught:
        check_request(version, data)
    return caught.value.code


@pytest.mark.parametrize("data", [None, b"", BATCH[:40]])
def test_a_request_without_a_whole_batch_is_refused_once_requests_are_checked(data: bytes | None) -> None:
    check_request(2, data)
    assert refusal(3, data) is ErrorCode.INVALID_RECORD


def test_the_first_batch_says_whether_a_request_is_of_a_transaction() -> None:
    within = changed(BATCH, attributes=TRANSACTIONAL_BIT)
    assert not begins_transactional(None)
    assert not begins_transactional(BATCH[:40])
    assert not begins_transactional(BATCH + within)
    assert begins_transactional(within + BATCH)


@pytest.mark.parametrize(
    ("length", "code", "is_shown"),
    [(-1, ErrorCode.CORRUPT_MESSAGE, True), (2**31 - 1, ErrorCode.UNKNOWN_SERVER_ERROR, False)],
)
def test_a_length_that_no_batch_has_is_refused(length: int, code: ErrorCode, is_shown: bool) -> None:
    with pytest.raises(LogError) as caught:
        begins_transactional(BATCH[:8] + length.to_bytes(4, signed=True) + BATCH[12:])
    assert caught.value.code is code
    assert (caught.value.shown is not None) is is_shown


def test_a_batch_shorter_than_its_header_is_refused() -> None:
    with pytest.raises(LogError) as caught:
        put(a_log(), BATCH[:8] + (20).to_bytes(4) + BATCH[12:32])
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_older_readers_get_what_comes_before_zstandard() -> None:
    first, second = made([b"a"]), made([b"b" * 999], codec=4)
    with pytest.raises(LogError):
        down_converted(second, 1, 0)
    assert down_converted(first + second, 1, 0) == down_converted(first, 1, 0)


def test_what_is_longer_for_older_readers_is_cut() -> None:
    batches = b"".join(changed(made([b"v" * 9] * 20), base_offset=20 * index) for index in range(3))
    whole = b"".join(down_converted(entry, 1, 0) for _, entry in entries(batches))
    assert len(whole) > len(batches)
    assert down_converted(batches, 1, 0) == whole[: len(batches)]
    one = batches[: len(batches) // 3]
    assert len(down_converted(one, 1, 0)) > len(one)


def test_an_epoch_before_the_first_ends_where_the_first_begins() -> None:
    epochs = Epochs()
    assert epochs.end_of(-2, 0) == epochs.end_of(0, 0) == EpochStart(-1, -1)
    epochs.begin(3, 7)
    assert epochs.end_of(-2, 9) == EpochStart(-2, 7)
    assert epochs.end_of(2, 9) == EpochStart(2, 7)
    assert epochs.end_of(-1, 9) == epochs.end_of(4, 9) == EpochStart(-1, -1)


def test_a_search_by_time_goes_on_behind_deleted_records() -> None:
    log = a_log()
    for timestamps in ([0, 10, 5], [20, 3], [7]):
        put(log, made([b"v"] * len(timestamps), timestamps=timestamps))
    log.delete_before(4)
    found = finished(log.offset_for(NOW + 5, Isolation.READ_UNCOMMITTED))
    assert found is not None
    assert (found.offset, found.timestamp) == (5, NOW + 7)
    latest = finished(log.offset_for(MAX_TIMESTAMP, Isolation.READ_UNCOMMITTED))
    assert latest is not None
    assert (latest.offset, latest.timestamp) == (3, NOW + 20)
