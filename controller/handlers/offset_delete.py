"""OffsetDelete (47) removes offsets of a group. A group whose last offset is removed exists no
longer.
"""

from collections.abc import Callable
from functools import partial

from ...admin.groups import DELETE_GROUP, READ_TOPIC, requested
from ...admin.offset_delete import SPEC, operations_of, without_offsets
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...process.time_slices import TimeSlice
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.offset_delete import (
    DeletedOffsetResult,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopicResult,
)
from .controller_port import ControllerPort
from .entity_changes import Planned, change_entity, refusing
from .groups import has_partition, reached_coordinator


async def handle(port: ControllerPort, context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Answer a request at the active controller."""
    codes, group_id = await _checked(port, context, request), request.group_id
    doomed = {
        name: [index for index, code in partitions.items() if code == ErrorCode.NONE]
        for name, partitions in codes.items()
    }
    plan: Callable[[Image], Planned] = partial(without_offsets, group_id=group_id, doomed=doomed)
    if not context.may(DELETE_GROUP, group_id):
        plan = refusing(Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    elif not group_id:
        plan = refusing(Refusal(ErrorCode.INVALID_GROUP_ID))
    elif not reached_coordinator(port, context, group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.NOT_COORDINATOR)
    outcome = await change_entity(port, context, request, requested(group_id, operations_of(request)), plan)
    if outcome.refusal is not None:
        return OffsetDeleteResponse(error_code=outcome.code)
    return _response(codes)


async def _checked(
    port: ControllerPort, context: RequestContext, request: OffsetDeleteRequest
) -> dict[str, dict[int, ErrorCode]]:
    """Return the code of each partition, NONE for those whose offset is to be removed, by topic."""
    topics, time_slice = port.controller.serving().image.topics, TimeSlice()
    denied = context.without(READ_TOPIC, [topic.name for topic in request.topics])
    codes: dict[str, dict[int, ErrorCode]] = {}
    for topic in request.topics:
        await time_slice.pause()
        for each in topic.partitions:
            code = ErrorCode.NONE
            if topic.name in denied:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not has_partition(topics, topic.name, each.partition_index):
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            codes.setdefault(topic.name, {})[each.partition_index] = code
    return codes


def _response(codes: dict[str, dict[int, ErrorCode]]) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteTopicResult(
                name=name,
                partitions=[
                    DeletedOffsetResult(partition_index=index, error_code=code) for index, code in partitions.items()
                ],
            )
            for name, partitions in codes.items()
        ]
    )


API = served(SPEC, handle)
