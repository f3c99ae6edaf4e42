"""Makes events of the audit log from the controller's own values. Nothing here waits or keeps
state.

Values that may be secret are redacted here, in configs and in refusals that quote them, so that no
later step has to know of secrets.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from ...audit.event import (
    SCHEMA_VERSION,
    AuditEvent,
    Decision,
    Dropped,
    Effect,
    EntityChange,
    NamedState,
    Observed,
    PolicyDecision,
    RecordedState,
    Removal,
    Requested,
    RuleFinding,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotTopics,
)
from ...cluster.entities import Topic
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.znodes.topics import uuid_text
from ...policies.interface import AlterBrokerConfigsRequest, EntityRequest, RequestedTopicState
from ...policies.states import ReplicaAssignments
from ...policies.verdict import Verdict
from ...process.observe.secrets import redact, redact_configs, redact_configs_of, secret_values
from ...protocol.error_codes import ErrorCode
from ..changes import Outcome
from .requests import AuditedRequest

log = logging.getLogger("minicontroller.audit")

REPLICAS = attrgetter("replicas")
NAMES: Mapping[int, str] = {int(code): code.name for code in ErrorCode}


class EventOrigin(msgspec.Struct, frozen=True, gc=False):
    """The cluster, controller epoch and broker id that all events of an epoch share."""

    cluster_id: str
    epoch: int
    node: int
    upstream_cluster_id: str | None = None
    """The cluster in front of which a gateway stands, whose own log `cluster_id` names."""


class Moment(msgspec.Struct, frozen=True, gc=False):
    """The place of an event in the log: its controller epoch, number and time."""

    origin: EventOrigin
    sequence: int
    time_ms: int

    def stamp(self) -> dict[str, Any]:
        """Return the fields that every event has."""
        return {
            "schema_version": SCHEMA_VERSION,
            "cluster_id": self.origin.cluster_id,
            "epoch": self.origin.epoch,
            "sequence": self.sequence,
            "time_ms": self.time_ms,
            "decided_node": self.origin.node,
        }


# ------------------------------------------------------------------ events


def made(make: Callable[..., AuditEvent], moment: Moment, *values: Any) -> AuditEvent:
    """Make an event. If a defect of this program prevents that, make an event that says so, so that
    neither the log nor the controller ends.
    """
    try:
        return make(moment, *values)
    except Exception as error:  # noqa: BLE001 - any exception becomes an event
        return not_made(moment, error)


def not_made(moment: Moment, error: Exception) -> Dropped:
    log.error("event %d of epoch %d could not be made", moment.sequence, moment.origin.epoch, exc_info=error)
    return dropped(moment, moment.sequence, moment.sequence, "the event could not be made; the node's log says why")


def decision(
    moment: Moment,
    request: AuditedRequest,
    index: int,
    outcome: Outcome,
    *,
    effect: Effect,
    refusal: Refusal | None,
    before: RecordedState | None,
    after: RecordedState | None,
    assumed: tuple[NamedState, ...],
    latency_us: int,
    further_denials: int = 0,
) -> Decision:
    """Make the event of a decision. Its fields are given by position, because keywords took half of
    the time.
    """
    origin, context, change, judgement = moment.origin, request.context, outcome.change, outcome.judgement
    judged, verdict, image = None, None, request.image
    if judgement is not None:
        judged, verdict, image = judgement.request, judgement.verdict, judgement.image
    wanted = getattr(judged, "requested_state", None)
    operation = "" if context.changes is None else context.changes.operation
    operations, unjudged = change.operations, outcome.unjudged
    code, error, message = 0, NAMES[0], None
    if refusal is not None:
        code, error, message = int(refusal.code), NAMES[refusal.code], refusal.message
    if message is not None and verdict is None:
        message = redact(message, secret_values(operations, change.kind))
    return Decision(
        SCHEMA_VERSION,
        origin.cluster_id,
        origin.epoch,
        moment.sequence,
        moment.time_ms,
        origin.node,
        request.number,
        index,
        request.elements,
        context.origin.principal,
        context.client_id,
        context.origin.client_host,
        context.origin.software,
        context.listener,
        context.origin.received_node if context.forwarded else origin.node,
        context.policy_api if judged is None else judged.api,
        context.origin.api_version,
        operation,
        change.kind,
        change.resource,
        None if wanted is None else requested(wanted),
        None if operations is None else redact_configs_of(change.kind, operations),
        request.validate_only,
        getattr(judged, "time_ms", None),
        getattr(judged, "created_ms", None),
        len(image.replica_brokers()),
        before,
        after,
        assumed,
        None if verdict is None else _policy(verdict),
        effect,
        code,
        error,
        message,
        latency_us,
        None if operations is None else dict(getattr(judged, "config_operation_kinds", change.operation_kinds) or {}),
        _entity(judged, change.kind, is_applied=effect is Effect.APPLIED)
        if isinstance(judged, EntityRequest)
        else None,
        None if change.reassignments is None else _reassignments(change.reassignments),
        None if change.delete_records_offsets is None else dict(change.delete_records_offsets),
        further_denials,
        outcome.is_enforced,
        origin.upstream_cluster_id,
        None if unjudged is None else unjudged.reason,
        change.election_type,
    )


def removal(moment: Moment, name: str, before: RecordedState | None) -> Removal:
    return Removal(**moment.stamp(), topic=name, before=before)


def observed(
    moment: Moment,
    name: str,
    before: RecordedState | None,
    after: RecordedState | None,
    reassignment: bool,
) -> Observed:
    return Observed(**moment.stamp(), topic=name, before=before, after=after, reassignment=reassignment)


def snapshot_begin(moment: Moment, reason: str, image: Image) -> SnapshotBegin:
    return SnapshotBegin(
        **moment.stamp(), reason=reason, cluster_size=len(image.replica_brokers()), topics=len(image.topics)
    )


def snapshot_topics(moment: Moment, chunk: Iterable[tuple[Topic, int | None]]) -> SnapshotTopics:
    """Make the event of a part of a snapshot, with the time of creation of each topic."""
    topics = tuple(NamedState(topic=topic.name, state=state(topic, created_ms)) for topic, created_ms in chunk)
    return SnapshotTopics(**moment.stamp(), topics=topics)


def snapshot_end(moment: Moment, topics: int) -> SnapshotEnd:
    return SnapshotEnd(**moment.stamp(), topics=topics)


def dropped(moment: Moment, first: int, last: int, reason: str) -> Dropped:
    return Dropped(**moment.stamp(), first_sequence=first, last_sequence=last, reason=reason)


# ------------------------------------------------------------------ states


def state(topic: Topic, created_ms: int | None) -> RecordedState:
    return RecordedState(
        topic_id=uuid_text(topic.topic_id),
        replicas=tuple(map(REPLICAS, topic.partitions)),
        configs=redact_configs(topic.configs),
        marked_for_deletion=topic.marked_for_deletion,
        internal=topic.is_internal,
        created_ms=created_ms,
    )


def differs(one: Topic | None, other: Topic | None) -> bool:
    """Return whether two states of a topic differ in the audit log, which has no leaders."""
    if one is other:
        return False
    if one is None or other is None:
        return True
    return (
        one.topic_id != other.topic_id
        or one.marked_for_deletion != other.marked_for_deletion
        or one.configs != other.configs
        or len(one.partitions) != len(other.partitions)
        or any(
            mine is not its and mine.replicas != its.replicas
            for mine, its in zip(one.partitions, other.partitions, strict=True)
        )
    )


def continues_reassignment(old: Topic | None, new: Topic | None) -> bool:
    """Return whether two states of a topic differ only by reassignments that were under way."""
    if old is None or new is None or len(old.partitions) != len(new.partitions):
        return False
    changed = [
        mine
        for mine, its in zip(old.partitions, new.partitions, strict=True)
        if mine is not its and mine.replicas != its.replicas
    ]
    return (
        bool(changed)
        and all(each.adding_replicas or each.removing_replicas for each in changed)
        and not differs(old, msgspec.structs.replace(new, partitions=old.partitions))
    )


def requested(wanted: RequestedTopicState) -> Requested:
    rows = wanted.replica_assignments
    return Requested(
        replicas=rows.rows if isinstance(rows, ReplicaAssignments) else tuple(map(tuple, rows.values())),
        configs=redact_configs(wanted.raw_configs),
        marked_for_deletion=wanted.marked_for_deletion,
        internal=wanted.internal,
        generated_replica_assignments=wanted.generated_replica_assignments,
        default_configs=dict(wanted.default_configs),
    )


def _reassignments(rows: Mapping[int, Sequence[int] | None]) -> dict[int, tuple[int, ...] | None]:
    return {partition: None if row is None else tuple(row) for partition, row in rows.items()}


def _entity(judged: EntityRequest, kind: str, *, is_applied: bool) -> EntityChange:
    before, wanted = redact_configs_of(kind, judged.raw_before or {}), redact_configs_of(kind, judged.raw_after or {})
    after = wanted if is_applied else before
    if not isinstance(judged, AlterBrokerConfigsRequest):
        return EntityChange(before=before, requested=wanted, after=after)
    return EntityChange(
        before=before,
        requested=wanted,
        after=after,
        default_configs_before=dict(judged.default_configs_before),
        default_configs=dict(judged.default_configs),
    )


def _policy(verdict: Verdict) -> PolicyDecision:
    return PolicyDecision(
        decision=verdict.decision.value,
        policy=verdict.policy,
        policy_hash=verdict.policy_hash,
        rule=verdict.rule,
        findings=tuple(
            RuleFinding(rule=each.rule, action=each.action.value, message=each.message, error=each.error)
            for each in verdict.findings
        ),
        message=verdict.message,
        microseconds=int(verdict.seconds * 1e6),
    )
