"""What events tell of topics' states: the rows that the topics' history is made of.

Rule: a row where an event tells something else than the event before it that spoke of the topic, as far as one reader of the file can know. So
a topic's state at any place is that of its last row before it, unless a snapshot without it, or a gap, lies between. Events that are refused
tell of a state, too: after a gap it may be all there is.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql.types import BinaryType, BooleanType, IntegerType, LongType, StringType, StructField, StructType

from ...policies.audit_event import (
    AuditEvent,
    Decision,
    Effect,
    Observed,
    Removal,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotTopics,
    State,
)
from ..tables import TOPIC_HISTORY
from .arrow import arrow_schema
from .limits import microseconds

SNAPSHOT = "snapshot"
SEEN = "seen"
"""The cause where an event shows a state that it did not make."""

MENTIONS = StructType(
    [
        StructField("epoch", IntegerType(), nullable=False),
        StructField("sequence", LongType(), nullable=False),
        TOPIC_HISTORY["from_time"],
        StructField("in_snapshot", BooleanType(), nullable=False),
        StructField("cause", StringType(), nullable=False),
        StructField("principal", StringType()),
        StructField("digest", BinaryType()),
        TOPIC_HISTORY["topic"],
        *(
            StructField(name, TOPIC_HISTORY[name].dataType)
            for name in ("topic_id", "replicas", "configs", "marked_for_deletion", "internal", "created")
        ),
    ]
)
"""`digest` is null where there is no topic; equal ones are the same state, its time of creation aside."""

SCHEMA = arrow_schema(MENTIONS)


class Mention(NamedTuple):
    """One row, before it is one."""

    event: AuditEvent
    topic: str
    state: State | None
    cause: str
    principal: str | None = None
    in_snapshot: bool = False


class Teller:
    """Follows the events of one part of a file."""

    def __init__(self) -> None:
        self._place: tuple[str, int, int] = ("", -1, -1)
        self._told: dict[str, State | None] = {}
        """What was told since the events follow each other without a gap."""

    def mentions(self, events: Sequence[AuditEvent]) -> Iterator[Mention]:
        for event in events:
            if (event.cluster_id, event.epoch, event.sequence - 1) != self._place:
                self._told.clear()
            self._place = event.cluster_id, event.epoch, event.sequence
            yield from self._mentions(event)

    def _mentions(self, event: AuditEvent) -> Iterator[Mention]:
        match event:
            case Decision(resource="topic"):
                cause, principal = (
                    (event.operation, event.principal) if event.effect is Effect.APPLIED else (SEEN, None)
                )
                yield from self._unless_told(Mention(event, event.name, event.after, cause, principal))
            case Removal():
                yield from self._unless_told(Mention(event, event.topic, None, "removal"))
            case Observed():
                yield from self._unless_told(Mention(event, event.topic, event.after, "observed"))
            case SnapshotTopics():
                for each in event.topics:
                    if each.state is not None:
                        yield Mention(event, each.topic, each.state, SNAPSHOT, in_snapshot=True)
            case SnapshotBegin() | SnapshotEnd():
                self._told.clear()

    def _unless_told(self, mention: Mention) -> Iterator[Mention]:
        topic, state = mention.topic, mention.state
        if topic not in self._told or self._told[topic] != state:
            self._told[topic] = state
            yield mention


def mention_rows(mentions: Sequence[Mention]) -> pa.RecordBatch:
    """Raises pa.ArrowInvalid, OverflowError or ValueError if a value does not fit into its column."""
    states = [mention.state for mention in mentions]

    def of_state(name: str) -> list[Any]:
        return [None if state is None else getattr(state, name) for state in states]

    columns: dict[str, list[Any]] = {
        "epoch": [mention.event.epoch for mention in mentions],
        "sequence": [mention.event.sequence for mention in mentions],
        "from_time": [microseconds(mention.event.time_ms) for mention in mentions],
        "in_snapshot": [mention.in_snapshot for mention in mentions],
        "cause": [mention.cause for mention in mentions],
        "principal": [mention.principal for mention in mentions],
        "digest": list(map(digest, states)),
        "topic": [mention.topic for mention in mentions],
        "topic_id": of_state("topic_id"),
        "replicas": of_state("replicas"),
        "configs": [None if state is None else list(state.configs.items()) for state in states],
        "marked_for_deletion": of_state("marked_for_deletion"),
        "internal": of_state("internal"),
        "created": [None if created is None else microseconds(created) for created in of_state("created_ms")],
    }
    arrays = [pa.array(columns[field.name], field.type) for field in SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def digest(state: State | None) -> bytes | None:
    if state is None:
        return None
    told = (state.topic_id, state.replicas, sorted(state.configs.items()), state.marked_for_deletion)
    return blake2b(msgspec.msgpack.encode(told), digest_size=16).digest()
