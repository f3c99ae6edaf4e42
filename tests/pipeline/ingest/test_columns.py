"""The columns of events are what msgspec reads of each line, whatever stands in it; what does not
fit is bad, and nothing else.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.audit.event import (
    MAX_LINE_BYTES,
    AuditEvent,
    Decision,
    Dropped,
    NamedState,
    Observed,
    RecordedState,
    Removal,
    Requested,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotTopics,
    UnreadableLineError,
    decode,
    encode,
)
from minicontroller.pipeline.ingest.columns import SCHEMA, columns
from minicontroller.pipeline.ingest.limits import INT_MAX, LONG_MAX, MAX_CLUSTER_ID, MAX_MS, MIN_MS, NO_VALUE
from minicontroller.pipeline.ingest.sequence_ranges import SequenceRange
from minicontroller.pipeline.ingest.staging import extend_ranges, markers_in
from minicontroller.pipeline.ingest.staging_result import Marker, StagedRange
from tests.audit.logs import a_creation, a_log, a_state
from tests.pipeline.ingest.json_lines import a_line

RENAMED = {"policy_message": "message", "policy_us": "microseconds"}
OF_POLICY = ("policy", "decision", "policy_hash", "rule", "policy_message", "policy_us")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SEEDS = st.integers(0, 2**64)

Row = dict[str, Any]


@given(st.lists(st.tuples(SEEDS, st.sampled_from([0.0, 0.005, 0.02, 0.3])), max_size=12))
@settings(max_examples=100)
def test_columns_are_what_msgspec_reads(seeds: list[tuple[int, float]]) -> None:
    """Each line is a row with msgspec's values, in the order of the lines, or bad; bad are those
    that msgspec refuses, and those of which a value is beyond its column.
    """
    lines = [a_line(Random(seed), oddity) for seed, oddity in seeds]
    block = columns(lines)
    block.rows.validate(full=True)
    expected = {index: row for index, line in enumerate(lines) if (row := row_of(line)) is not None}
    assert block.rows.to_pylist(maps_as_pydicts=None) == list(expected.values())
    assert [bad.number for bad in block.bad] == [index for index in range(len(lines)) if index not in expected]
    assert [bad.line for bad in block.bad] == [lines[bad.number] for bad in block.bad]
    assert all(bad.reason for bad in block.bad)


def row_of(line: bytes) -> Row | None:
    """Make a row by hand; None if the line is none."""
    try:
        event = decode(line)
        text = line.decode()
    except (UnreadableLineError, UnicodeDecodeError):
        return None
    if not _has_a_place(event):
        return None
    row = {field.name: getattr(event, field.name, None) for field in SCHEMA} | {
        "kind": event.__struct_config__.tag,
        "event": text,
        "time": _time(event.time_ms),
        "day": EPOCH.date() + timedelta(days=event.time_ms // 86_400_000),
    }
    for name in ("before", "after"):
        state = getattr(event, name, None)
        row |= {name: _state(state), f"partitions_{name}": None if state is None else len(state.replicas)}
    row["topics"] = None
    if isinstance(event, Removal | Observed):
        row["name"] = event.topic
    if isinstance(event, SnapshotTopics):
        row["topics"] = [_named(topic) for topic in event.topics]
    if isinstance(event, Decision):
        row |= _of_decision(event)
    return row if all(_fits(row[field.name], field.type) for field in SCHEMA) else None


def _has_a_place(event: AuditEvent) -> bool:
    return (
        0 <= event.epoch <= INT_MAX
        and 1 <= event.sequence <= LONG_MAX
        and 1 <= len(event.cluster_id) <= MAX_CLUSTER_ID
        and event.cluster_id != NO_VALUE
        and MIN_MS <= event.time_ms <= MAX_MS
        and (not isinstance(event, Dropped) or 1 <= event.first_sequence <= event.last_sequence <= LONG_MAX)
    )


def _of_decision(event: Decision) -> Row:
    row: Row = {name: getattr(event.policy, RENAMED.get(name, name), None) for name in OF_POLICY}
    row["asked"] = event.asked_ms is not None
    row["effect"] = event.effect.value
    row["findings"] = None if event.policy is None else msgspec.to_builtins(list(event.policy.findings))
    for name in ("config_operations", "config_operation_kinds", "delete_records_offsets", "reassignments"):
        row[name] = _pairs(getattr(event, name))
    row["requested"] = _requested(event.requested)
    return row


def _named(topic: NamedState) -> Row:
    return {"topic": topic.topic, "state": _state(topic.state)}


def _state(state: RecordedState | None) -> Row | None:
    if state is None:
        return None
    row: Row = msgspec.structs.asdict(state) | {"replicas": _lists(state.replicas), "configs": _pairs(state.configs)}
    ms = row.pop("created_ms")
    return row | {"created": None if ms is None else _time(ms)}


def _requested(requested: Requested | None) -> Row | None:
    if requested is None:
        return None
    maps = {name: _pairs(getattr(requested, name)) for name in ("configs", "default_configs")}
    return msgspec.structs.asdict(requested) | {"replicas": _lists(requested.replicas)} | maps


def _lists(replicas: Sequence[Sequence[int]]) -> list[list[int]]:
    return [list(each) for each in replicas]


def _pairs(pairs: dict[Any, Any] | None) -> list[tuple[Any, Any]] | None:
    if pairs is None:
        return None
    return [(key, list(value) if isinstance(value, tuple) else value) for key, value in pairs.items()]


def _time(ms: int) -> datetime | int:
    """A time that no calendar has stays a number, which fits into no column of times."""
    return EPOCH + timedelta(milliseconds=ms) if MIN_MS <= ms <= MAX_MS else ms


def _fits(value: Any, type_: pa.DataType) -> bool:
    """Whether a value is within the bounds of its column."""
    if value is None:
        return True
    if pa.types.is_integer(type_):
        return bool(-(2 ** (type_.bit_width - 1)) <= value < 2 ** (type_.bit_width - 1))
    if pa.types.is_timestamp(type_):
        return isinstance(value, datetime)
    if pa.types.is_list(type_):
        return all(_fits(each, type_.value_type) for each in value)
    if pa.types.is_map(type_):
        return all(_fits(key, type_.key_type) and _fits(each, type_.item_type) for key, each in value)
    if pa.types.is_struct(type_):
        return all(_fits(value[field.name], field.type) for field in type_)
    return True


@given(st.lists(st.tuples(SEEDS, st.integers(0, 1)), max_size=12))
def test_stretches_and_marks_are_those_of_the_events(seeds: list[tuple[int, int]]) -> None:
    """Taken from columns, block by block, they are those that one finds event by event."""
    lines = [a_line(Random(seed), 0.0) for seed, _ in seeds]
    found: list[StagedRange] = []
    expected: list[StagedRange] = []
    for read in (0, 1):
        some = [line for line, (_, number) in zip(lines, seeds, strict=True) if number == read]
        for begin in range(0, len(some), 3):
            block = columns(some[begin : begin + 3])
            extend_ranges(found, block.rows, read)
            bad = {each.number for each in block.bad}
            events = [decode(line) for index, line in enumerate(some[begin : begin + 3]) if index not in bad]
            for event in events:
                _add(expected, event, read)
            assert list(markers_in(block.rows)) == [marker for event in events for marker in _markers(event)]
    assert found == expected


def _add(ranges: list[StagedRange], event: AuditEvent, read: int) -> None:
    last = ranges[-1] if ranges else None
    position = (event.cluster_id, event.epoch, event.sequence, read)
    if last is None or (last.cluster_id, last.epoch, last.range.last + 1, last.read) != position:
        span = SequenceRange(event.sequence, event.sequence, event.time_ms, event.time_ms)
        begins = event.sequence == 1 and isinstance(event, SnapshotBegin)
        last = StagedRange(event.cluster_id, event.epoch, span, event.decided_node, 0, begins, read)
        ranges.append(last)
    last.range.last, last.range.last_ms = event.sequence, event.time_ms
    last.decisions += isinstance(event, Decision)


def _markers(event: AuditEvent) -> list[Marker]:
    position = (event.cluster_id, event.epoch, event.sequence)
    if isinstance(event, Dropped):
        return [Marker(*position, "dropped", event.time_ms, event.reason, event.first_sequence, event.last_sequence)]
    if isinstance(event, SnapshotBegin | SnapshotEnd):
        return [Marker(*position, str(event.__struct_config__.tag), event.time_ms)]
    return []


def test_one_misfit_among_many_is_found() -> None:
    """The rest of a block stays as it is, in its order, wherever the misfit stands."""
    lines = [encode(event).strip() for event in a_log(100)]
    misfit = encode(a_creation(999, request=2**63)).strip()
    whole = columns(lines).rows
    for at in (0, 1, 50, len(lines)):
        block = columns([*lines[:at], misfit, *lines[at:]])
        assert block.rows.equals(whole)
        assert [(bad.number, bad.line) for bad in block.bad] == [(at, misfit)]
        assert block.bad[0].reason.startswith("a value does not fit into its column: ")


def test_a_topic_as_large_as_a_line() -> None:
    """The longest lines become rows as all others do."""
    replicas = tuple((number, number + 1, number + 2) for number in range(2_000_000_000, 2_000_100_000))
    state = a_state(replicas=replicas, configs={"k" * 1000: "v" * 1_000_000})
    line = encode(a_creation(1, before=state, after=state)).strip()
    assert MAX_LINE_BYTES // 2 < len(line) < MAX_LINE_BYTES
    block = columns([line, line])
    assert block.rows.to_pylist() == [row_of(line)] * 2
    assert not block.bad


@pytest.mark.parametrize("lines", [[], [b"bad"], [b"", b"{}"]])
def test_no_event_at_all(lines: list[bytes]) -> None:
    """A block may hold no event."""
    block = columns(lines)
    assert block.rows.num_rows == 0
    assert block.rows.schema == SCHEMA
    assert len(block.bad) == len(lines)
    found: list[StagedRange] = []
    extend_ranges(found, block.rows, 0)
    assert found == []
    assert list(markers_in(block.rows)) == []
