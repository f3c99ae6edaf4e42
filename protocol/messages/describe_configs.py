"""DescribeConfigs (32) returns the configs of topics and brokers, with the source of each value."""

from typing import Annotated

from ..schema import Int8, Int16, Int32, WireStruct, ignorable, message, since, until


class DescribeConfigsResource(WireStruct):
    resource_type: Int8 = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = []


@message(32, "request", versions=(0, 4), flexible=4)
class DescribeConfigsRequest(WireStruct):
    resources: list[DescribeConfigsResource] = []
    include_synonyms: Annotated[bool, since(1)] = False
    include_documentation: Annotated[bool, since(3)] = False


class DescribeConfigsSynonym(WireStruct):
    name: str = ""
    value: str | None = ""
    source: Int8 = 0


class DescribeConfigsResourceResult(WireStruct):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    is_default: Annotated[bool, until(0)] = False
    config_source: Annotated[Int8, since(1), ignorable] = -1
    is_sensitive: bool = False
    synonyms: Annotated[list[DescribeConfigsSynonym], since(1), ignorable] = []
    config_type: Annotated[Int8, since(3), ignorable] = 0
    documentation: Annotated[str | None, since(3), ignorable] = ""


class DescribeConfigsResult(WireStruct):
    error_code: Int16 = 0
    error_message: str | None = ""
    resource_type: Int8 = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = []


@message(32, "response", versions=(0, 4), flexible=4)
class DescribeConfigsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult] = []
