"""The log of a partition, against a simple model and case by case."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from minicontroller.process.steps import finished
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.records.batches import Batch, TimestampType, batches
from minicontroller.records.control import EndMarker
from minicontroller.records.epochs import EpochStart
from minicontroller.records.errors import LogError
from minicontroller.records.log import EARLIEST, LATEST, LATEST_TIERED, MAX_TIMESTAMP, PartitionLog
from minicontroller.records.log_values import FoundRecord, Isolation
from minicontroller.records.memory import Memory
from minicontroller.records.records import records
from tests.records.made import NOW, a_log, appended, changed, everything, made, put

COMMITTED, UNCOMMITTED = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED
TRANSACTIONAL = 0x10


def values(data: bytes) -> list[tuple[int, bytes | None]]:
    return [
        (batch.base_offset + each.offset_delta, each.value)
        for batch in batches(data)
        if not batch.is_control
        for each in records(batch)
    ]


def committed(log: PartitionLog, offset: int = 0) -> list[tuple[int, bytes | None]]:
    """What a consumer of committed records makes of what it reads, as Kafka's clients do."""
    found = log.read(offset, 1 << 20, isolation=COMMITTED, at_least_one=True)
    waiting = sorted(found.aborted, key=lambda each: each.first_offset)
    aborting: set[int] = set()
    shown = []
    for batch in batches(found.data):
        while waiting and waiting[0].first_offset <= batch.last_offset:
            aborting.add(waiting.pop(0).producer_id)
        if batch.is_control:
            aborting.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            shown += values(batch.data)
    return shown


@dataclass
class Open:
    first: int
    offsets: list[int] = field(default_factory=list)


