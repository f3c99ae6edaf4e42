"""CreateTopics (19): plan each topic against the image, commit, wait until the topics are complete.

The order of the checks is Kafka's (ZkAdminManager.createTopics), so a request that is wrong in two
ways gets the same error as from Kafka.
"""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from random import Random
from typing import cast

from immutables import Map

from ...admin import questions
from ...admin.changes import Change, Outcome
from ...admin.configs.description import DescribedConfig, topic_entries
from ...admin.create_topics import (
    CLUSTER_METADATA,
    CREATE_TOPIC,
    CREATE_TOPICS,
    DESCRIBE_CONFIGS,
    SPEC,
    Assignment,
    check_is_no_metadata,
    check_name,
    check_wanted,
    manual_assignment,
)
from ...cluster import leadership
from ...cluster.delta import TopicBecomes
from ...cluster.entities import Partition, Topic
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.placement import PlacedBroker, assign_replicas, check_counts, placed_brokers
from ...cluster.quotas.mutation_quota import MutationQuotas, RequestQuota
from ...cluster.random_ids import new_id
from ...cluster.znodes import layout
from ...cluster.znodes.configs import encode_config
from ...cluster.znodes.topics import encode_topic
from ...network.serving.api import served
from ...network.serving.context import NO_NAMES, RequestContext
from ...process import steps
from ...process.settings.node_config import NodeConfig, kept_in_config
from ...process.settings.topic_configs import validate_topic_configs
from ...process.steps import Steps
from ...process.time_slices import TimeSlice
from ...protocol.api_keys import ApiKey
from ...protocol.compiler import encoder
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ...store.base import Create, Operation, SetData
from ..active.jobs import Draft, StagedElement
from .change_quotas import quota_of
from .changes import carry_out
from .controller_port import ControllerPort
from .parts import Parts, one_by_one
from .planning import check_storable, default_configs, judge, partition_znodes

CONFIGS_SINCE = 5
"""The first version whose response holds the configs of created topics (KIP-525)."""


DENIED = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


