"""Makes requests about configs, and results of their responses; pure."""

from collections.abc import Mapping, Sequence

from ..protocol.config_resources import ResourceType
from ..protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from ..protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ..protocol.schema import WireStruct
from .model import SOURCES, AlterConfigOp, ConfigEntry, Resource, Results, result_of

_TYPES = frozenset(ResourceType)


def question(resources: Sequence[Resource], keys: Sequence[str] | None) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configuration_keys=None if keys is None else list(keys),
            )
            for resource in resources
        ]
    )


def described(answer: WireStruct) -> Results[Resource, tuple[ConfigEntry, ...]]:
    assert isinstance(answer, DescribeConfigsResponse)
    return {
        _resource(result.resource_type, result.resource_name): result_of(
            result.error_code,
            result.error_message,
            tuple(_entry(config) for config in sorted(result.configs, key=lambda config: config.name)),
        )
        for result in answer.results
        if result.resource_type in _TYPES
    }


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    known = 0 <= config.config_source < len(SOURCES)
    source = SOURCES[config.config_source] if known else SOURCES[0]
    return ConfigEntry(config.name, config.value, source, config.read_only, config.is_sensitive)


def alteration(
    changes: Mapping[Resource, Sequence[AlterConfigOp]], resources: Sequence[Resource], *, validate_only: bool
) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configs=[
                    AlterableConfig(name=change.name, config_operation=change.operation, value=change.value)
                    for change in changes[resource]
                ],
            )
            for resource in resources
        ],
        validate_only=validate_only,
    )


def altered(answer: WireStruct) -> Results[Resource, None]:
    assert isinstance(answer, IncrementalAlterConfigsResponse)
    return {
        _resource(result.resource_type, result.resource_name): result_of(result.error_code, result.error_message, None)
        for result in answer.responses
        if result.resource_type in _TYPES
    }


def _resource(number: int, name: str) -> Resource:
    return Resource(ResourceType(number), name)
