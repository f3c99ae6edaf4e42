"""LeaveGroup (13), by which administrators remove members of a group. Groups have no members here,
so every member that is named is unknown.
"""

from collections.abc import Iterator

from ...admin.groups import READ_GROUP
from ...admin.permissions import Permission
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps, one_by_one
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeavingMemberResult
from ..broker.view import BrokerView
from .groups import is_coordinated_by

SEVERAL_SINCE = 3
"""The first version that names several members, each with an error of its own."""
LEAVE_GROUP = Permission(READ_GROUP.operation, READ_GROUP.resource_type, "GROUP_AUTHORIZATION_FAILED")


def handle(view: BrokerView, context: RequestContext, request: LeaveGroupRequest) -> Steps[LeaveGroupResponse]:
    if not context.may(LEAVE_GROUP, request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    if not is_coordinated_by(view.broker_id, view.cache.image.topics, request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
    if context.api_version < SEVERAL_SINCE:
        return LeaveGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    members = yield from one_by_one(_members(request))
    context.note(members[0].error_code if members else ErrorCode.NONE)
    return LeaveGroupResponse(members=members)


def _members(request: LeaveGroupRequest) -> Iterator[LeavingMemberResult]:
    for member in request.members:
        yield LeavingMemberResult(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            error_code=ErrorCode.UNKNOWN_MEMBER_ID,
        )


API = ServedApi(
    key=ApiKey.LEAVE_GROUP,
    handler=handle,
    waits_for_update=True,
    permissions=(LEAVE_GROUP,),
)
