"""DeleteTopics (20): plan the deletion of each topic, commit the marks, wait until no node shows
the topics.
"""

from collections.abc import Sequence

from ...admin import questions
from ...admin.changes import Change, Outcome
from ...admin.delete_topics import (
    DELETE_TOPIC,
    DESCRIBE_TOPIC,
    KNOWS_POLICIES,
    SPEC,
    check_request,
    marking,
    wanted_topic,
)
from ...clock import now_ms
from ...cluster.entities import Topic
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.quotas.mutation_quota import MutationQuotas, RequestQuota
from ...cluster.znodes import layout
from ...network.serving.api import served
from ...network.serving.context import NO_NAMES, RequestContext
from ...protocol.dry_runs import is_dry_run
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ..active.jobs import Draft, StagedElement
from ..active.topic_writing import stage_mark
from .change_quotas import quota_of
from .changes import carry_out
from .controller_port import ControllerPort
from .parts import Parts, one_by_one, outcome_of
from .planning import answered_code, judge


async def handle(
    port: ControllerPort, quotas: MutationQuotas, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    wanted = [DeleteTopicState(name) for name in request.topic_names] or request.topics
    once = {(topic.name, topic.topic_id): topic for topic in wanted}
    quota = quota_of(quotas, context, strict_since=5)
    planner = DeletionPlanner(port, context, list(once.values()), quota, validate_only=is_dry_run(request))
    planner.denied = await context.denied_in_advance(DELETE_TOPIC, [name for name, _ in once if name is not None])
    deletions = await carry_out(
        port,
        context,
        request,
        Parts(planner.wanted, lambda topic: Change(topic.name or ""), planner.plan),
        timeout_ms=request.timeout_ms,
        validate_only=planner.validate_only,
    )
    outcomes = dict(zip(once, deletions, strict=True))
    return DeleteTopicsResponse(
        throttle_time_ms=planner.quota.throttle_ms(),
        responses=[
            DeletableTopicResult(
                name=planner.names.get(topic.topic_id) if topic.name is None else topic.name,
                topic_id=topic.topic_id,
                error_code=answered_code(context, outcomes[topic.name, topic.topic_id], since=KNOWS_POLICIES),
                error_message=outcomes[topic.name, topic.topic_id].message,
            )
            for topic in wanted
        ],
    )


class DeletionPlanner:
    """Judges the topics of one request.

    A topic that appears twice, by name or by id, is one deletion, and both rows have its outcome
    (K4-D1). A topic that is already being deleted is judged like any other, so a client that may
    not delete it is refused.
    """

    def __init__(
        self,
        port: ControllerPort,
        context: RequestContext,
        wanted: Sequence[DeleteTopicState],
        quota: RequestQuota,
        *,
        validate_only: bool = False,
    ) -> None:
        self.validate_only = validate_only
        self._port = port
        self._context = context
        self.wanted = wanted
        """The topics of the request, each once."""
        self.quota = quota
        self.denied = NO_NAMES
        """The topics that a long request names and that the client might not delete when it
        arrived.
        """
        self.names: dict[bytes, str] = {}
        """The names of the topics that the request gives by id."""
        self._carried_out: dict[str | bytes, Outcome] = {}
        """The deletions of the earlier parts, by name and by id."""
        self._part: dict[str | bytes, Outcome] = {}
        self._first = 0

    async def plan(self, draft: Draft, first: int) -> Sequence[Outcome]:
        is_enabled = self._port.configs.static.boolean("delete.topic.enable")
        check_request(self.wanted, self._context.origin.api_version, is_enabled=is_enabled)
        if first > self._first:  # otherwise the same part is planned again
            self._carried_out |= self._part
        self._first, self._part = first, {}
        return await one_by_one(self.wanted, self._plan_one)(draft, first)

    async def _plan_one(self, draft: Draft, wanted: DeleteTopicState) -> Outcome:
        key = wanted.topic_id if wanted.name is None else wanted.name
        if (before := self._carried_out.get(key)) is not None:
            if wanted.name is None:
                self.names[wanted.topic_id] = before.change.resource
            again = before.refusal is None and not self.validate_only
            return Outcome(before.change, before.refusal, draft.stage(before.delta) if again else None)
        try:
            topic = self._resolve(draft.image, wanted)
        except Refusal as refusal:
            return Outcome(Change(wanted.name or ""), refusal=refusal)
        if topic.name not in self._part:
            outcome = await outcome_of(Change(topic.name), self._plan_topic(draft, topic))
            self._part |= {topic.name: outcome, topic.topic_id: outcome}
        return self._part[topic.name]

    async def _plan_topic(self, draft: Draft, topic: Topic) -> StagedElement | None:
        """Stage the deletion of a topic. Returns None if it is only validated. Raises Refusal."""
        marked = marking(topic, self._port.cache.image)
        created_ms = await self._created_ms(topic)
        await judge(
            self._port,
            self._context,
            lambda: questions.asked_by(self._context, validate_only=self.validate_only).delete_topic(
                topic.name, created_ms=created_ms
            ),
            draft,
        )
        if self.validate_only:
            draft.suppose(marked)
            return None
        self.quota.count(topic.name, len(topic.partitions))
        return stage_mark(draft, marked)

    async def _created_ms(self, topic: Topic) -> int | None:
        """Return when a topic was created, in milliseconds by the store's clock, or now if the
        topic is not in the store yet.

        The store is asked only if a rule reads the time of creation; otherwise None is returned.
        """
        rules = None if self._port.policy is None else self._port.policy.rules
        if rules is None or not rules.reads_creation:
            return None
        entry = await self._port.store.get(layout.topic_path(topic.name))
        return now_ms() if entry is None else entry.stat.ctime_ms

    def _resolve(self, image: Image, wanted: DeleteTopicState) -> Topic:
        if wanted.name is not None:
            self._check_permission(wanted.name)
            return wanted_topic(image, wanted)
        topic = wanted_topic(image, wanted)
        if not self._context.may(DESCRIBE_TOPIC, topic.name):
            raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        self.names[wanted.topic_id] = topic.name
        self._check_permission(topic.name)
        return topic

    def _check_permission(self, name: str) -> None:
        if name in self.denied or not self._context.may(DELETE_TOPIC, name):
            raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


API = served(SPEC, handle)
