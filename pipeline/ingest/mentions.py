"""What events tell of topics' states: the rows that the topics' history is made of.

Rule: a row where an event tells something else than the event before it that spoke of the topic, as
far as one reader of the file can know. So a topic's state at any place is that of its last row
before it, unless a snapshot without it, or a gap, lies between. Events that are refused tell of a
state, too: after a gap it may be all there is.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ...audit.event import (
    AuditEvent,
    Decision,
    Effect,
    Observed,
    RecordedState,
    Removal,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotTopics,
)
from ..tables import TOPIC_HISTORY
from .arrow import arrow_schema
from .limits import microseconds

FOLDER = "_state/mentions"
SNAPSHOT = "snapshot"
SEEN = "seen"
"""The cause where an event shows a state that it did not make."""
REASSIGNMENT = "reassignment"
"""The cause where a reassignment went on or ended."""

BUCKETS = 4096
"""As many portions a cluster's topic history can be made in."""
_HISTORY = arrow_schema(TOPIC_HISTORY)
SCHEMA = pa.schema(
    [
        pa.field("bucket", pa.int32(), nullable=False),
        pa.field("epoch", pa.int32(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        _HISTORY.field("from_time"),
        pa.field("in_snapshot", pa.bool_(), nullable=False),
        pa.field("cause", pa.string(), nullable=False),
        pa.field("principal", pa.string()),
        pa.field("digest", pa.int64(), nullable=False),
        _HISTORY.field("topic"),
        *(
            _HISTORY.field(name).with_nullable(True)
            for name in ("topic_id", "replicas", "configs", "marked_for_deletion", "internal", "created")
        ),
    ]
)
"""`bucket` depends on the topic's name alone. `digest` differs where what is told differs; it is 0,
`topic_id` null and all after it, where there is no topic. Configs are in the order of their keys.
"""
SORTED_BY = ("bucket",)
"""In files: who needs some of the buckets reads little else."""


class Mention(NamedTuple):
    """What an event tells of one topic, before it is a row."""

    event: AuditEvent
    topic: str
    state: RecordedState | None
    cause: str
    principal: str | None = None
    in_snapshot: bool = False


class Teller:
    """Follows the events of a part of a file, and tells what they say of topics."""

    def __init__(self) -> None:
        self._cluster_id = ""
        self._place = (-1, -1)
        self._told: dict[str, RecordedState | None] = {}
        """What was told since the events follow each other without a gap."""

    def forget(self) -> None:
        """Tell everything anew, because what was told last came to nothing."""
        self._told.clear()

    def mentions(self, events: Sequence[AuditEvent]) -> list[Mention]:
        found: list[Mention] = []
        for event in events:
            if (event.epoch, event.sequence - 1) != self._place or event.cluster_id != self._cluster_id:
                self._told.clear()
            self._cluster_id, self._place = event.cluster_id, (event.epoch, event.sequence)
            mention = _mention(event)
            if mention is None:
                if isinstance(event, SnapshotTopics):
                    found += _of_snapshot(event)
                elif isinstance(event, SnapshotBegin | SnapshotEnd):
                    self._told.clear()
            elif self._told.get(mention.topic, ...) != mention.state:
                self._told[mention.topic] = mention.state
                found.append(mention)
        return found


def _mention(event: AuditEvent) -> Mention | None:
    if isinstance(event, Decision):
        if event.resource != "topic" or not event.name:
            return None
        if event.effect is Effect.APPLIED:
            return Mention(event, event.name, event.after, event.operation, event.principal)
        return Mention(event, event.name, event.after, SEEN)
    if isinstance(event, Removal):
        return Mention(event, event.topic, None, "removal")
    if isinstance(event, Observed):
        return Mention(event, event.topic, event.after, REASSIGNMENT if event.reassignment else "observed")
    return None


def _of_snapshot(event: SnapshotTopics) -> Iterator[Mention]:
    states = {each.topic: each.state for each in event.topics if each.state is not None}
    for topic, state in states.items():
        yield Mention(event, topic, state, SNAPSHOT, in_snapshot=True)


def mention_rows(mentions: Sequence[Mention]) -> pa.RecordBatch:
    """Make rows of mentions. Raises pa.ArrowInvalid, OverflowError or ValueError if a value does
    not fit into its column.
    """
    events, topics, states, causes, principals, in_snapshot = zip(*mentions, strict=True)
    is_there = pa.array([state is not None for state in states])
    there = [state for state in states if state is not None]
    at = pc.if_else(is_there, pc.subtract(pc.cumulative_sum(is_there.cast(pa.int64())), 1), None)
    columns: dict[str, Any] = {
        "bucket": [crc32(topic.encode()) % BUCKETS for topic in topics],
        "digest": [0 if state is None else _digest(state) for state in states],
        "epoch": [event.epoch for event in events],
        "sequence": [event.sequence for event in events],
        "from_time": [microseconds(event.time_ms) for event in events],
        "topic": topics,
        "cause": causes,
        "principal": principals,
        "in_snapshot": in_snapshot,
        **{name: array.take(at) for name, array in _state_columns(there).items()},
    }
    arrays = [
        column if isinstance(column := columns[field.name], pa.Array) else pa.array(column, field.type)
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _digest(state: RecordedState) -> int:
    told = state.topic_id, state.replicas, sorted(state.configs.items()), state.marked_for_deletion
    return int.from_bytes(blake2b(msgspec.msgpack.encode(told), digest_size=8).digest(), signed=True)


def _state_columns(states: Sequence[RecordedState]) -> dict[str, pa.Array]:
    columns: dict[str, list[Any]] = {
        "topic_id": [state.topic_id for state in states],
        "replicas": [state.replicas for state in states],
        "configs": [sorted(state.configs.items()) for state in states],
        "marked_for_deletion": [state.marked_for_deletion for state in states],
        "internal": [state.internal for state in states],
        "created": [None if state.created_ms is None else microseconds(state.created_ms) for state in states],
    }
    return {name: pa.array(column, SCHEMA.field(name).type) for name, column in columns.items()}
