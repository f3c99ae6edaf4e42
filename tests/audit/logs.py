"""Readers of an audit log, and a small cluster that writes one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from minicontroller.audit.event import AuditEvent, Decision, Effect, RecordedState, SnapshotBegin, SnapshotEnd, encode
from minicontroller.audit.reading import read_all
from minicontroller.audit.replay import Replay
from minicontroller.audit.verifying import Verification
from minicontroller.cluster.entities import Topic
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes.topics import uuid_text

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"


def events_in(folder: Path) -> list[AuditEvent]:
    """All of them; every line must be one."""
    events = []
    for located in read_all([folder]):
        assert located.event is not None, located
        events.append(located.event)
    return events


def decisions_in(folder: Path) -> list[Decision]:
    return [event for event in events_in(folder) if isinstance(event, Decision)]


def found(*paths: Path) -> list[str]:
    """Return the findings of `verify`, by kind."""
    return [finding.kind for finding in Verification(paths).findings()]


def replayed(events: Sequence[AuditEvent]) -> Replay:
    """Replay a log that must have no findings."""
    replay = Replay()
    for event in events:
        assert list(replay.apply(event)) == [], event
    return replay


def plain(topic: Topic) -> tuple[Any, ...]:
    return (
        uuid_text(topic.topic_id),
        tuple(partition.replicas for partition in topic.partitions),
        dict(topic.configs),
        topic.marked_for_deletion,
    )


def shown(image: Image) -> dict[str, tuple[Any, ...]]:
    """Return the part of an image that the audit log records."""
    return {name: plain(topic) for name, topic in image.topics.items()}


def told(topics: Mapping[str, RecordedState]) -> dict[str, tuple[Any, ...]]:
    return {
        name: (state.topic_id, state.replicas, state.configs, state.marked_for_deletion)
        for name, state in topics.items()
    }


# ------------------------------------------------------------------ made by hand


def a_state(partitions: int = 1, **changed: Any) -> RecordedState:
    values: dict[str, Any] = {
        "topic_id": CLUSTER,
        "replicas": ((1,),) * partitions,
        "configs": {},
        "marked_for_deletion": False,
        "internal": False,
        "created_ms": 1,
    }
    return RecordedState(**(values | changed))


def stamp(sequence: int, epoch: int = 1, **changed: Any) -> dict[str, Any]:
    values = {
        "schema_version": 1,
        "cluster_id": CLUSTER,
        "epoch": epoch,
        "sequence": sequence,
        "time_ms": sequence,
        "decided_node": 1,
    }
    return values | changed


def an_empty_snapshot(epoch: int = 1) -> list[AuditEvent]:
    return [
        SnapshotBegin(**stamp(1, epoch), reason="elected", cluster_size=1, topics=0),
        SnapshotEnd(**stamp(2, epoch), topics=0),
    ]


def a_creation(sequence: int, name: str = "t", epoch: int = 1, **changed: Any) -> Decision:
    values: dict[str, Any] = {
        **stamp(sequence, epoch),
        "request": sequence,
        "element": 0,
        "elements": 1,
        "principal": "User:alice",
        "client_id": "c",
        "client_host": "127.0.0.1",
        "software": "",
        "listener": "PLAINTEXT",
        "received_node": 1,
        "api": "CreateTopics",
        "api_version": 7,
        "operation": "create_topic",
        "resource": "topic",
        "name": name,
        "requested": None,
        "config_operations": None,
        "validate_only": False,
        "asked_ms": sequence,
        "asked_created_ms": None,
        "cluster_size": 1,
        "before": None,
        "after": a_state(),
        "assumed": (),
        "policy": None,
        "effect": Effect.APPLIED,
        "error_code": 0,
        "error": "NONE",
        "message": None,
        "latency_us": 5,
    }
    return Decision(**(values | changed))


def a_log(count: int = 5, epoch: int = 1) -> list[AuditEvent]:
    """A snapshot of nothing, and topics t3, t4..."""
    return an_empty_snapshot(epoch) + [a_creation(sequence, f"t{sequence}", epoch) for sequence in range(3, 3 + count)]


def write(file: Path, events: Sequence[AuditEvent]) -> Path:
    file.write_bytes(b"".join(map(encode, events)))
    return file


def changed(event: AuditEvent, **values: Any) -> AuditEvent:
    made: AuditEvent = msgspec.structs.replace(event, **values)
    return made
