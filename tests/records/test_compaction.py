"""Compaction: the last record of each key stays, at its offset."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from minicontroller.process.steps import finished
from minicontroller.records.batches import batches
from minicontroller.records.control import EndMarker
from minicontroller.records.log import PartitionLog
from minicontroller.records.records import records
from tests.records.made import NOW, a_log, everything, made, put

KEPT_MS = 1000
TRANSACTIONAL = 0x10
Row = tuple[int, bytes | None, bytes | None]


def fill(log: PartitionLog, rows: Sequence[tuple[bytes, bytes | None]], **head: Any) -> None:
    keys, values = [key for key, _ in rows], [value for _, value in rows]
    put(log, made(values, keys=keys, **head))


def rows(log: PartitionLog) -> list[Row]:
    return [
        (batch.base_offset + each.offset_delta, each.key, each.value)
        for batch in batches(everything(log))
        if not batch.is_control
        for each in records(batch)
    ]


key_values = st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.none() | st.binary(max_size=5))


@given(st.lists(st.lists(key_values, min_size=1, max_size=4), min_size=1, max_size=10), st.integers(1, 3))
def test_the_last_record_of_each_key_stays(sent: list[list[tuple[bytes, bytes | None]]], times: int) -> None:
    log = a_log(segment_bytes=200, compacts=True, min_cleanable_dirty_ratio=0.0, delete_retention_ms=KEPT_MS)
    for batch in sent:
        fill(log, batch)
    before = rows(log)
    for _ in range(times):
        finished(log.compact(NOW))
    after = rows(log)
    latest = {key: (offset, value) for offset, key, value in before}
    assert {key: (offset, value) for offset, key, value in after} == latest  # tombstones stay for a while
    assert set(after) <= set(before)
    assert after == sorted(after)
    assert log.end == sum(map(len, sent))
    assert all(batch.crc_is_right for batch in batches(everything(log)))


def of_segments(*sent: Sequence[tuple[bytes, bytes | None]]) -> PartitionLog:
    """A log whose batches are each in a segment of its own, and an active segment behind them."""
    log = a_log(segment_bytes=150, compacts=True, delete_retention_ms=KEPT_MS)
    for batch in (*sent, [(b"last", b"value" * 9)]):
        fill(log, batch)
    return log


def test_tombstones_go_after_their_time() -> None:
    log = of_segments([(b"a", b"value" * 9)], [(b"a", None), (b"b", b"value" * 9)], [(b"c", b"value" * 9)])
    finished(log.compact(NOW))
    assert [row[:2] for row in rows(log)] == [(1, b"a"), (2, b"b"), (3, b"c"), (4, b"last")]
    for now, offsets in ((NOW + KEPT_MS - 1, [1, 2, 3, 4]), (NOW + KEPT_MS, [2, 3, 4])):
        log._cleaning.first_dirty = 0
        finished(log.compact(now))
        assert [row[0] for row in rows(log)] == offsets


def test_the_active_segment_and_young_ones_are_left_alone() -> None:
    log = a_log(segment_bytes=150, compacts=True, min_compaction_lag_ms=100, min_cleanable_dirty_ratio=0.0)
    for after in (0, 50, 100):
        put(log, made([b"value" * 9], timestamps=[after]))
    finished(log.compact(NOW + 120))
    assert [row[0] for row in rows(log)] == [0, 1, 2]
    finished(log.compact(NOW + 151))
    assert [row[0] for row in rows(log)] == [1, 2]


def test_a_producers_last_batch_stays_for_its_sequence() -> None:
    log = a_log(segment_bytes=150, compacts=True)
    fill(log, [(b"a", b"value" * 9)], producer_id=7, producer_epoch=0, base_sequence=0)
    fill(log, [(b"a", b"value" * 9)])
    fill(log, [(b"a", b"value" * 9)])
    finished(log.compact(NOW))
    found = list(batches(everything(log)))
    assert [(batch.base_offset, batch.count, batch.last_sequence) for batch in found][:1] == [(0, 0, 0)]


def test_aborted_records_go_and_open_transactions_wait() -> None:
    log = a_log(segment_bytes=150, compacts=True)
    head = {"producer_id": 7, "producer_epoch": 0, "bits": TRANSACTIONAL}
    fill(log, [(b"a", b"kept" * 9)])
    fill(log, [(b"a", b"aborted" * 9)], base_sequence=0, **head)
    log.append_marker(EndMarker(7, 0, 0, False), leader_epoch=0, now=NOW)
    fill(log, [(b"b", b"open" * 9)], base_sequence=1, **head)
    fill(log, [(b"b", b"value" * 9)])
    finished(log.compact(NOW))
    assert [row[0] for row in rows(log)] == [0, 3, 4]
