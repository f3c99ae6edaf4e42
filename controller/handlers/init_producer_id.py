"""InitProducerId (22) gives a producer an id.

With a transactional id it is also how administrators fence the producers of that id. There can be
none, so nothing is kept of it: the answer has an id that no producer had, and its first epoch.
"""

from ...admin.permissions import Permission
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.time_slices import TimeSlice
from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from .node import Node
from .transactions import WRITE_TRANSACTIONAL_ID, is_coordinated_here

IDEMPOTENT_WRITE = Permission(
    AclOperation.IDEMPOTENT_WRITE,
    AclResourceType.CLUSTER,
    "or, without a transactional id, Write on any topic: else CLUSTER_AUTHORIZATION_FAILED",
)
WRITE_TOPIC = Permission(AclOperation.WRITE, AclResourceType.TOPIC, IDEMPOTENT_WRITE.otherwise)
NO_ID = -1
AT_ONCE = 100
"""How many topics are asked about at once."""


async def handle(node: Node, context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    code = await _refused(node, context, request)
    if code == ErrorCode.NONE:
        producer_id = await node.producer_ids.next_id()
        if producer_id is not None:
            return InitProducerIdResponse(producer_id=producer_id)
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return InitProducerIdResponse(error_code=code, producer_id=NO_ID, producer_epoch=NO_ID)


async def _refused(node: Node, context: RequestContext, request: InitProducerIdRequest) -> ErrorCode:
    """Return why the producer gets no id, in the order of Kafka's checks, or NONE."""
    name = request.transactional_id
    if name is not None and not context.may(WRITE_TRANSACTIONAL_ID, name):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if name is None and not await _may_write(node, context):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if (request.producer_id == NO_ID) != (request.producer_epoch == NO_ID) or name == "":
        return ErrorCode.INVALID_REQUEST
    if name is None:
        return ErrorCode.NONE
    if not 0 < request.transaction_timeout_ms <= node.config.integer("transaction.max.timeout.ms"):
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NONE if is_coordinated_here(node, name) else ErrorCode.NOT_COORDINATOR


async def _may_write(node: Node, context: RequestContext) -> bool:
    """Whether the client may write to any topic, whether it exists or not."""
    if context.may(IDEMPOTENT_WRITE, logs_denial=False):
        return True
    names = [pattern.name for pattern in node.security.acls if pattern.resource_type == AclResourceType.TOPIC]
    time_slice = TimeSlice()
    for start in range(0, len(names), AT_ONCE):
        if any(context.may_each(WRITE_TOPIC, names[start : start + AT_ONCE], logs_denials=False)):
            return True
        await time_slice.pause()
    return False


API = ServedApi(
    key=ApiKey.INIT_PRODUCER_ID,
    handler=handle,
    waits_for_update=True,
    permissions=(WRITE_TRANSACTIONAL_ID, IDEMPOTENT_WRITE, WRITE_TOPIC),
)
