"""AlterConfigs (33) replaces all configs of a resource."""

from ..schema import Int8, Int16, Int32, WireStruct, message


class AlterableConfig(WireStruct):
    name: str = ""
    value: str | None = ""


class AlterConfigsResource(WireStruct):
    resource_type: Int8 = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = []


@message(33, "request", versions=(0, 2), flexible=2)
class AlterConfigsRequest(WireStruct):
    resources: list[AlterConfigsResource] = []
    validate_only: bool = False


class AlterConfigsResourceResponse(WireStruct):
    error_code: Int16 = 0
    error_message: str | None = ""
    resource_type: Int8 = 0
    resource_name: str = ""


@message(33, "response", versions=(0, 2), flexible=2)
class AlterConfigsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
