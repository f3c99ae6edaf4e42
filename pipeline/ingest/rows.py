"""From events to columns: Arrow's record batches with the columns of the table `events`.

Rule: column by column, never row by row, because a million rows a minute pass here. What does not
fit into a column is no event for us, and is told as a reason.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple

from ...audit.event import AuditEvent, Decision, PolicyDecision
from ..tables import Table
from .arrow import arrow_schema

MS = pa.scalar(1000, pa.int64())
SCHEMA = arrow_schema(Table.EVENTS.schema, without=Table.EVENTS.partitioned_by)
LINE = "event"
FIELDS = Decision.__struct_fields__
DECISION = "decision"
_KINDS = {kind: str(kind.__struct_config__.tag) for kind in get_args(AuditEvent)}
_RENAMED = {"topic": "name"}

Columns = Mapping[str, Sequence[Any]]
"""The fields of events, by name."""
Maker = Callable[[Columns], Sequence[Any]]


def _of_policy(name: str) -> Maker:
    def column(fields: Columns) -> Sequence[Any]:
        return [None if policy is None else getattr(policy, name) for policy in fields["policy"]]

    return column


def _findings(fields: Columns) -> Sequence[Any]:
    return [None if policy is None else _plain_findings(policy) for policy in fields["policy"]]


def _plain_findings(policy: PolicyDecision) -> Any:
    return msgspec.to_builtins(policy.findings) if policy.findings else ()


def _partitions(name: str) -> Maker:
    def column(fields: Columns) -> Sequence[Any]:
        return [None if state is None else len(state.replicas) for state in fields[name]]

    return column


MADE: dict[str, Maker] = {
    "asked": lambda fields: [
        asked is not None if kind == DECISION else None
        for kind, asked in zip(fields["kind"], fields["asked_ms"], strict=True)
    ],
    "policy": _of_policy("policy"),
    "decision": _of_policy("decision"),
    "policy_hash": _of_policy("policy_hash"),
    "rule": _of_policy("rule"),
    "findings": _findings,
    "policy_message": _of_policy("message"),
    "policy_us": _of_policy("microseconds"),
    "effect": lambda fields: msgspec.to_builtins(fields["effect"]),
    "partitions_before": _partitions("before"),
    "partitions_after": _partitions("after"),
}
"""Columns that are not the field of the same name."""


def event_rows(events: Sequence[AuditEvent], lines: Sequence[bytes]) -> pa.RecordBatch:
    """Make rows of events, in the given order. Raises pa.ArrowInvalid or OverflowError if a value
    does not fit into its column.
    """
    fields: dict[str, Sequence[Any]] = dict(zip(FIELDS, zip(*map(_values, events), strict=True), strict=True))
    fields["kind"] = [_KINDS[type(event)] for event in events]
    fields[LINE] = lines
    times = pc.multiply(pa.array(fields["time_ms"], pa.int64()), MS)
    arrays = [
        times.cast(field.type)
        if field.name == "time"
        else pa.array(MADE[field.name](fields) if field.name in MADE else fields[field.name], field.type)
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _values(event: AuditEvent) -> tuple[Any, ...]:
    """Return the values of an event in the order of FIELDS. Events that are no decisions have some
    of a decision's, or none.
    """
    if isinstance(event, Decision):
        return astuple(event)
    values = dict.fromkeys(FIELDS)
    for name in event.__struct_fields__:
        values[_RENAMED.get(name, name)] = getattr(event, name)
    return tuple(values[name] for name in FIELDS)
