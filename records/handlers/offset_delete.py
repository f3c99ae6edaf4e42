"""OffsetDelete (47) removes offsets of a group in topics that no member reads."""

from collections.abc import Awaitable

from ...admin.groups import DELETE_GROUP, READ_TOPIC, requested
from ...admin.offset_delete import SPEC, operations_of
from ...controller.handlers.controller_port import ControllerPort
from ...controller.handlers.groups import has_partition
from ...network.serving.api import Handler, response_of, served
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.offset_delete import (
    DeletedOffsetResult,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopicResult,
)
from ..serving.node_coordinator import RecordCoordinator
from ..serving.plane import DataPlane
from .judging import decided, is_judged


def receive(
    coordinator: RecordCoordinator,
    port: ControllerPort,
    context: RequestContext,
    request: OffsetDeleteRequest,
    ask_controller: Handler,
) -> OffsetDeleteResponse | Awaitable[OffsetDeleteResponse]:
    """Answer a request at the node that received it, which has to be the group's coordinator."""
    code = _refusal(coordinator, context, request.group_id)
    if code:
        return OffsetDeleteResponse(error_code=code)
    if not is_judged(port):
        return _deleted(coordinator.plane, context, request)
    return _judged(coordinator.plane, context, request, ask_controller)


async def handle(
    _coordinator: RecordCoordinator,
    port: ControllerPort,
    context: RequestContext,
    request: OffsetDeleteRequest,
) -> OffsetDeleteResponse:
    """Decide at the active controller."""
    change = requested(request.group_id, operations_of(request))
    return OffsetDeleteResponse(error_code=(await decided(port, context, request, [change]))[request.group_id])


async def _judged(
    plane: DataPlane, context: RequestContext, request: OffsetDeleteRequest, ask_controller: Handler
) -> OffsetDeleteResponse:
    response = await response_of(ask_controller(context, request))
    return response if response.error_code else _deleted(plane, context, request)


def _deleted(plane: DataPlane, context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    codes = _checked(plane, context, request)
    doomed = [place for place, code in codes.items() if not code]
    deleted = plane.groups.delete_offsets(request.group_id, doomed)
    if isinstance(deleted, ErrorCode):
        return OffsetDeleteResponse(error_code=deleted)
    codes = {place: code for place, code in codes.items() if code} | dict(deleted)  # in Kafka's order
    by_topic: dict[str, list[DeletedOffsetResult]] = {}
    for (name, index), code in codes.items():
        by_topic.setdefault(name, []).append(DeletedOffsetResult(partition_index=index, error_code=code))
    return OffsetDeleteResponse(
        topics=[OffsetDeleteTopicResult(name=name, partitions=rows) for name, rows in by_topic.items()]
    )


def _refusal(coordinator: RecordCoordinator, context: RequestContext, group_id: str) -> ErrorCode:
    if not context.may(DELETE_GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    return ErrorCode.NONE if coordinator.coordinates_group(group_id) else ErrorCode.NOT_COORDINATOR


def _checked(
    plane: DataPlane, context: RequestContext, request: OffsetDeleteRequest
) -> dict[tuple[str, int], ErrorCode]:
    topics = plane.view.cache.image.topics
    denied = context.without(READ_TOPIC, [topic.name for topic in request.topics])
    codes: dict[tuple[str, int], ErrorCode] = {}
    for topic in request.topics:
        for each in topic.partitions:
            code = ErrorCode.NONE
            if topic.name in denied:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not has_partition(topics, topic.name, each.partition_index):
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            codes[topic.name, each.partition_index] = code
    return codes


API = served(SPEC, handle, receiver=receive)
