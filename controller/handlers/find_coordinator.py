"""FindCoordinator (10) returns the node that leads the partition to which the key hashes.

If the topic of the coordinators is missing, the node has the controller create it, and waits for
its leaders for a while (K590-7). This needs neither a permission of the client nor
`auto.create.topics.enable`, because groups and transactions depend on the topic.
"""

import logging
from collections.abc import Awaitable, Iterator, Mapping, Sequence

import trio

from ...admin.find_coordinator import DESCRIBE_GROUP, DESCRIBE_TRANSACTIONAL_ID, MANY_KEYS_SINCE, SHARE_SINCE, SPEC
from ...cluster.coordinators import COORDINATED_BY, CoordinatorType, coordinator_of
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.partition_view import endpoints_at
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...process.observe.logs import about, cut
from ...process.steps import Steps, one_by_one
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.find_coordinator import CoordinatorEndpoint, FindCoordinatorRequest, FindCoordinatorResponse
from ..broker.auto_creation import AutoCreation
from ..broker.view import BrokerView

log = logging.getLogger("minicontroller.coordinators")

PATIENCE_SECONDS = 5.0
"""The seconds that a request waits for the topic and its leaders, well below the timeout of
clients, which may ask again.
"""

TEXTS: Mapping[int, str] = {
    ErrorCode.NONE: "NONE",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}
"""The message of a response in versions 1 to 3, by its error. From version 4 on it is always empty.
"""


PERMISSIONS = {
    CoordinatorType.GROUP: (DESCRIBE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    CoordinatorType.TRANSACTION: (DESCRIBE_TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}
"""The permission that a key needs, and the error without it."""


Answer = Steps[FindCoordinatorResponse | Awaitable["Answer"]]


def handle(
    view: BrokerView, creation: AutoCreation, context: RequestContext, request: FindCoordinatorRequest
) -> Answer:
    keys = request.coordinator_keys if context.header.api_version >= MANY_KEYS_SINCE else [request.key]
    if request.key_type == CoordinatorType.SHARE and context.header.api_version >= MANY_KEYS_SINCE:
        return _no_share_groups(context, keys)
    if request.key_type not in COORDINATED_BY:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"There are no coordinators of type {request.key_type} here.")
    asked = CoordinatorType(request.key_type)
    denied = yield from context.denied(PERMISSIONS[asked][0], keys)
    if not denied.issuperset(keys) and COORDINATED_BY[asked] not in view.cache.image.topics:
        return _after_creation(view, creation, context, asked, keys, denied=denied)
    return (yield from _answer(view, context, asked, keys, denied))


async def _after_creation(
    view: BrokerView,
    creation: AutoCreation,
    context: RequestContext,
    asked: CoordinatorType,
    keys: Sequence[str],
    *,
    denied: frozenset[str],
) -> Answer:
    topic = COORDINATED_BY[asked]

    def is_led(image: Image) -> bool:
        return topic in image.topics and image.topics[topic].is_complete

    with trio.move_on_after(PATIENCE_SECONDS):
        code = (await creation.create(context, [topic]))[topic]
        if code == ErrorCode.LEADER_NOT_AVAILABLE:
            await view.cache.wait_topic(topic, is_led)
        else:
            context.dispatcher.warnings.say(
                log, "no coordinator for %r: the creation of %s was answered with %s", cut(keys[0]), topic, code.name,
                extra=about(context),
            )  # fmt: skip
    return _answer(view, context, asked, keys, denied)


def _answer(
    view: BrokerView, context: RequestContext, asked: CoordinatorType, keys: Sequence[str], denied: frozenset[str]
) -> Steps[FindCoordinatorResponse]:
    found = yield from one_by_one(_coordinators(view, context, asked, keys, denied))
    if context.header.api_version >= MANY_KEYS_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=TEXTS[only.error_code],
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _coordinators(
    view: BrokerView, context: RequestContext, asked: CoordinatorType, keys: Sequence[str], denied: frozenset[str]
) -> Iterator[CoordinatorEndpoint]:
    image = view.cache.image
    reachable = endpoints_at(image.brokers, context.listener)
    for key in keys:
        if key in denied:
            yield _nobody(key, PERMISSIONS[asked][1])
            continue
        leader = coordinator_of(asked, key, image.topics)
        endpoint = reachable.get(leader)
        if endpoint is None:
            yield _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            yield CoordinatorEndpoint(key=key, node_id=leader, host=endpoint.host, port=endpoint.port)


def _no_share_groups(context: RequestContext, keys: Sequence[str]) -> FindCoordinatorResponse:
    """Refuse share groups, which ZooKeeper mode lacks. Versions that know share groups get
    COORDINATOR_NOT_AVAILABLE, earlier ones INVALID_REQUEST.
    """
    knows = context.header.api_version >= SHARE_SINCE
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE if knows else ErrorCode.INVALID_REQUEST
    return FindCoordinatorResponse(coordinators=[_nobody(key, code) for key in keys])


def _nobody(key: str, code: ErrorCode) -> CoordinatorEndpoint:
    return CoordinatorEndpoint(key=key, node_id=-1, host="", port=-1, error_code=code)


API = served(SPEC, handle)
