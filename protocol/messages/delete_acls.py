"""DeleteAcls (31) removes the ACLs that match filters."""

from typing import Annotated

from ..schema import Int8, Int16, Int32, WireStruct, message, since


class DeleteAclsFilter(WireStruct):
    resource_type_filter: Int8 = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: Annotated[Int8, since(1)] = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message(31, "request", versions=(0, 3), flexible=2)
class DeleteAclsRequest(WireStruct):
    filters: list[DeleteAclsFilter] = []


class DeleteAclsMatchingAcl(WireStruct):
    error_code: Int16 = 0
    error_message: str | None = ""
    resource_type: Int8 = 0
    resource_name: str = ""
    pattern_type: Annotated[Int8, since(1)] = 3
    principal: str = ""
    host: str = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DeleteAclsFilterResult(WireStruct):
    error_code: Int16 = 0
    error_message: str | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = []


@message(31, "response", versions=(0, 3), flexible=2)
class DeleteAclsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
