"""From the controller's own values to events: what the audit's thread does with each of them.

Rule: pure. Everything that is given is frozen, or is not changed by anybody any more. Values that are secret, or that nobody knows not to
be, are hidden here, in configs and wherever they are quoted; so no later step has to know of secrets.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from ...policies.audit_event import (
    SCHEMA_VERSION,
    Decision,
    Dropped,
    Effect,
    NamedState,
    Observed,
    PolicyDecision,
    Removal,
    Requested,
    RuleFinding,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotTopics,
    State,
)
from ...policies.interface import DeleteTopicRequest, PolicyRequest, RequestedTopicState
from ...policies.judging import Judged
from ...policies.states import ReplicaAssignments
from ...policies.verdict import Verdict
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ..cluster.image import Topic
from ..hiding import hidden, secrets_of, without
from ..store.layout import uuid_text

if TYPE_CHECKING:
    from ..cluster.image import Image
    from ..context import RequestContext

OPERATIONS: Mapping[int, str] = {
    ApiKey.CREATE_TOPICS: "create_topic",
    ApiKey.DELETE_TOPICS: "delete_topic",
    ApiKey.CREATE_PARTITIONS: "create_partitions",
    ApiKey.ALTER_CONFIGS: "alter_configs",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "incremental_alter_configs",
}
CONFIG_OPERATIONS = frozenset({"alter_configs", "incremental_alter_configs"})


class Origin(msgspec.Struct, frozen=True, gc=False):
    """What all events of a reign have in common."""

    cluster_id: str
    epoch: int
    node: int


class Moment(msgspec.Struct, frozen=True, gc=False):
    """An event's place in the log."""

    origin: Origin
    sequence: int
    time_ms: int

    def stamp(self) -> dict[str, Any]:
        """What all events tell."""
        return {
            "schema_version": SCHEMA_VERSION,
            "cluster_id": self.origin.cluster_id,
            "epoch": self.origin.epoch,
            "sequence": self.sequence,
            "time_ms": self.time_ms,
            "decided_node": self.origin.node,
        }


_id_text = lru_cache(maxsize=4096)(uuid_text)
"""A topic's id stands in the state before and in the state after."""


class Judgement(msgspec.Struct, gc=False):
    """What a policy is asked, and what it said if there is one."""

    request: Judged
    image: "Image | None"
    """What the policy sees of the cluster; None once it has been compared with what the log tells."""
    verdict: Verdict | None = None


class Asked(msgspec.Struct, frozen=True, gc=False):
    """One request."""

    number: int
    context: "RequestContext"
    elements: int
    validate_only: bool


class Ruling(msgspec.Struct, frozen=True, gc=False):
    """What became of one of its elements."""

    asked: Asked
    element: int
    resource: str
    name: str
    judgement: Judgement | None
    operations: Mapping[str, str | None] | None
    cluster_size: int
    effect: Effect
    code: ErrorCode
    message: str | None
    latency_us: int
    assumed: tuple[tuple[str, "Dated"], ...]


class Dated(msgspec.Struct, frozen=True, gc=False):
    """A topic, and when it was created, which an image does not tell."""

    topic: Topic | None
    created_ms: int | None = None


NOTHING = Dated(None)


# ------------------------------------------------------------------ events


