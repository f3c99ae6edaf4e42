"""CreateTopics (19): plan each topic against the image, commit, wait until it is complete."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from random import Random
from typing import cast

from ...admin import questions
from ...admin.changes import Change, Outcome
from ...admin.configs.description import DescribedConfig, topic_entries
from ...admin.create_topics import (
    CLUSTER_METADATA,
    CREATE_TOPIC,
    CREATE_TOPICS,
    DESCRIBE_CONFIGS,
    SPEC,
    check_is_no_metadata,
    creation,
)
from ...cluster.delta import TopicBecomes
from ...cluster.entities import Topic
from ...cluster.errors import Refusal
from ...cluster.quotas.mutation_quota import MutationQuotas, RequestQuota
from ...network.serving.api import served
from ...network.serving.context import NO_NAMES, RequestContext
from ...process import steps
from ...process.settings.node_config import NodeConfig, kept_in_config
from ...process.steps import Steps
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
from ..active.jobs import Draft, StagedElement
from ..active.topic_writing import stage_creation
from .change_quotas import quota_of
from .changes import carry_out
from .controller_port import ControllerPort
from .parts import Parts, one_by_one, outcome_of
from .planning import default_configs, judge

CONFIGS_SINCE = 5
"""The first version whose response holds the configs of created topics (KIP-525)."""


async def handle(
    port: ControllerPort,
    quotas: MutationQuotas,
    random: Random,
    context: RequestContext,
    request: CreateTopicsRequest,
) -> Steps[CreateTopicsResponse]:
    planner = CreationPlanner(port, context, request, quota_of(quotas, context, strict_since=6), random)
    planner.denied = await context.denied_in_advance(CREATE_TOPIC, planner.restricted, unless=CREATE_TOPICS)
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
        self._validate_only = request.validate_only
        self.occurrences = Counter(topic.name for topic in request.topics)
        self.denied = NO_NAMES
        """The topics of a long request that the client might not create when it arrived."""
        self._created: dict[str, Topic] = {}
        self._quota = quota
        self._admitted: set[str] = set()
        """The topics that passed the checks of the request as such."""
        self._is_for_cluster = context.origin.api_key == ApiKey.FIND_COORDINATOR
        """Whether they are coordinators' topics, which are created for the cluster and not for the
        client, so that they need no permission, as in Kafka.
        """

    @property
    def restricted(self) -> list[str]:
        """The topics that the client needs a permission for."""
        if self._is_for_cluster:
            return []
        return [name for name, times in self.occurrences.items() if times == 1 and name != CLUSTER_METADATA]

    async def plan(self, draft: Draft, wanted: CreatableTopic) -> Outcome:
        return await outcome_of(Change(wanted.name), self._planned(draft, wanted))

    async def _planned(self, draft: Draft, wanted: CreatableTopic) -> StagedElement | None:
        self._check_entry(wanted)
        self._admitted.add(wanted.name)
        configs, max_bytes = self._port.configs, self._port.store.max_commit_bytes
        planned = creation(
            draft.image, wanted, configs.current, static=configs.static, max_bytes=max_bytes, random=self._random
        )
        topic = await draft.take(planned)
        await judge(
            self._port,
            self._context,
            lambda: questions.creation(
                questions.asked_by(self._context, validate_only=self._validate_only),
                topic,
                default_configs(self._port, draft.image),
                is_placed=not wanted.assignments,
                automatic=self._context.origin.api_key >= 0,
            ),
            draft,
        )
        element = await self._staged(draft, TopicBecomes.of(topic))
        self._created[topic.name] = topic
        return element

    async def _staged(self, draft: Draft, created: TopicBecomes) -> StagedElement | None:
        """Stage the creation of a topic. Returns None if it is only validated; later topics of the
        request see it all the same. Raises Refusal.
        """
        if self._validate_only:
            draft.suppose(created)
            return None
        self._quota.count(created.name, len(created.topic.partitions))
        return await draft.take(stage_creation(draft, created))

    def _check_entry(self, wanted: CreatableTopic) -> None:
        check_is_no_metadata(wanted.name)
        if self.occurrences[wanted.name] > 1:
            raise Refusal(ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic.")
        if not (self._is_for_cluster or self._may_create(wanted.name)):
            raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")

    def _may_create(self, name: str) -> bool:
        context = self._context
        if name in self.denied:
            return False
        return context.may(CREATE_TOPICS, logs_denial=False) or context.may(CREATE_TOPIC, name)

    def response(self, outcomes: Sequence[Outcome]) -> Steps[CreateTopicsResponse]:
        hidden = yield from self._context.denied(DESCRIBE_CONFIGS, list(self.occurrences), logs_denials=False)
        topics = yield from steps.one_by_one(self._result(outcome, hidden) for outcome in outcomes)
        return CreateTopicsResponse(throttle_time_ms=self._quota.throttle_ms(), topics=topics)

    def _result(self, outcome: Outcome, without_configs: Container[str]) -> CreatableTopicResult:
        """Return the row of a topic. Clients may not see the configs of those `without_configs`."""
        topic = self._created.get(outcome.change.resource)
        shows_configs = outcome.change.resource not in without_configs
        hidden = ErrorCode.NONE if shows_configs else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if topic is None or outcome.refusal is not None:
            return CreatableTopicResult(
                name=outcome.change.resource,
                topic_id=bytes(16) if topic is None or self._validate_only else topic.topic_id,
                error_code=outcome.code,
                error_message=outcome.message,
                topic_config_error_code=(
                    ErrorCode.NONE if outcome.change.resource in {CLUSTER_METADATA, *self._admitted} else hidden
                ),
            )
        row = CreatableTopicResult(
            name=topic.name,
            error_message=None,
            topic_id=topic.topic_id if outcome.is_carried_out else bytes(16),
            topic_config_error_code=hidden,
        )
        if shows_configs:
            row.num_partitions, row.replication_factor = len(topic.partitions), topic.replication_factor
            row.configs = described(topic.configs, self._port.configs.current, self._context.header.api_version)
        return row


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
