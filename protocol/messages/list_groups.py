"""ListGroups (16) returns the groups that a broker coordinates."""

from typing import Annotated

from ..schema import Int16, Int32, WireStruct, ignorable, message, since


@message(16, "request", versions=(0, 5), flexible=3)
class ListGroupsRequest(WireStruct):
    states_filter: Annotated[list[str], since(4)] = []
    types_filter: Annotated[list[str], since(5)] = []


class ListedGroup(WireStruct):
    group_id: str = ""
    protocol_type: str = ""
    group_state: Annotated[str, since(4), ignorable] = ""
    group_type: Annotated[str, since(5), ignorable] = ""


@message(16, "response", versions=(0, 5), flexible=3)
class ListGroupsResponse(WireStruct):
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16 = 0
    groups: list[ListedGroup] = []