class LogMachine(RuleBasedStateMachine):
    """The model keeps each record in a dict, and each transaction's offsets."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory(1 << 20)
        self.log = a_log(self.memory, segment_bytes=400, index_interval_bytes=100)
        self.rows: dict[int, bytes] = {}
        self.start = self.end = 0
        self.open: dict[int, Open] = {}
        self.aborted: set[int] = set()
        self.sequences: dict[int, int] = {}
        self.held: int | None = None

    @rule(found=st.lists(st.binary(max_size=60), min_size=1, max_size=4), codec=st.sampled_from([0, 1]))
    def append(self, found: list[bytes], codec: int) -> None:
        assert put(self.log, made(found, codec=codec)) == self.end
        self.take(found)

    @rule(found=st.lists(st.binary(max_size=60), min_size=1, max_size=4), producer=st.integers(0, 2))
    def append_in_transaction(self, found: list[bytes], producer: int) -> None:
        data = made(
            found,
            bits=TRANSACTIONAL,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=self.sequences.get(producer, 0),
        )
        first = put(self.log, data)
        assert put(self.log, data) == first == self.end  # sent again, and not appended again
        self.sequences[producer] = self.sequences.get(producer, 0) + len(found)
        self.open.setdefault(producer, Open(first)).offsets += range(self.end, self.end + len(found))
        self.take(found)

    @rule(producer=st.integers(0, 2), commits=st.booleans())
    def end_transaction(self, producer: int, commits: bool) -> None:
        self.log.append_marker(EndMarker(producer, 0, 0, commits), leader_epoch=0, now=NOW)
        self.end += 1
        ended = self.open.pop(producer, None)
        if ended is not None and not commits:
            self.aborted.update(ended.offsets)

    @rule(share=st.floats(0, 1))
    def delete(self, share: float) -> None:
        self.start = max(self.start, int(self.high_watermark * share))
        assert self.log.delete_before(int(self.high_watermark * share)) == self.start

    @rule()
    def retain(self) -> None:
        self.log.apply_retention(NOW)

    @precondition(lambda self: self.held is None)
    @rule()
    def hold(self) -> None:
        self.held = self.end
        self.log.hold_high_watermark(self.end)

    @rule()
    def release(self) -> None:
        self.held = None
        self.log.hold_high_watermark(None)

    def take(self, found: list[bytes]) -> None:
        self.rows.update(enumerate(found, self.end))
        self.end += len(found)

    @property
    def high_watermark(self) -> int:
        return self.end if self.held is None else self.held

    @invariant()
    def bounds_agree(self) -> None:
        assert (self.log.start, self.log.high_watermark, self.log.end) == (self.start, self.high_watermark, self.end)
        assert self.start <= self.log.last_stable_offset <= self.high_watermark
        if self.held is None:
            first_open = min((each.first for each in self.open.values()), default=self.end)
            assert self.log.last_stable_offset == max(first_open, self.start)

    @invariant()
    def readers_see_the_records(self) -> None:
        expected = [
            (offset, value) for offset, value in self.rows.items() if self.start <= offset < self.high_watermark
        ]
        assert [row for row in values(everything(self.log)) if row[0] >= self.start] == expected

    @invariant()
    def readers_of_committed_records_see_no_others(self) -> None:
        shown, at = [], self.start
        while data := self.log.read(at, 1 << 20, isolation=COMMITTED, at_least_one=True).data:
            shown += [row for row in committed(self.log, at) if row[0] >= at]
            at = list(batches(data))[-1].next_offset
        bound = self.log.last_stable_offset
        in_view = [row for row in self.rows.items() if self.start <= row[0] < bound and row[0] not in self.aborted]
        assert shown == in_view

    @invariant()
    def memory_is_counted(self) -> None:
        segments = self.log._segments
        assert self.log.size == sum(each.size for each in segments)
        assert self.log._held == sum(each.memory for each in segments)
        assert self.log._held <= self.memory.used


LogMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=25)
TestLog = LogMachine.TestCase


def refused(code: ErrorCode, action: object, *arguments: object, **more: object) -> LogError:
    with pytest.raises(LogError) as refusal:
        action(*arguments, **more)  # type: ignore[operator]
    assert refusal.value.code is code
    return refusal.value


def test_a_read_gives_bytes_to_the_byte_as_kafka_does() -> None:
    log = a_log()
    for value in (b"one", b"two", b"three"):
        put(log, made([value]))
    size = len(made([b"one"]))

    def read(offset: int, most: int, *, at_least_one: bool = True, cut: bool = False) -> int:
        return len(log.read(offset, most, isolation=UNCOMMITTED, at_least_one=at_least_one, cut=cut).data)

    assert [read(0, most) for most in (0, size - 1, size, size + 5)] == [size, size, size, size + 5]
    assert [read(0, most, at_least_one=False) for most in (0, size - 1, size)] == [0, 0, size]
    assert read(0, size - 1, at_least_one=False, cut=True) == size - 1
    assert [read(offset, 1 << 20) for offset in range(4)] == [3 * size + 2, 2 * size + 2, size + 2, 0]
    assert log.readable(1, UNCOMMITTED, 1 << 20) == 2 * size + 2
    for offset in (-1, 4):
        refused(ErrorCode.OFFSET_OUT_OF_RANGE, read, offset, 100)


def test_sequences_follow_each_other() -> None:
    log = a_log()

    def send(sequence: int, count: int = 2, epoch: int = 0, producer: int = 7) -> int:
        data = made([b"v"] * count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
        return put(log, data)

    assert [send(sequence) for sequence in (7, 9, 11, 13, 15, 17)] == [0, 2, 4, 6, 8, 10]
    assert [send(sequence) for sequence in (9, 17)] == [2, 10]
    for sequence in (7, 16, 18, 20):  # forgotten, overlapping, a gap
        refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, send, sequence)
    refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, send, 3, epoch=1)
    assert send(0, epoch=1) == 12
    refused(ErrorCode.INVALID_PRODUCER_EPOCH, send, 19)
    assert [send(2**31 - 2, 3, producer=8), send(1, producer=8)] == [14, 17]  # 0 follows 2^31 - 1
    log.delete_before(-1)
    refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, send, 9, epoch=1)  # producers outlive their records
    log.producers.expire(NOW + 99, 100)
    refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, send, 9, epoch=1)
    log.producers.expire(NOW + 100, 100)
    assert send(9, epoch=1) == 19


def test_a_duplicate_is_answered_with_its_first_place_and_time() -> None:
    log = a_log()
    data = made([b"v"], producer_id=7, producer_epoch=0, base_sequence=0)
    appended(log, data, now=NOW + 5)
    assert appended(log, data, now=NOW + 9).append_time == NOW


def test_transactions_keep_others_out() -> None:
    log = a_log()
    head: dict[str, Any] = {"producer_id": 7, "producer_epoch": 1}
    put(log, made(bits=TRANSACTIONAL, base_sequence=0, **head))
    assert log.producers.has_open_transaction(7, 1)
    assert not log.producers.has_open_transaction(7, 0)
    refused(ErrorCode.INVALID_TXN_STATE, put, log, made(base_sequence=1, **head))
    for marker, code in (
        (EndMarker(7, 0, 5, True), ErrorCode.INVALID_PRODUCER_EPOCH),
        (EndMarker(7, 1, 4, True), ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ):
        if code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
            log.append_marker(EndMarker(7, 1, 5, True), leader_epoch=0, now=NOW)
        refused(code, log.append_marker, marker, leader_epoch=0, now=NOW)
    assert not log.producers.has_open_transaction(7, 1)


def test_a_marker_above_the_high_watermark_keeps_the_last_stable_offset_down() -> None:
    log = a_log()
    put(log, made([b"a", b"b"], bits=TRANSACTIONAL, producer_id=7, producer_epoch=0, base_sequence=0))
    log.hold_high_watermark(2)
    log.append_marker(EndMarker(7, 0, 0, True), leader_epoch=0, now=NOW)
    assert (log.high_watermark, log.last_stable_offset) == (2, 0)
    log.hold_high_watermark(3)
    assert log.last_stable_offset == 3
    log.hold_high_watermark(1)
    assert log.high_watermark == 3


def test_offsets_are_found_by_time() -> None:
    log = a_log(segment_bytes=200)
    assert finished(log.offset_for(MAX_TIMESTAMP, UNCOMMITTED)) is None
    for stamps in ([0, 10], [5, 2], [30, 20], [25, 28]):
        put(log, made([b"a", b"b"], timestamps=stamps))
    found = [finished(log.offset_for(NOW + after, UNCOMMITTED)) for after in (-5, 1, 10, 11, 30, 31)]
    assert [each and each.offset for each in found] == [0, 1, 1, 4, 4, None]
    assert finished(log.offset_for(MAX_TIMESTAMP, UNCOMMITTED)) == FoundRecord(4, NOW + 30, 0)
    assert finished(log.offset_for(LATEST, UNCOMMITTED)) == FoundRecord(8, -1, 0)
    assert finished(log.offset_for(EARLIEST, UNCOMMITTED)) == FoundRecord(0, -1, 0)
    assert finished(log.offset_for(LATEST_TIERED, UNCOMMITTED)) == FoundRecord(-1)
    assert finished(log.offset_for(NOW + 5, UNCOMMITTED)) == FoundRecord(1, NOW + 10, 0)
    log.delete_before(5)
    assert finished(log.offset_for(EARLIEST, UNCOMMITTED)) == FoundRecord(5, -1, 0)
    assert finished(log.offset_for(NOW, UNCOMMITTED)) == FoundRecord(5, NOW + 20, 0)


def test_version_0_lists_the_starts_of_segments() -> None:
    log = a_log(segment_bytes=100)
    for after in range(3):
        put(log, made([b"value" * 4]), now=NOW + after)
    assert log.offsets_before(LATEST, 9, NOW + 9) == [3, 2, 1, 0]
    assert log.offsets_before(EARLIEST, 9, NOW + 9) == [0]
    assert log.offsets_before(NOW + 1, 1, NOW + 9) == [1]
    assert log.offsets_before(NOW - 1, 9, NOW + 9) == []


def test_epochs_end_where_the_next_begins() -> None:
    log = a_log()
    put(log, made())
    log.begin_epoch(3)
    log.begin_epoch(4)  # 3 wrote nothing
    put(log, made(), epoch=4)
    log.begin_epoch(6)
    ends = [log.epoch_end(epoch) for epoch in (-1, 0, 3, 4, 5, 6, 7)]
    assert ends == [EpochStart(*each) for each in ((-1, -1), (0, 1), (0, 1), (4, 2), (4, 2), (6, 2), (-1, -1))]
    log.delete_before(2)
    assert log.epoch_end(4) == EpochStart(4, 2)


def test_retention_deletes_whole_segments() -> None:
    log = a_log(segment_bytes=100, retention_bytes=170, retention_ms=1000)
    for after in (100, 200, 300):
        put(log, made([b"value" * 4], timestamps=[after]))
    size = log.size // 3
    log.apply_retention(NOW)
    assert (log.start, log.size) == (1, 2 * size)
    log.apply_retention(NOW + 1201)
    assert (log.start, log.end, log.size) == (2, 3, size)
    log.apply_retention(NOW + 1301)
    assert (log.start, log.end, log.size) == (3, 3, 0)
    assert put(log, made()) == 3


def test_retention_stays_below_the_high_watermark() -> None:
    log = a_log(segment_bytes=100, retention_ms=0)
    put(log, made([b"value" * 4]))
    log.hold_high_watermark(1)
    put(log, made([b"value" * 4]))
    log.apply_retention(NOW + 9)
    assert log.start == 1
    log.hold_high_watermark(None)
    log.apply_retention(NOW + 9)
    assert log.start == 2


def test_a_segment_ends_with_its_time() -> None:
    log = a_log(segment_ms=1000, retention_ms=1000)
    put(log, made(timestamps=[0]))
    put(log, made(timestamps=[1001]))
    log.apply_retention(NOW + 1500)
    assert log.start == 1


def test_records_are_deleted_up_to_the_high_watermark() -> None:
    log = a_log()
    for _ in range(3):
        put(log, made([b"a", b"b"]))
    assert log.delete_before(3) == 3
    assert values(log.read(3, 1 << 20, isolation=UNCOMMITTED, at_least_one=True).data)[0][0] == 2  # its batch is whole
    refused(ErrorCode.OFFSET_OUT_OF_RANGE, log.read, 2, 1, isolation=UNCOMMITTED, at_least_one=True)
    for offset in (7, -2):
        refused(ErrorCode.OFFSET_OUT_OF_RANGE, log.delete_before, offset)
    assert log.delete_before(-1) == 6
    compacted = a_log(deletes=False, compacts=True)
    refused(ErrorCode.POLICY_VIOLATION, compacted.delete_before, 0)


def test_memory_is_bounded_and_given_back() -> None:
    memory = Memory(100_000)
    log = a_log(memory)
    while memory.has_room(6000):
        put(log, made([bytes(5000)]))
    refusal = refused(ErrorCode.POLICY_VIOLATION, put, log, made([bytes(9000)]))
    assert "records.memory.max.bytes (100000)" in refusal.message
    assert 90_000 < memory.used <= 100_000
    end = log.end
    log.append_marker(EndMarker(7, 0, 0, True), leader_epoch=0, now=NOW)  # transactions end all the same
    assert len(values(everything(log))) == end
    log.delete_before(-1)
    assert memory.used < 3000
    put(log, made([bytes(5000)]))
    log.close()
    assert memory.used == 0


def test_append_times_are_those_of_the_log() -> None:
    log = a_log(timestamp_type=TimestampType.LOG_APPEND_TIME)
    assert appended(log, made(timestamps=[-99]), now=NOW + 7).append_time == NOW + 7
    (batch,) = batches(everything(log))
    assert batch.crc_is_right and batch.stamps_append_time and batch.max_timestamp == NOW + 7
    assert finished(log.offset_for(NOW + 7, UNCOMMITTED)) == FoundRecord(0, NOW + 7, 0)


def test_a_wrong_largest_timestamp_is_put_right() -> None:
    log = a_log()
    put(log, changed(made(timestamps=[5]), max_timestamp=NOW + 999))
    assert Batch.read(everything(log)).max_timestamp == NOW + 5
    assert Batch.read(everything(log)).crc_is_right
