"""DeleteGroups (42) deletes groups that have no members, with their offsets."""

from ..schema import Int16, Int32, WireStruct, message


@message(42, "request", versions=(0, 2), flexible=2)
class DeleteGroupsRequest(WireStruct):
    groups_names: list[str] = []


class DeletableGroupResult(WireStruct):
    group_id: str = ""
    error_code: Int16 = 0


@message(42, "response", versions=(0, 2), flexible=2)
class DeleteGroupsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult] = []
