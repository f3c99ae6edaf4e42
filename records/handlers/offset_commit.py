"""OffsetCommit (8) sets offsets of a group: its members do, and others while it has none."""

from collections.abc import Awaitable, Iterator

import msgspec

from ...admin.groups import READ_GROUP, requested
from ...admin.offset_commit import SPEC, operations_of
from ...clock import now_ms
from ...cluster.errors import Refusal
from ...controller.handlers.controller_port import ControllerPort
from ...network.serving.api import Handler, response_of, served
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.offset_commit import (
    CommittedOffsetResult,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResult,
)
from ..groups.offsets import Committer, GroupOffset
from ..serving.node_coordinator import RecordCoordinator
from ..serving.plane import DataPlane
from .committing import Asked, CheckedOffsets, checked
from .judging import decided, is_judged
from .reaching import refusal_of_group

NO_TIME = -1


def receive(
    coordinator: RecordCoordinator,
    port: ControllerPort,
    context: RequestContext,
    request: OffsetCommitRequest,
    ask_controller: Handler,
) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
    """Answer a request at the node that received it, which has to be the group's coordinator."""
    asked = list(_asked(request, now_ms()))
    if not context.may(READ_GROUP, request.group_id):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)  # for each row of the request
    found = checked(coordinator.plane, context, asked)
    if not found.offsets:
        return _response(found)
    code = refusal_of_group(coordinator, request.group_id, may_be_nameless=True)
    if code:
        found.refuse(code)
        return _response(found)
    if _names_member(request) or not is_judged(port):
        return _committed(coordinator.plane, request, found)
    return _judged(coordinator.plane, context, request, found, ask_controller)


async def handle(
    _coordinator: RecordCoordinator,
    port: ControllerPort,
    context: RequestContext,
    request: OffsetCommitRequest,
) -> OffsetCommitResponse:
    """Decide at the active controller about what is no member's commit."""
    change = requested(request.group_id, operations_of(request))
    code = (await decided(port, context, request, [change]))[request.group_id]
    return _response(CheckedOffsets.refused(_asked(request, NO_TIME), code))


async def _judged(
    plane: DataPlane,
    context: RequestContext,
    request: OffsetCommitRequest,
    found: CheckedOffsets,
    ask_controller: Handler,
) -> OffsetCommitResponse:
    response = await response_of(ask_controller(context, _with_only(request, found)))
    code = next((ErrorCode(row.error_code) for topic in response.topics for row in topic.partitions), ErrorCode.NONE)
    if code:
        found.refuse(code)
        return _response(found)
    return _committed(plane, request, found)


def _committed(plane: DataPlane, request: OffsetCommitRequest, found: CheckedOffsets) -> OffsetCommitResponse:
    committer = Committer(request.member_id, request.group_instance_id, request.generation_id_or_member_epoch)
    code = plane.groups.commit(request.group_id, committer, found.offsets, now_ms())
    plane.data.groups_changed()
    if code:
        found.refuse(code)
    return _response(found)


def _names_member(request: OffsetCommitRequest) -> bool:
    return Committer(request.member_id, request.group_instance_id, request.generation_id_or_member_epoch).names_member


def _with_only(request: OffsetCommitRequest, found: CheckedOffsets) -> OffsetCommitRequest:
    """Return the request without the offsets that are refused."""
    topics = [
        msgspec.structs.replace(
            topic, partitions=[each for each in topic.partitions if (topic.name, each.partition_index) in found.offsets]
        )
        for topic in request.topics
    ]
    return msgspec.structs.replace(request, topics=[topic for topic in topics if topic.partitions])


def _asked(request: OffsetCommitRequest, now: int) -> Iterator[Asked]:
    expires = None if request.retention_time_ms == NO_TIME else now + request.retention_time_ms
    for topic in request.topics:
        for each in topic.partitions:
            time = now if each.commit_timestamp == NO_TIME else each.commit_timestamp
            offset = GroupOffset(
                each.committed_offset, each.committed_leader_epoch, each.committed_metadata or "", time, expires
            )
            yield Asked((topic.name, each.partition_index), offset)


def _response(found: CheckedOffsets) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitTopicResult(
                name=name,
                partitions=[CommittedOffsetResult(partition_index=index, error_code=code) for index, code in rows],
            )
            for name, rows in found.rows()
        ]
    )


API = served(SPEC, handle, receiver=receive)
