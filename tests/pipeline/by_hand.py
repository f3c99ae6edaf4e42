"""Tables made of events without an ingest: what a report reads, in a moment, with whatever a test
wants in it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from minicontroller.audit.event import (
    AuditEvent,
    Decision,
    Effect,
    NamedState,
    Observed,
    PolicyDecision,
    RecordedState,
    Removal,
    RuleFinding,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotTopics,
    encode,
)
from minicontroller.audit.replay import Replay
from minicontroller.pipeline.datafiles import NewFile
from minicontroller.pipeline.delta import Tables
from minicontroller.pipeline.location import Location
from minicontroller.pipeline.schemas import Table
from tests.audit.logs import a_creation

CLUSTER = "cluster-of-the-tests-0"
START_MS = 1_767_225_600_000
"""2026-01-01."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COPIED = (
    *("request", "element", "elements", "principal", "client_id", "client_host", "software", "listener"),
    *("received_node", "api", "api_version", "operation", "resource", "name", "validate_only", "cluster_size"),
    *("error_code", "error", "message", "latency_us", "enforced", "unjudged"),
)

Row = dict[str, Any]


# ------------------------------------------------------------------ events


def a_decision(sequence: int, name: str = "t", **changed: Any) -> Decision:
    """A creation by alice that was carried out, a second after the one before."""
    values: dict[str, Any] = {
        "cluster_id": CLUSTER,
        "time_ms": START_MS + 1000 * sequence,
        "asked_ms": START_MS,
        "software": "confluent-kafka-python/2.6",
        "listener": "CLIENTS",
        "cluster_size": 3,
        "after": a_state(),
        "latency_us": 2_000,
    }
    return a_creation(sequence, name, **(values | changed))


def a_refusal(
    sequence: int, name: str = "t", *, rule: str = "partitions", why: str = "Too many.", **changed: Any
) -> Decision:
    policy = a_verdict("violated", rule=rule, message=why)
    values: dict[str, Any] = {"after": None, "policy": policy, "effect": Effect.NONE, "error_code": 44, "message": why}
    return a_decision(sequence, name, **({"error": "POLICY_VIOLATION"} | values | changed))


def a_verdict(decision: str = "allowed", **changed: Any) -> PolicyDecision:
    values: dict[str, Any] = {
        "decision": decision,
        "policy": "rules.toml",
        "policy_hash": "0" * 64,
        "rule": "",
        "findings": (),
        "message": None,
        "microseconds": 50,
    }
    return PolicyDecision(**(values | changed))


def a_warning(rule: str, message: str = "Rather not.", action: str = "warn") -> RuleFinding:
    return RuleFinding(rule=rule, action=action, message=message)


def a_state(partitions: int = 1, **changed: Any) -> RecordedState:
    values: dict[str, Any] = {
        "topic_id": "A" * 22,
        "replicas": ((1,),) * partitions,
        "configs": {},
        "marked_for_deletion": False,
        "internal": False,
        "created_ms": START_MS,
    }
    return RecordedState(**(values | changed))


def changed(event: Any, **values: Any) -> Any:
    return msgspec.structs.replace(event, **values)


# ------------------------------------------------------------------ tables


def write_tables(folder: Path, events: Iterable[AuditEvent], others: Mapping[Table, list[Row]] | None = None) -> Tables:
    """As an ingest of these events would leave them; `others` are rows of problems and of the
    quarantine.
    """
    tables = Tables(Location.local(folder))
    by_cluster: dict[str, list[AuditEvent]] = defaultdict(list)
    for event in events:
        by_cluster[event.cluster_id].append(event)
    for log in by_cluster.values():
        log.sort(key=lambda event: (event.epoch, event.sequence))
    write(tables, Table.EVENTS, [event_row(event) for log in by_cluster.values() for event in log])
    write(tables, Table.TOPIC_HISTORY, [row for log in by_cluster.values() for row in topic_rows(log)])
    write(tables, Table.CONTROLLER_EPOCHS, [row for log in by_cluster.values() for row in epoch_rows(log)])
    for table, rows in (others or {}).items():
        write(tables, table, rows)
    return tables


def write(tables: Tables, table: Table, rows: list[Row]) -> None:
    """Write rows as the only ones of a table."""
    parts: dict[str | None, list[Row]] = defaultdict(list)
    for row in rows:
        parts[row["cluster_id"] if table.is_partitioned else None].append(row)
    files = []
    for cluster_id, held in parts.items():
        columns = {field.name: [row.get(field.name) for row in held] for field in table.in_files}
        file = NewFile(tables.location, table, cluster_id)
        file.write(pa.record_batch(columns, schema=table.in_files))
        files.append(file.finish())
    tables.commit(tables.snapshot(table), 1, files)


