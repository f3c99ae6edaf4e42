"""The answers through a gateway that differ on purpose from those without it: docs/gateway.md gives
the reason of each, under the same name.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.conformance.case import Case
from tests.conformance.differences import (
    ADMIN_APIS,
    Adapt,
    Difference,
    closed,
    every_row_refused,
    refused_as,
    refused_partitions,
)
from tests.conformance.scenario import SILENT
from tests.support.wire import Body

Asked = Mapping[str, Any]
Refused = Callable[[Asked, Sequence[Body], Body], list[Body]]
"""Returns the rows of a response, if all are refused by this refusal, by the request and the rows
that are recorded.
"""


def fewer_apis(_case: Case, recorded: Any) -> Any:
    """Some of the broker's APIs, in some of its versions."""
    if not isinstance(recorded, dict) or not recorded.get("api_keys"):
        return recorded
    brokers = {key["api_key"]: key for key in recorded["api_keys"]}

    def are_the_brokers(keys: Any) -> bool:
        """A list of APIs of the broker in its versions, the admin APIs among them."""
        ours = {key["api_key"]: key for key in keys}
        return ADMIN_APIS <= set(ours) <= set(brokers) and all(
            brokers[number]["min_version"] <= key["min_version"] <= key["max_version"] <= brokers[number]["max_version"]
            for number, key in ours.items()
        )

    return {**recorded, "api_keys": are_the_brokers}


def answered_anew(_case: Case, recorded: Any) -> Any:
    """The connection has ended before, so this one begins anew."""

    def some_apis(keys: Any) -> bool:
        """A list of the admin APIs and perhaps others."""
        return {key["api_key"] for key in keys} >= ADMIN_APIS

    return {"error_code": 0, "api_keys": some_apis} if recorded == "closed" else recorded


def silent(_case: Case, _recorded: Any) -> Any:
    return SILENT


