"""InitProducerId (22) gives a producer an id. With a transactional id it is also how administrators
fence the producers of that id.
"""

from collections.abc import Awaitable

from ...admin.permissions import Permission
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps
from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ..broker.coordinator import NO_ID, Coordinator, without_producer_id
from ..broker.view import BrokerView

WRITE_TRANSACTIONAL_ID = Permission(
    AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED for the id"
)
IDEMPOTENT_WRITE = Permission(
    AclOperation.IDEMPOTENT_WRITE,
    AclResourceType.CLUSTER,
    "or, without a transactional id, Write on any topic: else CLUSTER_AUTHORIZATION_FAILED",
)
WRITE_TOPIC = Permission(AclOperation.WRITE, AclResourceType.TOPIC, IDEMPOTENT_WRITE.otherwise)
FENCED_SINCE = 4
"""The first version whose clients know PRODUCER_FENCED (KIP-588)."""
NAMES_AT_ONCE = 100
"""How many topics are asked about in a step."""


def handle(
    view: BrokerView, coordinator: Coordinator, context: RequestContext, request: InitProducerIdRequest
) -> Steps[InitProducerIdResponse | Awaitable[InitProducerIdResponse]]:
    code = yield from _refused(view, coordinator, context, request)
    return without_producer_id(code) if code else _initialized(coordinator, context.header.api_version, request)


async def _initialized(
    coordinator: Coordinator, version: int, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    response = await coordinator.init_producer(request)
    if response.error_code == ErrorCode.PRODUCER_FENCED and version < FENCED_SINCE:
        response.error_code = ErrorCode.INVALID_PRODUCER_EPOCH
    return response


def _refused(
    view: BrokerView, coordinator: Coordinator, context: RequestContext, request: InitProducerIdRequest
) -> Steps[ErrorCode]:
    """Return why the producer gets no id, in the order of Kafka's checks, or NONE."""
    name = request.transactional_id
    if name is not None and not context.may(WRITE_TRANSACTIONAL_ID, name):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if name is None and not (yield from _may_write(view, context)):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if (request.producer_id == NO_ID) != (request.producer_epoch == NO_ID) or name == "":
        return ErrorCode.INVALID_REQUEST
    if name is None:
        return ErrorCode.NONE
    if not 0 < request.transaction_timeout_ms <= view.configs.static.integer("transaction.max.timeout.ms"):
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NONE if coordinator.coordinates_transactional_id(name) else ErrorCode.NOT_COORDINATOR


def _may_write(view: BrokerView, context: RequestContext) -> Steps[bool]:
    """Whether the client may write to any topic, whether it exists or not."""
    if context.may(IDEMPOTENT_WRITE, logs_denial=False):
        return True
    names = [pattern.name for pattern in view.cache.image.acls if pattern.resource_type == AclResourceType.TOPIC]
    for start in range(0, len(names), NAMES_AT_ONCE):
        if any(context.may_each(WRITE_TOPIC, names[start : start + NAMES_AT_ONCE], logs_denials=False)):
            return True
        yield
    return False


API = ServedApi(
    key=ApiKey.INIT_PRODUCER_ID,
    handler=handle,
    waits_for_update=True,
    permissions=(WRITE_TRANSACTIONAL_ID, IDEMPOTENT_WRITE, WRITE_TOPIC),
)
