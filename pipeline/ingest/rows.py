"""From events to columns: Arrow's record batches with the columns of the table `events`.

Rule: column by column, never row by row, because a million rows a minute pass here. What does not fit into a column is no event for us, and
is told as a reason.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa

from ...policies.audit_event import AuditEvent, Decision, Observed, Removal, SnapshotBegin, State
from ..tables import Table
from .arrow import arrow_schema

MS = 1000
SCHEMA = arrow_schema(Table.EVENTS.schema, without=Table.EVENTS.partitioned_by)

Column = Callable[[Any], Any]

COMMON: dict[str, Column] = {
    "epoch": attrgetter("epoch"),
    "sequence": attrgetter("sequence"),
    "time": lambda event: event.time_ms * MS,
    "decided_node": attrgetter("decided_node"),
    "kind": lambda event: event.__struct_config__.tag,
}


def _finding(finding: Any) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in ("rule", "action", "message", "error")}


def _of_policy(name: str) -> Column:
    get = attrgetter(name)
    return lambda event: None if event.policy is None else get(event.policy)


def _partitions(state: State | None) -> int | None:
    return None if state is None else len(state.replicas)


DECISION: dict[str, Column] = {
    **{
        name: attrgetter(name)
        for name in (
            "request",
            "element",
            "elements",
            "principal",
            "client_id",
            "client_host",
            "software",
            "listener",
            "received_node",
            "api",
            "api_version",
            "operation",
            "resource",
            "name",
            "validate_only",
            "cluster_size",
            "error_code",
            "error",
            "message",
            "latency_us",
        )
    },
    "asked": lambda event: event.asked_ms is not None,
    **{name: _of_policy(name) for name in ("decision", "policy", "policy_hash", "rule")},
    "findings": lambda event: None if event.policy is None else [_finding(each) for each in event.policy.findings],
    "policy_message": _of_policy("message"),
    "policy_us": _of_policy("microseconds"),
    "effect": lambda event: event.effect.value,
    "partitions_before": lambda event: _partitions(event.before),
    "partitions_after": lambda event: _partitions(event.after),
}
TOPIC: dict[str, Column] = {
    "name": attrgetter("topic"),
    "partitions_before": lambda event: _partitions(event.before),
}
COLUMNS: dict[type[AuditEvent], dict[str, Column]] = {
    Decision: DECISION,
    Removal: TOPIC,
    Observed: {**TOPIC, "partitions_after": lambda event: _partitions(event.after)},
    SnapshotBegin: {"cluster_size": attrgetter("cluster_size")},
}
"""What each kind has besides the common columns; all others are null."""


def event_rows(events: Sequence[AuditEvent], lines: Sequence[bytes]) -> pa.RecordBatch:
    """In the given order. Raises pa.ArrowInvalid or OverflowError if a value does not fit into its column."""
    kinds: dict[type, list[int]] = {}
    for index, event in enumerate(events):
        kinds.setdefault(type(event), []).append(index)
    if len(kinds) == 1:
        return _of_one_kind(events, lines)
    parts = [_of_one_kind([events[i] for i in places], [lines[i] for i in places]) for places in kinds.values()]
    order = pa.array([i for places in kinds.values() for i in places])
    mixed = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
    return mixed.take(pa.compute.sort_indices(order))


def _of_one_kind(events: Sequence[AuditEvent], lines: Sequence[bytes]) -> pa.RecordBatch:
    getters = COMMON | COLUMNS.get(type(events[0]), {})
    arrays = []
    for field in SCHEMA:
        if field.name == "event":
            arrays.append(pa.array(lines, field.type))
        elif field.name in getters:
            arrays.append(pa.array(list(map(getters[field.name], events)), field.type))
        else:
            arrays.append(pa.nulls(len(events), field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
