"""DescribeGroups (15) returns the state and the members of groups."""

from typing import Annotated

from ..acls import NO_OPERATIONS
from ..schema import Int16, Int32, WireStruct, ignorable, message, since


@message(15, "request", versions=(0, 5), flexible=5)
class DescribeGroupsRequest(WireStruct):
    groups: list[str] = []
    include_authorized_operations: Annotated[bool, since(3)] = False


class DescribedGroupMember(WireStruct):
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(4), ignorable] = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(WireStruct):
    error_code: Int16 = 0
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[Int32, since(3)] = NO_OPERATIONS


@message(15, "response", versions=(0, 5), flexible=5)
class DescribeGroupsResponse(WireStruct):
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    groups: list[DescribedGroup] = []