async def handle(
    port: ControllerPort,
    quotas: MutationQuotas,
    random: Random,
    context: RequestContext,
    request: CreateTopicsRequest,
) -> Steps[CreateTopicsResponse]:
    planner = CreationPlanner(port, context, request, quota_of(quotas, context, strict_since=6), random)
    await planner.ask_permissions()
    outcomes = await carry_out(
        port,
        context,
        request,
        Parts(request.topics, lambda topic: Change(topic.name), one_by_one(request.topics, planner.plan)),
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    return planner.response(outcomes)


class CreationPlanner:
    """Judges the topics of one request; each topic is judged with the earlier ones in effect."""

    def __init__(
        self,
        port: ControllerPort,
        context: RequestContext,
        request: CreateTopicsRequest,
        quota: RequestQuota,
        random: Random,
    ) -> None:
        self._port = port
        self._random = random
        self._context = context
        self._request = request
        self.occurrences = Counter(topic.name for topic in request.topics)
        self._created: dict[str, Topic] = {}
        self.quota = quota
        self._admitted: set[str] = set()
        """The topics that passed the checks of the request as such."""
        self._denied: frozenset[str] = NO_NAMES
        """The topics of a long request that the client might not create when it arrived."""
        self._denial = Refusal(*DENIED)

    async def ask_permissions(self) -> None:
        """Find what is denied of a long request before it waits for the writer."""
        if self._context.origin.api_key != ApiKey.FIND_COORDINATOR:
            names = [name for name, times in self.occurrences.items() if times == 1 and name != CLUSTER_METADATA]
            self._denied = await self._context.denied_in_advance(CREATE_TOPIC, names, unless=CREATE_TOPICS)

    async def plan(self, draft: Draft, wanted: CreatableTopic) -> Outcome:
        if wanted.name in self._denied:
            return Outcome(Change(wanted.name), refusal=self._denial, is_denied=True)
        try:
            self._check_entry(wanted)
            self._admitted.add(wanted.name)
            topic, is_placed = await self._resolve(draft, wanted)
            await judge(
                self._port,
                self._context,
                lambda: questions.creation(
                    questions.asked_by(self._context, validate_only=self._request.validate_only),
                    topic,
                    default_configs(self._port, draft.image),
                    is_placed=is_placed,
                    automatic=self._context.origin.api_key >= 0,
                ),
                draft,
            )
            created = TopicBecomes.of(topic)
            element = await self._staged(draft, created)
        except Refusal as refusal:
            return Outcome(Change(wanted.name), refusal=refusal)
        self._created[topic.name] = topic
        if element is None:
            return Outcome(Change(topic.name))
        return Outcome(
            Change(topic.name),
            element=element,
            awaited=created,
            changes_configs=bool(topic.configs),
        )

    async def _staged(self, draft: Draft, created: TopicBecomes) -> StagedElement | None:
        """Stage the creation of a topic. Returns None if it is only validated; later topics of the
        request see it all the same. Raises Refusal.
        """
        if self._request.validate_only:
            draft.suppose(created)
            return None
        topic = created.topic
        self.quota.count(topic.name, len(topic.partitions))
        leftover = draft.image.leftover_configs.get(topic.name)
        return draft.stage(created, await creation(topic, leftover, draft.time_slice))

    def _check_entry(self, wanted: CreatableTopic) -> None:
        check_is_no_metadata(wanted.name)
        if self.occurrences[wanted.name] > 1:
            raise Refusal(ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic.")
        if not self._may_create(wanted.name):
            raise Refusal(*DENIED)

    def _may_create(self, name: str) -> bool:
        """Return whether the client may create a topic. Coordinators' topics are created for the
        cluster and not for the client, so they need no permission, as in Kafka.
        """
        context = self._context
        if context.origin.api_key == ApiKey.FIND_COORDINATOR:
            return True
        return context.may(CREATE_TOPICS, logs_denial=False) or context.may(CREATE_TOPIC, name)

    async def _resolve(self, draft: Draft, wanted: CreatableTopic) -> tuple[Topic, bool]:
        """Return the topic to be created, and whether its replicas were placed here. They are
        placed only after all other checks have passed. Raises Refusal.
        """
        image = draft.image
        configs = check_wanted(image, wanted)
        brokers = placed_brokers(image)
        counts = None if wanted.assignments else self._counts(brokers, wanted)
        check_name(image, wanted.name)
        assignment = manual_assignment(image, wanted) if counts is None else ()
        validate_topic_configs(configs, self._port.configs.current)
        if counts is not None:
            assignment = tuple(assign_replicas(brokers, *counts, random=self._random.randrange))
            await draft.time_slice.pause()
        return self._topic(image, wanted.name, assignment, configs), counts is not None

    def _counts(self, brokers: Sequence[PlacedBroker], wanted: CreatableTopic) -> tuple[int, int]:
        """Return how many partitions and replicas the topic gets. Raises Refusal if they cannot be
        placed.
        """
        partitions, factor, config = wanted.num_partitions, wanted.replication_factor, self._port.configs.static
        if partitions == -1:
            partitions = config.integer("num.partitions")
        if factor == -1:
            factor = config.integer("default.replication.factor")
        check_storable(self._port, partitions, factor)
        check_counts(brokers, partitions, factor)
        return partitions, factor

    def _topic(self, image: Image, name: str, assignment: Assignment, configs: Mapping[str, str]) -> Topic:
        live = image.live_ids()
        partitions = []
        for replicas in assignment:
            stateless = Partition(replicas=replicas, controller_epoch=image.controller_epoch)
            partitions.append(leadership.elect_leader(stateless, live) or stateless)
        return Topic(
            name=name,
            topic_id=new_id(),
            partitions=tuple(partitions),
            configs=Map(configs),
            version=0,
            config_version=image.leftover_configs.get(name, -1) + 1,
            has_partitions_znode=True,
        )

    def response(self, outcomes: Sequence[Outcome]) -> Steps[CreateTopicsResponse]:
        hidden = yield from self._context.denied(DESCRIBE_CONFIGS, list(self.occurrences), logs_denials=False)
        topics = yield from steps.one_by_one(self._result(outcome, hidden) for outcome in outcomes)
        return CreateTopicsResponse(throttle_time_ms=self.quota.throttle_ms(), topics=topics)

    def _result(self, outcome: Outcome, without_configs: Container[str]) -> CreatableTopicResult:
        """Return the row of a topic. Clients may not see the configs of those `without_configs`."""
        topic = self._created.get(outcome.change.resource)
        shows_configs = outcome.change.resource not in without_configs
        hidden = ErrorCode.NONE if shows_configs else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if topic is None or outcome.refusal is not None:
            return CreatableTopicResult(
                name=outcome.change.resource,
                topic_id=bytes(16) if topic is None or self._request.validate_only else topic.topic_id,
                error_code=outcome.code,
                error_message=outcome.message,
                topic_config_error_code=(
                    ErrorCode.NONE if outcome.change.resource in {CLUSTER_METADATA, *self._admitted} else hidden
                ),
            )
        if not shows_configs:
            return CreatableTopicResult(
                name=topic.name,
                error_message=None,
                topic_id=topic.topic_id if outcome.is_carried_out else bytes(16),
                topic_config_error_code=hidden,
            )
        return CreatableTopicResult(
            name=topic.name,
            error_message=None,
            topic_id=topic.topic_id if outcome.is_carried_out else bytes(16),
            num_partitions=len(topic.partitions),
            replication_factor=topic.replication_factor,
            configs=described(topic.configs, self._port.configs.current, self._context.header.api_version),
        )


async def creation(topic: Topic, leftover: int | None, time_slice: TimeSlice) -> list[Operation]:
    """Return the operations that create a topic with its leaders.

    They form one commit, so no reader sees half a topic. If they are too large for one commit, the
    first ones create a topic that a later controller can complete. Configs that an earlier topic of
    this name left are overwritten (Kafka: AdminZkClient.writeTopicPartitionAssignment).
    """
    path, configs = layout.topic_config_path(topic.name), encode_config(topic.configs)
    return [
        Create(path, configs) if leftover is None else SetData(path, configs, leftover),
        Create(layout.topic_path(topic.name), encode_topic(topic)),
        Create(layout.partitions_path(topic.name)),
        *await partition_znodes(topic, 0, time_slice),
    ]


def described(configs: Mapping[str, str], node: NodeConfig, version: int) -> list[CreatableTopicConfigs]:
    """Return the effective configs of a new topic, encoded. Topics without overrides share one
    encoding.
    """
    rows = _default_rows(node, version)
    if not configs:
        return cast("list[CreatableTopicConfigs]", list(rows))
    defaults, entries = topic_entries({}, node), topic_entries(configs, node)
    return cast(
        "list[CreatableTopicConfigs]",
        [row if entry is default else _row(entry) for entry, default, row in zip(entries, defaults, rows, strict=True)],
    )


@kept_in_config
def _default_rows(node: NodeConfig, version: int) -> tuple[bytes, ...]:
    if version < CONFIGS_SINCE:
        return tuple(b"" for _ in topic_entries({}, node))  # these versions have no configs
    encode = encoder(CreatableTopicConfigs, version)
    return tuple(encode(_row(entry)) for entry in topic_entries({}, node))


def _row(entry: DescribedConfig) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
    )


API = served(SPEC, handle)
