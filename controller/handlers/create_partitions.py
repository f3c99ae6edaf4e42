"""CreatePartitions (37) adds partitions to topics, by count or by a manual assignment.

The order of the checks is Kafka's (ZkAdminManager.createPartitions). A requested count is the new
total.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random

import msgspec

from ...admin import questions
from ...admin.changes import Change, Outcome
from ...admin.create_partitions import ALTER_TOPIC, SPEC, Assignment, manual_rows
from ...cluster import leadership
from ...cluster.delta import PartitionsChanged
from ...cluster.entities import Partition, Topic
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.placement import assign_replicas, placed_brokers, start_for_new_partitions
from ...cluster.quotas.mutation_quota import MutationQuotas, RequestQuota
from ...cluster.znodes import layout
from ...cluster.znodes.topics import encode_topic
from ...network.serving.api import served
from ...network.serving.context import NO_NAMES, RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ...store.base import SetData
from ..active import partition_states
from ..active.jobs import Draft, StagedElement
from ..active.stored_topics import refuse_damaged
from .change_quotas import quota_of
from .changes import carry_out
from .controller_port import ControllerPort
from .parts import Parts, one_by_one
from .planning import check_storable, default_configs, judge, partition_znodes

DENIED = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topic authorization is failed.")


async def handle(
    port: ControllerPort,
    quotas: MutationQuotas,
    random: Random,
    context: RequestContext,
    request: CreatePartitionsRequest,
) -> CreatePartitionsResponse:
    planner = PartitionsPlanner(port, context, request, quota_of(quotas, context, strict_since=3), random)
    await planner.ask_permissions()
    outcomes = await carry_out(
        port,
        context,
        request,
        Parts(planner.names, Change, planner.plan),
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    return CreatePartitionsResponse(
        throttle_time_ms=planner.quota.throttle_ms(),
        results=[
            CreatePartitionsTopicResult(
                name=outcome.change.resource, error_code=outcome.code, error_message=outcome.message
            )
            for outcome in outcomes
        ],
    )


class PartitionsPlanner:
    """Judges the topics of one request. A topic named twice gets one row, which refuses it."""

    def __init__(
        self,
        port: ControllerPort,
        context: RequestContext,
        request: CreatePartitionsRequest,
        quota: RequestQuota,
        random: Random,
    ) -> None:
        self._port = port
        self._random = random
        self._context = context
        self._request = request
        self.quota = quota
        occurrences = Counter(topic.name for topic in request.topics)
        self._once = [topic for topic in request.topics if occurrences[topic.name] == 1]
        self._repeated = [name for name, times in occurrences.items() if times > 1]
        self._denied: frozenset[str] = NO_NAMES
        """The topics of a long request that the client might not alter when it arrived."""
        self._denial = Refusal(*DENIED)

    async def ask_permissions(self) -> None:
        """Find what is denied of a long request before it waits for the writer."""
        self._denied = await self._context.denied_in_advance(ALTER_TOPIC, [topic.name for topic in self._once])

    @property
    def names(self) -> list[str]:
        return [*(topic.name for topic in self._once), *self._repeated]

    async def plan(self, draft: Draft, first: int) -> Sequence[Outcome]:
        """Plan the elements from index `first` on: topics that the request names once, then those
        that it names twice, because Kafka orders the rows so.
        """
        outcomes = await one_by_one(self._once, self._plan_topic)(draft, first) if first < len(self._once) else []
        if first + len(outcomes) < len(self._once):
            return outcomes
        refusal = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
        return [*outcomes, *(Outcome(Change(name), refusal=refusal) for name in self._repeated)]

    async def _plan_topic(self, draft: Draft, wanted: CreatePartitionsTopic) -> Outcome:
        if wanted.name in self._denied:
            return Outcome(Change(wanted.name), refusal=self._denial, is_denied=True)
        try:
            if not self._context.may(ALTER_TOPIC, wanted.name):
                raise Refusal(*DENIED)
            before = self._existing(draft.image, wanted.name)
            added = self._added(draft.image, before, wanted)
            after = msgspec.structs.replace(
                before, partitions=before.partitions + self._led(draft.image, added), version=before.version + 1
            )
            await judge(
                self._port,
                self._context,
                lambda: questions.growth(
                    questions.asked_by(self._context, validate_only=self._request.validate_only),
                    after,
                    default_configs(self._port, draft.image),
                    is_placed=wanted.assignments is None,
                ),
                draft,
            )
            grown = _growth(before, after)
            element = await self._staged(draft, before, after, grown)
        except Refusal as refusal:
            return Outcome(Change(wanted.name), refusal=refusal)
        if element is None:
            return Outcome(Change(wanted.name))
        return Outcome(
            Change(wanted.name),
            element=element,
            awaited=grown,
        )

    async def _staged(
        self, draft: Draft, before: Topic, after: Topic, grown: PartitionsChanged
    ) -> StagedElement | None:
        """Stage the growth of a topic. Returns None if it is only validated; later elements of the
        request see it all the same. Raises Refusal.
        """
        if self._request.validate_only:
            draft.suppose(grown)
            return None
        self.quota.count(after.name, len(grown.partitions))
        operations = [
            SetData(layout.topic_path(after.name), encode_topic(after), before.version),  # the topic keeps its id
            *partition_states.missing_parent(before),
            *await partition_znodes(after, len(before.partitions), draft.time_slice),
        ]
        return draft.stage(grown, operations)

    def _existing(self, image: Image, name: str) -> Topic:
        topic = image.topic(name)
        if topic is None:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        if topic.marked_for_deletion:
            raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")
        refuse_damaged(topic)
        if topic.is_moving:
            raise Refusal(
                ErrorCode.REASSIGNMENT_IN_PROGRESS, f"A partition reassignment is in progress for the topic '{name}'."
            )
        return topic

    def _added(self, image: Image, topic: Topic, wanted: CreatePartitionsTopic) -> Assignment:
        current = len(topic.partitions)
        if not current:
            raise Refusal(
                ErrorCode.INVALID_PARTITIONS, "The topic has no partitions, so its replication factor is unknown."
            )
        if wanted.count < current:
            raise Refusal(
                ErrorCode.INVALID_PARTITIONS,
                f"Topic currently has {current} partitions, which is higher than the requested {wanted.count}.",
            )
        if wanted.count == current:
            raise Refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partitions.")
        if wanted.assignments is not None:
            return manual_rows(image, topic, wanted.assignments, wanted.count - current)
        check_storable(self._port, wanted.count, topic.replication_factor)
        brokers = placed_brokers(image)
        return tuple(
            assign_replicas(
                brokers,
                wanted.count - current,
                topic.replication_factor,
                start=start_for_new_partitions(brokers, topic.partitions[0].replicas[0]),
                first_partition=current,
                random=self._random.randrange,
            )
        )

    def _led(self, image: Image, assignment: Assignment) -> tuple[Partition, ...]:
        live = image.live_ids()
        stateless = [Partition(replicas=replicas, controller_epoch=image.controller_epoch) for replicas in assignment]
        return tuple(leadership.elect_leader(partition, live) or partition for partition in stateless)


def _growth(before: Topic, after: Topic) -> PartitionsChanged:
    added = range(len(before.partitions), len(after.partitions))
    return PartitionsChanged(
        after.name,
        after.topic_id,
        partitions={index: after.partitions[index] for index in added},
        version=after.version,
        count=len(after.partitions),
        has_parent=True,
    )


API = served(SPEC, handle)
