"""CreatePartitions (37): plan each topic against the image, commit, wait until it has grown."""

from collections import Counter
from random import Random

from ...admin import questions
from ...admin.changes import Change, Outcome
from ...admin.create_partitions import ALTER_TOPIC, SPEC, growth
from ...cluster.errors import Refusal
from ...cluster.quotas.mutation_quota import MutationQuotas, RequestQuota
from ...network.serving.api import served
from ...network.serving.context import NO_NAMES, RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ..active.jobs import Draft, StagedElement
from ..active.topic_writing import stage_growth
from .change_quotas import quota_of
from .changes import carry_out
from .controller_port import ControllerPort
from .parts import Parts, one_by_one, outcome_of
from .planning import default_configs, judge


async def handle(
    port: ControllerPort,
    quotas: MutationQuotas,
    random: Random,
    context: RequestContext,
    request: CreatePartitionsRequest,
) -> CreatePartitionsResponse:
    quota = quota_of(quotas, context, strict_since=3)
    planner = PartitionsPlanner(port, context, request, quota, random)
    planner.denied = await context.denied_in_advance(ALTER_TOPIC, planner.once)
    outcomes = await carry_out(
        port,
        context,
        request,
        Parts(planner.wanted, lambda topic: Change(topic.name), one_by_one(planner.wanted, planner.plan)),
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    return CreatePartitionsResponse(
        throttle_time_ms=quota.throttle_ms(),
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
        self._context = context
        self._validate_only = request.validate_only
        self._quota = quota
        self._random = random
        self.denied = NO_NAMES
        """The topics of a long request that the client might not alter when it arrived."""
        topics = {topic.name: topic for topic in request.topics}
        occurrences = Counter(topic.name for topic in request.topics)
        self.once = [name for name, times in occurrences.items() if times == 1]
        self._repeated = {name: None for name, times in occurrences.items() if times > 1}
        self.wanted = [topics[name] for name in (*self.once, *self._repeated)]
        """The topics of the request, in the order in which Kafka has the rows: those that it names
        twice come last.
        """

    async def plan(self, draft: Draft, wanted: CreatePartitionsTopic) -> Outcome:
        return await outcome_of(Change(wanted.name), self._planned(draft, wanted))

    async def _planned(self, draft: Draft, wanted: CreatePartitionsTopic) -> StagedElement | None:
        if wanted.name in self._repeated:
            raise Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
        if wanted.name in self.denied or not self._context.may(ALTER_TOPIC, wanted.name):
            raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topic authorization is failed.")
        after, grown = growth(draft.image, wanted, max_bytes=self._port.store.max_commit_bytes, random=self._random)
        await judge(
            self._port,
            self._context,
            lambda: questions.growth(
                questions.asked_by(self._context, validate_only=self._validate_only),
                after,
                default_configs(self._port, draft.image),
                is_placed=wanted.assignments is None,
            ),
            draft,
        )
        if self._validate_only:
            draft.suppose(grown)
            return None
        self._quota.count(wanted.name, len(grown.partitions))
        return await draft.take(stage_growth(draft, after, grown))


API = served(SPEC, handle)
