"""Requests whose answers differed in random walks (`make walk`), until they were mended."""

from collections.abc import Iterable
from typing import Any

from tests.conformance.case import APPEND, BROKER, SET, SUBTRACT, TOPIC, Body, Case, creation, each_version, new_topic

UNKNOWN = "walked-unknown"


def incremental(kind: int, name: str, *changes: tuple[str, int, str]) -> Body:
    configs = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in changes]
    return {"resources": [{"resource_type": kind, "resource_name": name, "configs": configs}]}


def replaced(kind: int, name: str, key: str, value: str) -> Body:
    resource = {"resource_type": kind, "resource_name": name, "configs": [{"name": key, "value": value}]}
    return {"resources": [resource]}


USER, CLIENT, IP = "user", "client-id", "ip"
TOPIC_OF_OFFSETS = "walked-offsets"
TOO_LONG = {"committed_metadata": "m" * 4097}


def described(*names: tuple[str, str | None]) -> Body:
    """A filter for the quotas of entities with these names."""
    parts = [{"entity_type": kind, "match_type": 0 if name is not None else 2, "match": name} for kind, name in names]
    return {"components": parts, "strict": False}


def empty_names() -> list[Case]:
    """Empty names, of one entity or among several."""
    filters = {
        "user": described((USER, "")),
        "client": described((CLIENT, "")),
        "address": described((IP, "")),
        "client of a user": described((USER, "u"), (CLIENT, "")),
        "user with any client": described((USER, ""), (CLIENT, None)),
    }
    return [
        case
        for name, body in filters.items()
        for case in [
            Case(f"empty {name}", "DescribeClientQuotas", 1, body),
            Case(f"strict empty {name}", "DescribeClientQuotas", 1, {**body, "strict": True}),
        ]
    ]


def committed(name: str, group: str, *rows: tuple[str, list[tuple[int, dict[str, Any]]]]) -> list[Case]:
    """Return requests in all versions, or in one if they are large, to keep offsets in topics. Each
    row is a topic with its partitions.
    """
    topics = [
        {
            "name": topic,
            "partitions": [{"partition_index": index, "committed_offset": 5, **more} for index, more in partitions],
        }
        for topic, partitions in rows
    ]
    body = {"group_id": group, "topics": topics}
    versions = each_version(name, "OffsetCommit", body, since=1, once_led=(TOPIC_OF_OFFSETS,), node_1=True)
    return [case for case in versions if case.version == 8 or TOO_LONG not in used(rows)]


def used(rows: Iterable[tuple[str, list[tuple[int, dict[str, Any]]]]]) -> list[dict[str, Any]]:
    """Return what partitions have besides an offset."""
    return [more for _, partitions in rows for _, more in partitions]


def offsets() -> list[Case]:
    """Partitions that are named more than once, and a group that is left without an offset."""
    here, nowhere, group = TOPIC_OF_OFFSETS, "walked-nowhere", "walked-group"
    return [
        Case("a topic for offsets", "CreateTopics", 7, creation(new_topic(here, placed={0: [1], 1: [1]}))),
        *committed("unknown topic twice", group, (nowhere, [(0, {})]), (nowhere, [(0, {})])),
        *committed("unknown partition twice", group, (here, [(0, {}), (7, {}), (7, {})]), (here, [(0, {})])),
        *committed("too long, then not", group, (here, [(0, TOO_LONG), (0, {})])),
        *committed("not too long, then too long", group, (here, [(0, {}), (0, TOO_LONG)])),
        *committed("too long and unknown", group, (here, [(0, TOO_LONG)]), (nowhere, [(0, {})])),
        *committed("nothing but too long", "walked-nothing", (here, [(0, TOO_LONG)])),
        Case("a group of nothing", "DescribeGroups", 5, {"groups": ["walked-nothing"]}, node_1=True),
        Case("a group of nothing", "DeleteGroups", 2, {"groups_names": ["walked-nothing"]}, node_1=True),
    ]


CASES = [
    *empty_names(),
    *offsets(),
    *[
        case
        for name, operation in (("append", APPEND), ("subtract", SUBTRACT))
        for case in each_version(
            f"{name} to what is no list, of an unknown topic",
            "IncrementalAlterConfigs",
            incremental(TOPIC, UNKNOWN, ("retention.ms", operation, "1")),
        )
    ],
    *each_version(
        "bad value of an unknown topic",
        "IncrementalAlterConfigs",
        incremental(TOPIC, UNKNOWN, ("retention.ms", SET, "x"), ("cleanup.policy", APPEND, "compact")),
    ),
    *[
        case
        for threads in ("50", "1")
        for case in [
            *each_version(f"{threads} threads", "AlterConfigs", replaced(BROKER, "1", "background.threads", threads), node_1=True),
            *each_version(
                f"{threads} threads", "IncrementalAlterConfigs", incremental(BROKER, "1", ("background.threads", SET, threads)), node_1=True
            ),
        ]
    ],
]  # fmt: skip
