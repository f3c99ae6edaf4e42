"""AlterPartitionReassignments (45) moves the replicas of partitions to other brokers, or cancels
such moves.

The order of the checks is Kafka's (KafkaController.processApiPartitionReassignment). A response
without an error says that the reassignment has begun; `controller/active/reassignment.py` carries
it on. The request's timeout means nothing, as in Kafka.
"""

from collections.abc import Mapping, Sequence

from ...admin import questions
from ...admin.alter_partition_reassignments import ALTER_CLUSTER, SPEC
from ...admin.changes import Change, Outcome
from ...admin.requested_changes import reassigned_topics
from ...cluster import reassignment
from ...cluster.entities import Partition, Topic
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.znodes.topics import refuse_damaged
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...policies.interface import AlterTopicRequest
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ..active.jobs import Draft
from ..active.reassignment import stage
from .changes import carry_out
from .controller_port import ControllerPort
from .entity_changes import refuse_request
from .parts import PartsOfTopics
from .planning import default_configs, judge_change

NO_PARTITION = Partition(replicas=())

LARGEST_PLAIN_SET = 4
"""The size up to which Scala calls a set `Set`; larger ones it calls `HashSet`."""

Wanted = Mapping[int, Sequence[int] | None]
"""The wanted replicas by partition; None cancels a reassignment."""


async def handle(
    port: ControllerPort, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    planner = ReassignmentPlanner(port, context, request)
    if not context.may(ALTER_CLUSTER):
        return await _unauthorized(port, context, request, planner)
    outcomes = await carry_out(port, context, request, planner.parts, timeout_ms=port.request_timeout_ms)
    return AlterPartitionReassignmentsResponse(responses=_rows(request, outcomes))


async def _unauthorized(
    port: ControllerPort,
    context: RequestContext,
    request: AlterPartitionReassignmentsRequest,
    planner: "ReassignmentPlanner",
) -> AlterPartitionReassignmentsResponse:
    """Return the response that refuses the request and each partition that it names."""
    refusal = Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    try:
        await refuse_request(port, context, request, refusal)
    except Refusal as recorded:
        return AlterPartitionReassignmentsResponse(
            error_code=recorded.code,
            error_message=recorded.message,
            responses=_rows(request, planner.parts.all_outcomes(recorded)),
        )


def _rows(request: AlterPartitionReassignmentsRequest, planned: Sequence[Outcome]) -> list[ReassignableTopicResponse]:
    outcomes = {
        (outcome.change.resource, index): outcome for outcome in planned for index in outcome.change.reassignments or ()
    }
    named: dict[str, dict[int, Outcome]] = {}
    for topic in request.topics:
        rows = named.setdefault(topic.name, {})
        rows.update((each.partition_index, outcomes[topic.name, each.partition_index]) for each in topic.partitions)
    return [
        ReassignableTopicResponse(
            name=name,
            partitions=[
                ReassignablePartitionResponse(
                    partition_index=index, error_code=outcome.code, error_message=outcome.message
                )
                for index, outcome in rows.items()
            ],
        )
        for name, rows in named.items()
        if rows
    ]


class ReassignmentPlanner:
    """Judges the partitions of one request, topic by topic. Of two rows about one partition the
    last counts.
    """

    def __init__(
        self, port: ControllerPort, context: RequestContext, request: AlterPartitionReassignmentsRequest
    ) -> None:
        self._port = port
        self._context = context
        self.parts = PartsOfTopics(
            [each for each in reassigned_topics(request) if each.reassignments], self._plan_topic
        )

    async def _plan_topic(self, draft: Draft, change: Change) -> list[Outcome]:
        """Plan a change for the valid partitions of a topic, and one for each error of the
        others.
        """
        name = change.resource
        topic = draft.image.topic(name)
        begun: dict[int, Partition] = {}
        refused: dict[tuple[ErrorCode, str | None], tuple[Refusal, dict[int, Sequence[int] | None]]] = {}
        for index, replicas in (change.reassignments or {}).items():
            await draft.time_slice.pause()
            try:
                begun[index] = _begun(draft.image, topic, index, replicas)
            except Refusal as refusal:
                _, rows = refused.setdefault((refusal.code, refusal.message), (refusal, {}))
                rows[index] = replicas
        outcomes = [_refused(name, rows, refusal) for refusal, rows in refused.values()]
        if topic is not None and begun:
            outcomes.insert(0, await self._staged(draft, topic, begun, change.reassignments or {}))
        return outcomes

    async def _staged(self, draft: Draft, topic: Topic, begun: dict[int, Partition], wanted: Wanted) -> Outcome:
        port, context = self._port, self._context
        rows = {index: wanted[index] for index in begun}
        outcome = Outcome(Change(topic.name, reassignments=rows))

        def question() -> AlterTopicRequest:
            return questions.reassignment(questions.asked_by(context), topic, rows, default_configs(port, draft.image))

        try:
            await judge_change(port, context, draft, outcome, question)
            outcome.element = stage(draft, topic, begun, draft.image.controller_epoch)
        except Refusal as refusal:
            outcome.refusal = refusal
        return outcome


def _refused(topic: str, rows: Wanted, refusal: Refusal) -> Outcome:
    return Outcome(Change(topic, reassignments=rows), refusal=refusal)


def _begun(image: Image, topic: Topic | None, index: int, wanted: Sequence[int] | None) -> Partition:
    """Return the partition as its reassignment begins. Raises Refusal."""
    live = image.live_ids()
    partition = (None if topic is None else topic.partition(index)) or NO_PARTITION
    if wanted is not None:
        _check_replicas(partition, tuple(wanted), live)
    elif not partition.is_moving:
        raise Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    if topic is None or topic.marked_for_deletion or partition is NO_PARTITION:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    refuse_damaged(topic)
    replicas = reassignment.origin(partition) if wanted is None else tuple(wanted)
    if not reassignment.keeps_records(partition, replicas):
        raise _wrong("Only replicas that would be removed are in sync, so the records of the partition would be lost.")
    return reassignment.reassign(partition, replicas, live)


def _check_replicas(partition: Partition, wanted: tuple[int, ...], live: frozenset[int]) -> None:
    """Raise INVALID_REPLICA_ASSIGNMENT if no partition can have these replicas, or if this one
    would get a replica on a broker that is not live.
    """
    if not wanted:
        raise _wrong("Empty replica list specified in partition reassignment.")
    if len(set(wanted)) != len(wanted):
        raise _wrong(f"Duplicate replica ids in partition reassignment replica list: {_listed(wanted)}")
    if any(each < 0 for each in wanted):
        raise _wrong(f"Invalid broker id in replica list: {_listed(wanted)}")
    added = reassignment.added(partition, wanted)
    if not live.issuperset(added):
        name = "Set" if len(live) <= LARGEST_PLAIN_SET else "HashSet"
        raise _wrong(
            "Replica assignment has brokers that are not alive. "
            f"Replica list: {_listed(added)}, live broker list: {_listed(sorted(live), name)}"
        )


def _listed(ids: Sequence[int], name: str = "ArrayBuffer") -> str:
    """Write ids as Kafka's texts have them, with the name of Scala's collection."""
    return f"{name}({', '.join(map(str, ids))})"


def _wrong(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


API = served(SPEC, handle)
