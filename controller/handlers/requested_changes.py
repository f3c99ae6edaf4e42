"""What the request for a change asks for, element by element: what the audit log tells of one that
is refused before it is judged.

Rule: a table by API, as the error forms are one. Nothing is judged here.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...protocol.api_keys import ApiKey
from ...protocol.config_resources import ConfigOperation
from ..requests.changes import KINDS, RequestedChange, kind_and_name

UNKNOWN_TYPE = 0
UNKNOWN_OPERATION = "unknown"
OPERATIONS: Mapping[int, str] = {operation: operation.name.lower() for operation in ConfigOperation}


def resource_type_of(kind: str) -> int:
    """Return the type of a resource by its name."""
    return next((number for number, name in KINDS.items() if name == kind), UNKNOWN_TYPE)


def operands(resource: Any) -> dict[str, str | None]:
    """Return the operands of a resource of AlterConfigs or IncrementalAlterConfigs."""
    return {
        config.name: None if getattr(config, "config_operation", None) == ConfigOperation.DELETE else config.value
        for config in resource.configs
    }


def operation_kinds(resource: Any) -> dict[str, str]:
    """Return the kinds of operation of a resource of AlterConfigs, which sets what it names, or
    IncrementalAlterConfigs.
    """
    return {
        config.name: OPERATIONS.get(getattr(config, "config_operation", ConfigOperation.SET), UNKNOWN_OPERATION)
        for config in resource.configs
    }


def _named(request: Any) -> Iterator[RequestedChange]:
    for topic in request.topics:
        yield RequestedChange(topic.name or "")


def _deleted(request: Any) -> Iterator[RequestedChange]:
    for name in request.topic_names:
        yield RequestedChange(name)
    yield from _named(request)


def _configured(request: Any) -> Iterator[RequestedChange]:
    for resource in request.resources:
        kind, name = kind_and_name(resource.resource_type, resource.resource_name)
        yield RequestedChange(name, kind, operands(resource), operation_kinds(resource))


REQUESTED_CHANGES: Mapping[int, Callable[[Any], Iterator[RequestedChange]]] = {
    ApiKey.CREATE_TOPICS: _named,
    ApiKey.DELETE_TOPICS: _deleted,
    ApiKey.CREATE_PARTITIONS: _named,
    ApiKey.ALTER_CONFIGS: _configured,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _configured,
}
"""The APIs whose elements are decisions."""


def requested_changes(api_key: int, request: Any) -> list[RequestedChange]:
    """Return the elements of a request, each once and in its first place."""
    return list({(each.kind, each.resource): each for each in REQUESTED_CHANGES[api_key](request)}.values())
