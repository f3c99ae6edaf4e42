"""JoinGroup (11) makes a client a member of a group of the classic protocol. The response waits for
the other members.
"""

from typing import Annotated

from ..schema import Int16, Int32, WireStruct, ignorable, message, nullable_since, since


class JoinGroupRequestProtocol(WireStruct):
    name: str = ""
    metadata: bytes = b""


@message(11, "request", versions=(0, 9), flexible=6)
class JoinGroupRequest(WireStruct):
    group_id: str = ""
    session_timeout_ms: Int32 = 0
    rebalance_timeout_ms: Annotated[Int32, since(1), ignorable] = -1
    """Before version 1, the timeout of the session stands for it."""
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(5)] = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: Annotated[str | None, since(8), ignorable] = None


class JoinGroupResponseMember(WireStruct):
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(5), ignorable] = None
    metadata: bytes = b""


@message(11, "response", versions=(0, 9), flexible=6)
class JoinGroupResponse(WireStruct):
    throttle_time_ms: Annotated[Int32, since(2), ignorable] = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[str | None, since(7), ignorable] = None
    protocol_name: Annotated[str | None, nullable_since(7)] = ""
    leader: str = ""
    skip_assignment: Annotated[bool, since(9), ignorable] = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = []
