"""AddOffsetsToTxn (25) makes the offsets of a group part of a producer's transaction."""

from ...clock import now_ms
from ...cluster.coordinators import partition_for
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ..serving.node_coordinator import RecordCoordinator
from ..serving.node_topics import OFFSETS_TOPIC
from ..serving.plane import DataPlane
from ..transactions import ProducerIdentity, TransactionError
from .permissions import READ_GROUP, WRITE_TRANSACTIONAL_ID
from .reaching import refusal_of_producer
from .transactions import code_for


def handle(
    plane: DataPlane, coordinator: RecordCoordinator, context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    code = _added(plane, coordinator, context, request)
    return AddOffsetsToTxnResponse(error_code=code_for(context.header.api_version, code))


def _added(
    plane: DataPlane, coordinator: RecordCoordinator, context: RequestContext, request: AddOffsetsToTxnRequest
) -> ErrorCode:
    if not context.may(WRITE_TRANSACTIONAL_ID, request.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not context.may(READ_GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    code = refusal_of_producer(coordinator, context, request.transactional_id)
    topic = plane.view.cache.image.topics.get(OFFSETS_TOPIC)
    if code or topic is None:
        return code or ErrorCode.COORDINATOR_NOT_AVAILABLE
    place = OFFSETS_TOPIC, partition_for(request.group_id, len(topic.partitions))
    producer = ProducerIdentity(request.producer_id, request.producer_epoch)
    try:
        plane.transactions.add_partitions(request.transactional_id, producer, {place}, now_ms())
    except TransactionError as error:
        return error.code
    return ErrorCode.NONE


API = ServedApi(
    key=ApiKey.ADD_OFFSETS_TO_TXN,
    handler=handle,
    waits_for_update=True,
    permissions=(WRITE_TRANSACTIONAL_ID, READ_GROUP),
)
