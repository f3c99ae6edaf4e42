"""CreateAcls (30) adds ACLs."""

from typing import Annotated

from ..schema import Int8, Int16, Int32, WireStruct, message, since


class AclCreation(WireStruct):
    resource_type: Int8 = 0
    resource_name: str = ""
    resource_pattern_type: Annotated[Int8, since(1)] = 3
    principal: str = ""
    host: str = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message(30, "request", versions=(0, 3), flexible=2)
class CreateAclsRequest(WireStruct):
    creations: list[AclCreation] = []


class AclCreationResult(WireStruct):
    error_code: Int16 = 0
    error_message: str | None = ""


@message(30, "response", versions=(0, 3), flexible=2)
class CreateAclsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    results: list[AclCreationResult] = []
