"""SyncGroup (14) brings the leader's assignment to the members of a classic group."""

from typing import Annotated

from ..schema import Int16, Int32, WireStruct, ignorable, message, since


class SyncGroupRequestAssignment(WireStruct):
    member_id: str = ""
    assignment: bytes = b""


@message(14, "request", versions=(0, 5), flexible=4)
class SyncGroupRequest(WireStruct):
    group_id: str = ""
    generation_id: Int32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(3)] = None
    protocol_type: Annotated[str | None, since(5), ignorable] = None
    protocol_name: Annotated[str | None, since(5), ignorable] = None
    assignments: list[SyncGroupRequestAssignment] = []


@message(14, "response", versions=(0, 5), flexible=4)
class SyncGroupResponse(WireStruct):
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[str | None, since(5), ignorable] = None
    protocol_name: Annotated[str | None, since(5), ignorable] = None
    assignment: bytes = b""
