"""Lists the changes that a request asks for, element by element, for the audit record of a request
that is refused before it is judged.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..protocol.config_resources import ConfigOperation
from ..protocol.messages.elect_leaders import ElectionType
from .changes import KINDS, Change, kind_and_name
from .spec import Spec

UNKNOWN_TYPE = 0
UNKNOWN_OPERATION = "unknown"
OPERATIONS: Mapping[int, str] = {operation: operation.name.lower() for operation in ConfigOperation}
ELECTION_TYPES: Mapping[int, str] = {kind: kind.name.lower() for kind in ElectionType}


def resource_type_of(kind: str) -> int:
    """Return the type of a resource by its name, such as `topic`."""
    return next((number for number, name in KINDS.items() if name == kind), UNKNOWN_TYPE)


def operands(resource: Any) -> dict[str, str | None]:
    """Return the operands of a resource of AlterConfigs or IncrementalAlterConfigs, by key."""
    return {
        config.name: None if getattr(config, "config_operation", None) == ConfigOperation.DELETE else config.value
        for config in resource.configs
    }


def operation_kinds(resource: Any) -> dict[str, str]:
    """Return the kind of operation on each key of a resource. AlterConfigs sets every key that it
    names.
    """
    return {
        config.name: OPERATIONS.get(getattr(config, "config_operation", ConfigOperation.SET), UNKNOWN_OPERATION)
        for config in resource.configs
    }


def named_topics(request: Any) -> Iterator[Change]:
    for topic in request.topics:
        yield Change(topic.name or "")


def deleted_topics(request: Any) -> Iterator[Change]:
    for name in request.topic_names:
        yield Change(name)
    yield from named_topics(request)


def reassigned_topics(request: Any) -> Iterator[Change]:
    rows: dict[str, dict[int, Sequence[int] | None]] = {}
    for topic in request.topics:
        named = rows.setdefault(topic.name, {})
        named.update((partition.partition_index, partition.replicas) for partition in topic.partitions)
    for name, reassignments in rows.items():
        yield Change(name, reassignments=reassignments)


def topics_with_deleted_records(request: Any) -> Iterator[Change]:
    offsets: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        named = offsets.setdefault(topic.name, {})
        named.update((partition.partition_index, partition.offset) for partition in topic.partitions)
    for name, wanted in offsets.items():
        yield Change(name, delete_records_offsets=wanted)


def elected_topics(request: Any) -> Iterator[Change]:
    for topic in request.topic_partitions or ():
        yield Change(topic.topic, election_type=election_type(request))


def election_type(request: Any) -> str:
    return ELECTION_TYPES.get(request.election_type, UNKNOWN_OPERATION)


def configured_resources(request: Any) -> Iterator[Change]:
    return map(configured_resource, request.resources)


def configured_resource(resource: Any) -> Change:
    """Return the change that a resource of AlterConfigs or IncrementalAlterConfigs asks for."""
    kind, name = kind_and_name(resource.resource_type, resource.resource_name)
    return Change(name, kind, operands(resource), operation_kinds(resource))


def requested_changes(spec: Spec, request: Any) -> list[Change]:
    """Return the requested changes, without duplicates, in the order of the request."""
    requested = () if spec.changes is None else spec.changes.requested(request)
    return list({(each.kind, each.resource): each for each in requested}.values())