def version_refused(_case: Case, _recorded: Any) -> Any:
    """Expect the answer to a version that is too high."""
    return {"error_code": 35, "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 4}]}


def two_changes(thing: str) -> Adapt:
    """Every row is refused, because the request asks for two changes of a thing."""
    refusal = {"error_code": 42, "error_message": f"The request asks for two changes of {thing}. Name it once."}

    def adapt(case: Case, recorded: Any) -> Any:
        field, rows = REFUSED_ROWS[case.api]
        return {**recorded, field: in_any_order(rows(case.body, recorded[field], refusal))}

    return adapt


def in_any_order(rows: Sequence[Body]) -> Callable[[Any], bool]:
    def are_these(actual: Any) -> bool:
        return len(actual) == len(rows) and all(actual.count(row) == rows.count(row) for row in rows)

    are_these.__doc__ = f"in any order {rows}"
    return are_these


def topics_not_created(_asked: Asked, recorded: Sequence[Body], refusal: Body) -> list[Body]:
    return [{**row, "num_partitions": -1, "replication_factor": -1, "configs": [], **refusal} for row in recorded]


def replicas_not_moved(asked: Asked, _recorded: Sequence[Body], refusal: Body) -> list[Body]:
    return [
        {
            "topic_name": topic["name"],
            "partitions": [
                {"partition_index": each, "error_code": refusal["error_code"]} for each in topic["partitions"]
            ],
        }
        for directory in asked["dirs"]
        for topic in directory["topics"]
    ]


def of_partitions(*fields: str) -> Refused:
    """Return a row for each topic of the request, in it one for each partition with these fields of
    the refusal.
    """

    def rows(asked: Asked, _recorded: Sequence[Body], refusal: Body) -> list[Body]:
        told = {field: refusal[field] for field in fields}
        return [
            {
                "name": topic["name"],
                "partitions": [{"partition_index": each["partition_index"], **told} for each in topic["partitions"]],
            }
            for topic in asked["topics"]
        ]

    return rows


def records_not_deleted(_asked: Asked, recorded: Sequence[Body], refusal: Body) -> list[Body]:
    told = {"low_watermark": -1, "error_code": refusal["error_code"]}
    return [{**row, "partitions": [{**each, **told} for each in row["partitions"]]} for row in recorded]


def quotas_not_altered(asked: Asked, _recorded: Sequence[Body], refusal: Body) -> list[Body]:
    return [{"entity": entry["entity"], **refusal} for entry in asked["entries"]]


REFUSED_ROWS: Mapping[str, tuple[str, Refused]] = {
    "AlterClientQuotas": ("entries", quotas_not_altered),
    "AlterPartitionReassignments": ("responses", of_partitions("error_code", "error_message")),
    "AlterReplicaLogDirs": ("results", replicas_not_moved),
    "CreateTopics": ("topics", topics_not_created),
    "DeleteRecords": ("topics", records_not_deleted),
    "OffsetCommit": ("topics", of_partitions("error_code")),
}
"""The field of a response that has its rows, and these rows, by the API."""


def first_partition(**fields: Any) -> Adapt:
    """The first partition of the only topic has these values."""

    def adapt(_case: Case, recorded: Any) -> Any:
        (topic,) = recorded["topics"]
        first, *others = topic["partitions"]
        return {**recorded, "topics": [{**topic, "partitions": [{**first, **fields}, *others]}]}

    return adapt


def without_quotas(*users: str) -> Adapt:
    """The quotas of these users are not there."""
    entities = [[{"entity_type": "user", "entity_name": user}] for user in users]

    def adapt(_case: Case, recorded: Any) -> Any:
        return {**recorded, "entries": [each for each in recorded["entries"] if each["entity"] not in entities]}

    return adapt


def not_seen(name: str, text: str) -> Adapt:
    """Each partition of this topic gets UNKNOWN_TOPIC_OR_PARTITION and a text of the gateway."""
    unknown = {"error_code": 3, "error_message": text}

    def adapt(_case: Case, recorded: Any) -> Any:
        rows = [
            {**row, "partitions": [{**each, **unknown} for each in row["partitions"]]} if row["name"] == name else row
            for row in recorded["responses"]
        ]
        return {**recorded, "responses": rows}

    return adapt


def not_deleted_as_unknown(_case: Case, recorded: Any) -> Any:
    (row,) = recorded["responses"]
    return {**recorded, "responses": [{**row, "error_code": 3}]}


DIFFERENCES = [
    Difference("what-does-not-pass", "ApiVersions-.*", fewer_apis),
    Difference("what-does-not-pass", "AllocateProducerIds-.*", closed),
    Difference("old-header-of-a-new-version", "ApiVersions-v0-version 99 with an old header", version_refused),
    Difference("login-without-requests", "SaslHandshake-v0-.*", closed),
    Difference("login-without-requests", "ApiVersions-v0-handshake v0 .*, step 2", answered_anew),
    Difference("login-without-requests", "SaslAuthenticate-v0-bare token, bytes", closed),
    Difference("login-without-requests", "Metadata-v12-bare token, after", closed),
    Difference("lengths-are-the-brokers", "SaslHandshake-v0-too long, bytes", silent),
    Difference("refusal-said-since-3.9.2", "OffsetFetch-v1-alice: no right, offsets", refused_partitions),
]
"""The differences through any gateway."""

OF_JUDGING = [
    Difference("no-request-unanswered", "AlterConfigs-v2-topic twice", every_row_refused("responses", 42)),
    Difference(
        "lists-that-are-not-known", "IncrementalAlterConfigs-v.-append unknown config", refused_as("responses", 40)
    ),
    Difference("no-partition-below-zero", "CreateTopics-v7-placed at -1", refused_as("topics", 39)),
    Difference(
        "unseen-topics",
        "AlterPartitionReassignments-v0-(.* of an unknown topic|good and bad)",
        not_seen("reassignments-unknown", "The topic 'reassignments-unknown' does not exist."),
    ),
    Difference(
        "unseen-topics",
        "AlterPartitionReassignments-v0-nothing to cancel of a partition out of range",
        not_seen("reassignments-t", "The partition does not exist."),
    ),
    Difference(
        "unseen-topics",
        "AlterPartitionReassignments-v0-.*: moves, (super user|cluster altered), alter reassignments",
        not_seen("smv-missing", "The topic 'smv-missing' does not exist."),
    ),
    Difference(
        "deletions-as-with-kraft",
        "DeleteTopics-v5-alice: (topics by prefix|all topics but for a prefix), delete",
        not_deleted_as_unknown,
    ),
    *(
        Difference("two-changes-of-one", cases, two_changes(thing))
        for cases, thing in {
            "CreateTopics-v7-duplicate config key": "the config retention.ms of the topic ct-last",
            "CreateTopics-v7-duplicate null config": "the config retention.ms of the topic ct-order",
            "CreateTopics-v7-placed partition twice": "partition 0 of the topic ct-manual",
            "AlterReplicaLogDirs-v.-two directories": "partition 0 of the topic logs-t",
            "AlterPartitionReassignments-v0-(partition|topic) twice": "partition 0 of the topic reassignments-twice",
            "AlterClientQuotas-v1-twice, wrong first": "the entity user quotas-t",
            "AlterClientQuotas-v1-twice, wrong last": "the entity user quotas-u",
            "AlterClientQuotas-v1-type twice": "the type user of the entity user quotas-1, user quotas-2",
            "AlterClientQuotas-v.-.*, quotas of one twice": "the entity user <default>",
            "OffsetCommit-v8-partition thrice": "partition 0 of the topic off-t",
            "OffsetCommit-v8-(not )?too long, then (too long|not)": "partition 0 of the topic walked-offsets",
            "DeleteRecords-v.-(partition|topic) twice": "partition 0 of the topic records-t",
        }.items()
    ),
    Difference(
        "two-changes-of-one",
        "Metadata-v12-what the last row left",
        first_partition(replica_nodes=[1, 2], leader_epoch=0),
    ),
    Difference(
        "two-changes-of-one",
        "DescribeClientQuotas-v1-(afterwards|after a removal)",
        without_quotas("quotas-t", "quotas-u", "quotas-2"),
    ),
    Difference("two-changes-of-one", "OffsetFetch-v7-what is kept", first_partition(committed_offset=5)),
]
"""The further differences through one that judges."""


def through_gateway(case: Case, recorded: Any, actual: Any, *, judged: bool) -> tuple[set[str], Any]:
    """Return the names of the differences that change the answer to a case, and what they make of
    it. An answer that is equal anyway has none.
    """
    names: set[str] = set()
    if actual == recorded:
        return names, recorded
    for difference in concerning(case, judged=judged):
        adapted = difference.adapt(case, recorded)
        names |= {difference.name} if adapted != recorded else set()
        recorded = adapted
    return names, recorded


def concerning(case: Case, *, judged: bool) -> Iterator[Difference]:
    for difference in DIFFERENCES + (OF_JUDGING if judged else []):
        if re.fullmatch(difference.cases, case.key):
            yield difference
