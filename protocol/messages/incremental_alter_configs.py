"""IncrementalAlterConfigs (44) sets and deletes single configs, and edits lists."""

from ..schema import Int8, Int16, Int32, WireStruct, message


class IncrementalAlterableConfig(WireStruct):
    name: str = ""
    config_operation: Int8 = 0
    value: str | None = ""


class IncrementalAlterConfigsResource(WireStruct):
    resource_type: Int8 = 0
    resource_name: str = ""
    configs: list[IncrementalAlterableConfig] = []


@message(44, "request", versions=(0, 1), flexible=1)
class IncrementalAlterConfigsRequest(WireStruct):
    resources: list[IncrementalAlterConfigsResource] = []
    validate_only: bool = False


class IncrementalAlterConfigsResourceResponse(WireStruct):
    error_code: Int16 = 0
    error_message: str | None = ""
    resource_type: Int8 = 0
    resource_name: str = ""


@message(44, "response", versions=(0, 1), flexible=1)
class IncrementalAlterConfigsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    responses: list[IncrementalAlterConfigsResourceResponse] = []