def time_of(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def event_row(event: AuditEvent) -> Row:
    row: Row = {name: getattr(event, name, None) for name in COPIED}
    row |= {name: getattr(event, name) for name in ("cluster_id", "epoch", "sequence", "decided_node")}
    row |= {"kind": event.__struct_config__.tag, "time": time_of(event.time_ms), "day": time_of(event.time_ms).date()}
    row["event"] = encode(event).decode().strip()
    if isinstance(event, Removal | Observed):
        row["name"] = event.topic
    if isinstance(event, Decision):
        row |= {"asked": event.asked_ms is not None, "effect": event.effect.value}
        row["partitions_before"] = None if event.before is None else len(event.before.replicas)
        row["partitions_after"] = None if event.after is None else len(event.after.replicas)
        if event.policy is not None:
            row |= {name: getattr(event.policy, name) for name in ("decision", "policy", "policy_hash", "rule")}
            row |= {"policy_message": event.policy.message, "policy_us": event.policy.microseconds}
            row["findings"] = [msgspec.structs.asdict(finding) for finding in event.policy.findings]
    return row


def topic_rows(log: list[AuditEvent]) -> Iterator[Row]:
    """One cluster's."""
    replay, current = Replay(), dict[str, tuple[RecordedState, AuditEvent]]()
    for event in log:
        list(replay.apply(event))
        for name in {*replay.topics, *current} if isinstance(event, SnapshotEnd) else touched(event):
            state = replay.topics.get(name)
            before = current.get(name)
            if state != (before and before[0]):
                if before is not None:
                    yield history_row(name, *before, event)
                current.pop(name, None)
                if state is not None:
                    current[name] = state, event
    for name, (state, event) in current.items():
        yield history_row(name, state, event, None)


def touched(event: AuditEvent) -> list[str]:
    match event:
        case Decision():
            return [event.name]
        case Removal() | Observed():
            return [event.topic]
        case _:
            return []


def history_row(name: str, state: RecordedState, began: AuditEvent, ended: AuditEvent | None) -> Row:
    row: Row = {
        "cluster_id": began.cluster_id,
        "topic": name,
        "topic_id": state.topic_id,
        "partitions": len(state.replicas),
        "replication_factor": len(state.replicas[0]) if state.replicas else 0,
        "replicas": [list(replicas) for replicas in state.replicas],
        "configs": list(state.configs.items()),
        "marked_for_deletion": state.marked_for_deletion,
        "internal": state.internal,
    }
    for prefix, event in (("from", began), ("until", ended)):
        if event is not None:
            cause = event.operation if isinstance(event, Decision) else str(event.__struct_config__.tag)
            row[f"{prefix}_cause"] = "snapshot" if cause.startswith("snapshot") else cause
            row |= {f"{prefix}_epoch": event.epoch, f"{prefix}_sequence": event.sequence}
            row[f"{prefix}_time"] = time_of(event.time_ms)
            row[f"{prefix}_principal"] = getattr(event, "principal", None)
    return row


def epoch_rows(log: list[AuditEvent]) -> Iterator[Row]:
    """One cluster's."""
    by_epoch: dict[int, list[AuditEvent]] = defaultdict(list)
    for event in log:
        by_epoch[event.epoch].append(event)
    for epoch, events in by_epoch.items():
        yield {
            "cluster_id": events[0].cluster_id,
            "epoch": epoch,
            "node": events[0].decided_node,
            "first_sequence": events[0].sequence,
            "last_sequence": events[-1].sequence,
            "events": len(events),
            "decisions": sum(isinstance(event, Decision) for event in events),
            "missing": events[-1].sequence - len(events),
            "duplicates": 0,
            "began": time_of(events[0].time_ms),
            "ended": time_of(events[-1].time_ms),
            "begins_with_snapshot": isinstance(events[0], SnapshotBegin),
        }


def a_snapshot_of(sequence: int, topics: Mapping[str, RecordedState], **values: Any) -> SnapshotTopics:
    held = tuple(NamedState(topic=name, state=state) for name, state in topics.items())
    stamp: dict[str, Any] = {
        "schema_version": 1,
        "cluster_id": CLUSTER,
        "epoch": 1,
        "time_ms": START_MS,
        "decided_node": 1,
    }
    return SnapshotTopics(**(stamp | values), sequence=sequence, topics=held)
