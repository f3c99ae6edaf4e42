"""Finds what a request names twice and asks different things of; pure.

Rule: which of two rows counts depends on the release of Kafka (`tests/conformance/releases/` has a
recording), and an answer may be to one row while the other is carried out. So a gateway that
enforces refuses them. Rows that ask for the same are one, whatever the release. What every release
refuses has no entry here: its own answer is the right one.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ...protocol.api_keys import ApiKey

Row = tuple[str, Hashable]
"""What a row is about, for people, and what it asks for."""


def contradiction(api_key: int, request: Any) -> str | None:
    """Return why a request is refused that asks two things of one; None if it does not."""
    rows = ROWS.get(api_key)
    if rows is None:
        return None
    asked: dict[str, Hashable] = {}
    for thing, wanted in rows(request):
        if asked.setdefault(thing, wanted) != wanted:
            return f"The request asks for two changes of {thing}. Name it once."
    return None


def _created(request: Any) -> Iterator[Row]:
    for topic in request.topics:
        for each in topic.assignments:
            yield f"partition {each.partition_index} of the topic {topic.name}", tuple(each.broker_ids)
        for each in topic.configs:
            yield f"the config {each.name} of the topic {topic.name}", each.value


def _reassigned(request: Any) -> Iterator[Row]:
    for topic in request.topics:
        for each in topic.partitions:
            wanted = None if each.replicas is None else tuple(each.replicas)
            yield f"partition {each.partition_index} of the topic {topic.name}", wanted


def _shortened(request: Any) -> Iterator[Row]:
    for topic in request.topics:
        for each in topic.partitions:
            yield f"partition {each.partition_index} of the topic {topic.name}", each.offset


def _moved(request: Any) -> Iterator[Row]:
    for directory in request.dirs:
        for topic in directory.topics:
            for partition in topic.partitions:
                yield f"partition {partition} of the topic {topic.name}", directory.path


def _committed(request: Any) -> Iterator[Row]:
    for topic in request.topics:
        for each in topic.partitions:
            wanted = each.committed_offset, each.committed_leader_epoch, each.committed_metadata
            yield f"partition {each.partition_index} of the topic {topic.name}", wanted


def _limited(request: Any) -> Iterator[Row]:
    for number, entry in enumerate(request.entries):
        entity = sorted((each.entity_type, each.entity_name or "<default>") for each in entry.entity)
        name = ", ".join(f"{kind} {each}" for kind, each in entity)
        for kind, each in entity:
            yield f"the type {kind} of the entity {name}", each
        for operation in entry.ops:
            yield f"the quota {operation.key} of {name}", None if operation.remove else operation.value
        yield f"the entity {name}", number  # some releases carry out the first, and answer for the second


ROWS: Mapping[int, Callable[[Any], Iterator[Row]]] = MappingProxyType(
    {
        ApiKey.CREATE_TOPICS: _created,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: _reassigned,
        ApiKey.DELETE_RECORDS: _shortened,
        ApiKey.ALTER_REPLICA_LOG_DIRS: _moved,
        ApiKey.OFFSET_COMMIT: _committed,
        ApiKey.ALTER_CLIENT_QUOTAS: _limited,
    }
)
"""What requests ask for, row by row, of those APIs of which a release carries out one of two rows
about the same.
"""
