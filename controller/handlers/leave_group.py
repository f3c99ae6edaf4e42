"""LeaveGroup (13), by which administrators remove members of a group."""

from collections.abc import Iterator

from ...admin.groups import READ_GROUP
from ...admin.permissions import Permission
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps, one_by_one
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeavingMemberResult
from ..broker.coordinator import Coordinator

SEVERAL_SINCE = 3
"""The first version that names several members, each with an error of its own."""
LEAVE_GROUP = Permission(READ_GROUP.operation, READ_GROUP.resource_type, "GROUP_AUTHORIZATION_FAILED")


def handle(coordinator: Coordinator, context: RequestContext, request: LeaveGroupRequest) -> Steps[LeaveGroupResponse]:
    if not context.may(LEAVE_GROUP, request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    if not coordinator.coordinates_group(request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
    if context.header.api_version < SEVERAL_SINCE:
        code = coordinator.remove_member(request.group_id, request.member_id, None)
        return LeaveGroupResponse(error_code=code)
    members = yield from one_by_one(_members(coordinator, request))
    context.note(members[0].error_code if members else ErrorCode.NONE)
    return LeaveGroupResponse(members=members)


def _members(coordinator: Coordinator, request: LeaveGroupRequest) -> Iterator[LeavingMemberResult]:
    for member in request.members:
        member_id, instance_id = member.member_id, member.group_instance_id
        code = coordinator.remove_member(request.group_id, member_id, instance_id)
        yield LeavingMemberResult(member_id=member_id, group_instance_id=instance_id, error_code=code)


API = ServedApi(
    key=ApiKey.LEAVE_GROUP,
    handler=handle,
    waits_for_update=True,
    permissions=(LEAVE_GROUP,),
)
