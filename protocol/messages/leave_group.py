"""LeaveGroup (13) takes members out of a group. Before version 3 it names one of them."""

from typing import Annotated

from ..schema import Int16, Int32, WireStruct, ignorable, message, since, until


class LeavingMember(WireStruct):
    member_id: str = ""
    group_instance_id: str | None = None
    reason: Annotated[str | None, since(5), ignorable] = None


@message(13, "request", versions=(0, 5), flexible=4)
class LeaveGroupRequest(WireStruct):
    group_id: str = ""
    member_id: Annotated[str, until(2)] = ""
    members: Annotated[list[LeavingMember], since(3)] = []


class LeavingMemberResult(WireStruct):
    member_id: str = ""
    group_instance_id: str | None = None
    error_code: Int16 = 0


@message(13, "response", versions=(0, 5), flexible=4)
class LeaveGroupResponse(WireStruct):
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16 = 0
    members: Annotated[list[LeavingMemberResult], since(3)] = []