def decision(moment: Moment, ruling: Ruling, before: Dated, after: Dated) -> Decision:
    asked, judgement = ruling.asked, ruling.judgement
    context, request = asked.context, None if judgement is None else judgement.request
    operation = _operation(context)
    operations = ruling.operations if request is None else getattr(request, "config_operations", None)
    secrets = secrets_of(request, operations)
    return Decision(
        **moment.stamp(),
        request=asked.number,
        element=ruling.element,
        elements=asked.elements,
        principal=context.principal,
        client_id=context.client_id,
        client_host=context.client_host,
        software=context.software,
        listener=context.listener,
        received_node=context.received_node if context.forwarded else moment.origin.node,
        api=context.policy_api,
        api_version=context.client_api_version,
        operation=operation,
        resource=ruling.resource,
        name=ruling.name,
        requested=requested(getattr(request, "requested_state", None)),
        config_operations=hidden(operations) if operations is not None and operation in CONFIG_OPERATIONS else None,
        validate_only=asked.validate_only,
        asked_ms=request.time_ms if isinstance(request, PolicyRequest) else None,
        asked_created_ms=request.created_ms if isinstance(request, DeleteTopicRequest) else None,
        cluster_size=ruling.cluster_size,
        before=state(before),
        after=state(after),
        assumed=tuple(NamedState(topic=name, state=state(dated)) for name, dated in ruling.assumed),
        policy=_policy(judgement, secrets),
        effect=ruling.effect,
        error_code=int(ruling.code),
        error=ruling.code.name,
        message=None if ruling.message is None else without(ruling.message, secrets),
        latency_us=ruling.latency_us,
    )


def _operation(context: "RequestContext") -> str:
    """Of the API that the client used, unless that one only led to another: an automatic creation is a creation."""
    return OPERATIONS.get(context.on_behalf_of) or OPERATIONS.get(context.api_key, "")


def removal(moment: Moment, name: str, before: Dated) -> Removal:
    return Removal(**moment.stamp(), topic=name, before=state(before))


def observed(moment: Moment, name: str, before: Dated, after: Dated) -> Observed:
    return Observed(**moment.stamp(), topic=name, before=state(before), after=state(after))


def snapshot_begin(moment: Moment, reason: str, image: "Image") -> SnapshotBegin:
    return SnapshotBegin(**moment.stamp(), reason=reason, cluster_size=len(image.brokers), topics=len(image.topics))


def snapshot_topics(moment: Moment, chunk: Iterable[tuple[str, Dated]]) -> SnapshotTopics:
    topics = tuple(NamedState(topic=name, state=state(dated)) for name, dated in chunk)
    return SnapshotTopics(**moment.stamp(), topics=topics)


def snapshot_end(moment: Moment, topics: int) -> SnapshotEnd:
    return SnapshotEnd(**moment.stamp(), topics=topics)


def dropped(moment: Moment, first: int, last: int, reason: str) -> Dropped:
    return Dropped(**moment.stamp(), first_sequence=first, last_sequence=last, reason=reason)


# ------------------------------------------------------------------ states


def state(dated: Dated) -> State | None:
    topic = dated.topic
    if topic is None:
        return None
    return State(
        topic_id=_id_text(topic.topic_id),
        replicas=tuple([partition.replicas for partition in topic.partitions]),
        configs=hidden(topic.configs),
        marked_for_deletion=topic.marked_for_deletion,
        internal=topic.is_internal,
        created_ms=dated.created_ms,
    )


def differs(one: Topic | None, other: Topic | None) -> bool:
    """In what an audit log tells of a topic: leaders come and go without an event."""
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


def requested(wanted: RequestedTopicState | None) -> Requested | None:
    if wanted is None:
        return None
    rows = wanted.replica_assignments
    return Requested(
        replicas=rows.rows if isinstance(rows, ReplicaAssignments) else tuple(map(tuple, rows.values())),
        configs=hidden(wanted.configs),
        marked_for_deletion=wanted.marked_for_deletion,
        internal=wanted.internal,
        generated_replica_assignments=wanted.generated_replica_assignments,
    )


def _policy(judgement: Judgement | None, secrets: Collection[str]) -> PolicyDecision | None:
    verdict = None if judgement is None else judgement.verdict
    if verdict is None:
        return None
    return PolicyDecision(
        decision=verdict.decision.value,
        policy=verdict.policy,
        policy_hash=verdict.policy_hash,
        rule=verdict.rule,
        findings=tuple(
            RuleFinding(
                rule=finding.rule,
                action=finding.action.value,
                message=without(finding.message, secrets),
                error=None if finding.error is None else without(finding.error, secrets),
            )
            for finding in verdict.findings
        ),
        message=None if verdict.message is None else without(verdict.message, secrets),
        microseconds=int(verdict.seconds * 1e6),
    )
