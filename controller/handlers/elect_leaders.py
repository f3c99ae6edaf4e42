"""ElectLeaders (43) elects preferred leaders, or leaders that are not in sync where no in-sync
replica is left.

The order of the checks is Kafka's (KafkaController.processReplicaLeaderElection). An unclean
election that is asked for does not need `unclean.leader.election.enable`.
"""

from collections.abc import Collection, Container, Iterable, Sequence

from ...admin.changes import Change, Outcome
from ...admin.elect_leaders import ALTER_CLUSTER, SPEC
from ...admin.requested_changes import election_type
from ...cluster import leadership
from ...cluster.entities import NO_LEADER, Partition, Topic
from ...cluster.errors import Refusal
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...process.time_slices import TimeSlice
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.elect_leaders import (
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from ..active.jobs import Draft
from ..active.partition_states import stage_states
from .changes import carry_out
from .controller_port import ControllerPort
from .entity_changes import refuse_request
from .parts import Parts, one_by_one
from .planning import judge_admin, judges_api

UNAVAILABLE = {
    ElectionType.PREFERRED: (
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        "The preferred leader is not online and in sync.",
    ),
    ElectionType.UNCLEAN: (ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica is online."),
}


async def handle(port: ControllerPort, context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    refusal = _refused_whole(context, request)
    if refusal is not None:
        return await _refused(port, context, request, refusal)
    planner = ElectionPlanner(port, context, request)
    await planner.read(request)
    outcomes = await carry_out(
        port,
        context,
        request,
        planner.parts(),
        timeout_ms=request.timeout_ms,
    )
    return ElectLeadersResponse(replica_election_results=[planner.result(outcome) for outcome in outcomes])


def _refused_whole(context: RequestContext, request: ElectLeadersRequest) -> Refusal | None:
    if not context.may(ALTER_CLUSTER):
        return Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if request.election_type not in frozenset(ElectionType):
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, reason=f"There is no election type {request.election_type}.")
    return None


async def _refused(
    port: ControllerPort, context: RequestContext, request: ElectLeadersRequest, refusal: Refusal
) -> ElectLeadersResponse:
    """Return the response that refuses the request and each partition that it names. As in Kafka, a
    topic that is named twice has one row if the caller has no right.
    """
    topics = request.topic_partitions or ()
    named: Iterable[tuple[str, Sequence[int]]] = [(topic.topic, topic.partitions) for topic in topics]
    if refusal.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        named = _named(topics).items()
    try:
        await refuse_request(port, context, request, refusal)
    except Refusal as recorded:
        return ElectLeadersResponse(
            error_code=recorded.code if context.origin.api_version > 0 else 0,
            replica_election_results=[
                ReplicaElectionResult(
                    topic=topic,
                    partition_result=[
                        PartitionResult(partition_id=index, error_code=recorded.code, error_message=recorded.message)
                        for index in partitions
                    ],
                )
                for topic, partitions in named
            ],
        )


class ElectionPlanner:
    """Plans the elections of one request, topic by topic. A partition that is named twice has one
    election.
    """

    def __init__(self, port: ControllerPort, context: RequestContext, request: ElectLeadersRequest) -> None:
        self._port = port
        self._context = context
        controller = port.controller.serving()
        self._image = controller.image
        self._epoch = controller.epoch
        self._type = ElectionType(request.election_type)
        self._election_type = election_type(request)
        self._names_all = request.topic_partitions is None
        self.requested: dict[str, Sequence[int]] = {}
        """The partitions to elect leaders for, by topic."""
        self._refusals: dict[str, dict[int, Refusal]] = {}
        self._not_needed = Refusal(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
        self._unavailable = Refusal(*UNAVAILABLE[self._type])

    async def read(self, request: ElectLeadersRequest) -> None:
        """Find the partitions that the request names, or all that need an election."""
        topics = request.topic_partitions
        self.requested = await self._unfinished() if topics is None else _named(topics)

    def parts(self) -> Parts[str]:
        topics = list(self.requested)
        return Parts(topics, self._change, one_by_one(topics, self._plan_topic), overlap=True)

    def _change(self, topic: str) -> Change:
        return Change(topic, election_type=self._election_type)

    def result(self, outcome: Outcome) -> ReplicaElectionResult:
        """Return the rows of a topic. A partition whose own election failed keeps its error."""
        refusals = self._refusals.get(outcome.change.resource, {})
        rows = []
        for index in self.requested[outcome.change.resource]:
            refusal = refusals.get(index, outcome.refusal)
            if refusal is self._not_needed and self._names_all:
                continue
            rows.append(
                PartitionResult(
                    partition_id=index,
                    error_code=ErrorCode.NONE if refusal is None else refusal.code,
                    error_message=None if refusal is None else refusal.message,
                )
            )
        return ReplicaElectionResult(topic=outcome.change.resource, partition_result=rows)

    async def _plan_topic(self, draft: Draft, name: str) -> Outcome:
        refusals = self._refusals[name] = {}
        elected: dict[int, Partition] = {}
        topic, live = draft.image.topic(name), draft.image.live_ids()
        for index in self.requested[name]:
            state = self._elected(topic, index, live)
            if isinstance(state, Refusal):
                refusals[index] = state
            else:
                elected[index] = state
        if topic is None or not elected:
            return Outcome(self._change(name), refusal=next(iter(refusals.values())))
        outcome = Outcome(self._change(name))
        try:
            if judges_api(self._port, self._context):
                await judge_admin(self._port, self._context, draft, outcome)
        except Refusal as refusal:
            outcome.refusal = refusal
            return outcome
        outcome.element = stage_states(draft, topic, elected, self._epoch)
        return outcome

    def _elected(self, topic: Topic | None, index: int, live: Collection[int]) -> Partition | Refusal:
        """Return the elected state, or why there is none. Nothing is raised, because partitions
        share a refusal, and each raise would add its frames to it.
        """
        partition = None if topic is None else topic.partition(index)
        if topic is None or partition is None:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        if topic.marked_for_deletion:
            return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted.")
        if not self._is_needed(partition, live):
            return self._not_needed
        elected = (
            leadership.elect_preferred(partition, live)
            if self._type is ElectionType.PREFERRED
            else leadership.elect_leader(partition, live, unclean=True)
        )
        if elected is None or elected.leader == NO_LEADER or not partition.has_state:
            return self._unavailable
        return elected

    def _is_needed(self, partition: Partition, live: Container[int]) -> bool:
        if self._type is ElectionType.PREFERRED:
            return not partition.is_led_as_preferred
        return not partition.is_online(partition.leader, live)

    async def _unfinished(self) -> dict[str, Sequence[int]]:
        live, time_slice = self._image.live_ids(), TimeSlice()
        found: dict[str, Sequence[int]] = {}
        for name, topic in self._image.topics.items():
            await time_slice.pause()
            indexes = [index for index, each in enumerate(topic.partitions) if self._is_needed(each, live)]
            if indexes and not topic.marked_for_deletion:
                found[name] = indexes
        return found


def _named(topics: Sequence[TopicPartitions]) -> dict[str, Sequence[int]]:
    found: dict[str, dict[int, None]] = {}
    for topic in topics:
        if topic.partitions:
            found.setdefault(topic.topic, {}).update(dict.fromkeys(topic.partitions))
    return {name: list(indexes) for name, indexes in found.items()}


API = served(SPEC, handle)
