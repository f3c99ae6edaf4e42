"""DescribeAcls (29) returns the ACLs that match a filter."""

from typing import Annotated

from ..schema import Int8, Int16, Int32, WireStruct, message, since


@message(29, "request", versions=(0, 3), flexible=2)
class DescribeAclsRequest(WireStruct):
    resource_type_filter: Int8 = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: Annotated[Int8, since(1)] = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class AclDescription(WireStruct):
    principal: str = ""
    host: str = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DescribeAclsResource(WireStruct):
    resource_type: Int8 = 0
    resource_name: str = ""
    pattern_type: Annotated[Int8, since(1)] = 3
    acls: list[AclDescription] = []


@message(29, "response", versions=(0, 3), flexible=2)
class DescribeAclsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = ""
    resources: list[DescribeAclsResource] = []
