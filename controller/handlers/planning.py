"""The parts that the plans of all changes share: the request to the policy, and the default
configs.
"""

import logging
from collections.abc import Callable, Mapping

from ...admin import questions
from ...admin.changes import Judgement, Outcome
from ...admin.policy.cluster_view import view
from ...admin.policy.runner import PolicyRefusal
from ...audit.event import NOT_AUTHENTICATED
from ...cluster.entities import NO_CONFIGS, NO_ENTITY_CONFIGS, UNREADABLE
from ...cluster.image import Image
from ...cluster.znodes import layout
from ...network.serving.context import RequestContext
from ...policies.interface import (
    AdminRequest,
    AlterLoggersRequest,
    JudgedRequest,
    PolicyRequest,
)
from ...process.observe.logs import about
from ...process.settings.topic_configs import differing_defaults
from ...protocol.error_codes import ErrorCode
from ..active.jobs import Draft
from .controller_port import ControllerPort

log = logging.getLogger("minicontroller.policy")


def default_configs(
    port: ControllerPort,
    image: Image,
    *,
    of_broker: Mapping[str, str] = NO_CONFIGS,
    of_all: Mapping[str, str] | None = None,
) -> Mapping[str, str]:
    """Return the default topic configs that differ from Kafka's own: those in this node's file,
    overridden by the default of all brokers. A broker's own configs apply to the partitions that it
    leads, and so to no topic as a whole.

    `of_broker` and `of_all` stand for the configs of a broker and of all brokers instead of the
    present ones.
    """
    if of_all is None:
        stored = image.configs.get(layout.DEFAULT_OF_BROKERS, NO_ENTITY_CONFIGS)
        of_all = port.configs.of_cluster if stored.version == UNREADABLE else stored.configs
    return differing_defaults(port.configs.static, of_broker, of_all)


async def judge(
    port: ControllerPort, context: RequestContext, question: Callable[[], JudgedRequest], draft: Draft
) -> None:
    """Ask the policy, if there is one, about a change of the draft's image. `question` makes the
    request to the policy; it is not called if there is neither a policy nor an audit log. Raises
    Refusal.
    """
    if port.policy is None and port.audit is None:
        return
    request = question()
    judgement = Judgement(request, draft.image)
    draft.judgements[resource_of(request)] = judgement
    if port.policy is None:
        return
    try:
        judgement.verdict = await port.policy.judge(request, view(draft.image, port.policy.topic_states), context)
    except PolicyRefusal as refusal:
        judgement.verdict = refusal.verdict
        raise


async def judge_change(
    port: ControllerPort, context: RequestContext, draft: Draft, outcome: Outcome, question: Callable[[], JudgedRequest]
) -> None:
    """Judge one change like `judge`. The judgement goes to this change alone, because there may be
    others with the same resource: one for each error of a topic's other partitions, one for each
    edit of a user. Raises Refusal.
    """
    try:
        await judge(port, context, question, draft)
    finally:
        outcome.judgement = draft.judgements.pop((outcome.change.kind, outcome.change.resource), None)


def judges_api(port: ControllerPort, context: RequestContext) -> bool:
    """Whether the policy judges an API of ACLs, users, quotas, tokens, groups or elections."""
    policy = port.policy
    return policy is not None and policy.judges_administration and policy.judges_api(context.policy_api)


async def judge_admin(
    port: ControllerPort, context: RequestContext, draft: Draft, outcome: Outcome, *, validate_only: bool = False
) -> None:
    """Ask the policy about a valid change of an API that it judges (`judges_api`), and note its
    judgement in the change. Raises Refusal.
    """
    await judge_change(
        port,
        context,
        draft,
        outcome,
        lambda: questions.administration(questions.asked_by(context, validate_only=validate_only), outcome.change),
    )


def answered_code(context: RequestContext, outcome: Outcome, *, since: int) -> ErrorCode:
    """Return the error code that the client gets for a deletion. Versions of the API before `since`
    are older than policies: a violation is answered UNKNOWN_SERVER_ERROR there, and logged.
    """
    version = context.origin.api_version
    if outcome.code != ErrorCode.POLICY_VIOLATION or version >= since or outcome.judgement is None:
        return outcome.code  # without a judgement it is Kafka's own: the topic keeps its records (cleanup.policy)
    log.info(
        "%s of topic %s by %s: the policy refused it, which the client is told as UNKNOWN_SERVER_ERROR in version %d: %s",
        context.policy_api, outcome.change.resource, context.origin.principal or NOT_AUTHENTICATED, version, outcome.message or "",
        extra=about(context),
    )  # fmt: skip
    return ErrorCode.UNKNOWN_SERVER_ERROR


def resource_of(request: JudgedRequest) -> tuple[str, str]:
    """Return the kind and name of the resource that a request to the policy is about, as in
    `Change`.
    """
    if isinstance(request, PolicyRequest):
        return "topic", request.topic
    if isinstance(request, AdminRequest):
        return request.kind, request.name
    return ("logger" if isinstance(request, AlterLoggersRequest) else "broker"), request.broker
