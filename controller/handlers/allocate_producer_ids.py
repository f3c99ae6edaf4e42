"""AllocateProducerIds (67) gives a broker a block of ids for producers."""

from ...admin.permissions import CLUSTER_ACTION
from ...admin.spec import Sender
from ...cluster.errors import Refusal
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ..active.active_controller import LocalController
from ..active.jobs import ControllerMoved
from ..active.producer_id_blocks import NoBlockLeft


async def handle(
    place: LocalController, _context: RequestContext, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    return await allocate(place, request)


async def allocate(place: LocalController, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    """Answer a request of the active controller's own node, which arrives by call instead of by
    network.
    """
    controller = place.active
    if controller is None:
        return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    broker = controller.image.brokers.get(request.broker_id)
    if broker is None:
        return AllocateProducerIdsResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)
    if broker.epoch != request.broker_epoch:
        return AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    try:
        block = await controller.producer_ids.next_block(request.broker_id)
    except ControllerMoved:
        return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    except Refusal as refusal:
        return AllocateProducerIdsResponse(error_code=refusal.code)
    except NoBlockLeft:
        return AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    return AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block))


API = ServedApi(
    key=ApiKey.ALLOCATE_PRODUCER_IDS,
    handler=handle,
    sender=Sender.NODE,
    permissions=(CLUSTER_ACTION,),
)
