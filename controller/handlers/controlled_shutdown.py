"""ControlledShutdown (7): before a broker stops, its leaderships move to other brokers."""

from ...admin.permissions import CLUSTER_ACTION
from ...admin.spec import Sender
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from ..active import partition_states
from ..active.active_controller import LocalController
from ..active.jobs import ControllerMoved


async def handle(
    place: LocalController, _context: RequestContext, request: ControlledShutdownRequest
) -> ControlledShutdownResponse:
    return await shut_down(place, request)


async def shut_down(place: LocalController, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
    """Answer a request of the active controller's own node, which arrives by call instead of by
    network.
    """
    controller = place.active
    if controller is None:
        return ControlledShutdownResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
    broker = controller.image.brokers.get(request.broker_id)
    if broker is None:
        return ControlledShutdownResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE)
    if 0 <= request.broker_epoch < broker.epoch:
        return ControlledShutdownResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    controller.brokers.begin_shutdown(request.broker_id)
    try:
        stopped = await controller.writer.write(
            lambda draft: partition_states.release_broker(draft, request.broker_id, controller.epoch), urgent=True
        )
    except ControllerMoved:
        return ControlledShutdownResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
    controller.updates.stop_followers(controller.image, request.broker_id, stopped)
    return ControlledShutdownResponse(
        remaining_partitions=[
            RemainingPartition(topic_name=topic, partition_index=index)
            for topic, index in partition_states.still_led(controller.image, request.broker_id)
        ]
    )


API = ServedApi(
    key=ApiKey.CONTROLLED_SHUTDOWN,
    handler=handle,
    sender=Sender.NODE,
    permissions=(CLUSTER_ACTION,),
)
