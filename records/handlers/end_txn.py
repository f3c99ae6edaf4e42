"""EndTxn (26) commits or aborts a producer's transaction: its coordinator writes a marker to each
log that has records of it.
"""

from ...clock import now_ms
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ..serving.node_coordinator import RecordCoordinator
from ..serving.plane import DataPlane
from ..transactions import ProducerIdentity, TransactionError
from .permissions import WRITE_TRANSACTIONAL_ID
from .reaching import refusal_of_producer
from .transactions import code_for


def handle(
    plane: DataPlane, coordinator: RecordCoordinator, context: RequestContext, request: EndTxnRequest
) -> EndTxnResponse:
    code = refusal_of_producer(coordinator, context, request.transactional_id)
    if code:
        return EndTxnResponse(error_code=code)
    producer = ProducerIdentity(request.producer_id, request.producer_epoch)
    try:
        ending = plane.transactions.end(request.transactional_id, producer, commits=request.committed, now=now_ms())
    except TransactionError as error:
        return EndTxnResponse(error_code=code_for(context.header.api_version, error.code))
    if ending is not None:
        plane.data.finish(ending)
    return EndTxnResponse()


API = ServedApi(key=ApiKey.END_TXN, handler=handle, waits_for_update=True, permissions=(WRITE_TRANSACTIONAL_ID,))
