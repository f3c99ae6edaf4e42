"""Requests of users with and without ACLs for the offsets of groups, and for ids of producers."""

from typing import Any

from tests.conformance.case import Case, creation, each_version, new_topic
from tests.conformance.cases.acl_requests import (
    ADMIN,
    ALICE,
    ALTER,
    CLUSTER,
    CLUSTER_ACTION,
    DELETE,
    DESCRIBE,
    GROUPS,
    IDEMPOTENT_WRITE,
    READ,
    THE_CLUSTER,
    TRANSACTIONAL_ID,
    WRITE,
    States,
    acl,
    by,
    in_states,
)
from tests.conformance.cases.features import UPGRADE, update
from tests.conformance.cases.offsets import NODE_1, offsets

GROUP, OTHER, TOPIC, HIDDEN = "sgr-g", "sgr-h", "sgr-t", "sgr-u"
BOTH = [offsets((0, 7), topic=TOPIC), offsets((0, 8), topic=HIDDEN), offsets((0, 9), topic="sgr-missing")]
NAMED = [{"name": name, "partition_indexes": [0]} for name in (HIDDEN, TOPIC, "sgr-missing")]


def setup() -> list[Case]:
    topics = [new_topic(name, placed={0: [1]}) for name in (TOPIC, HIDDEN)]
    return [
        Case("setup of groups", "CreateTopics", 7, creation(*topics)),
        Case("led", "Metadata", 12, {"topics": [{"name": TOPIC}, {"name": HIDDEN}]}, once_led=(TOPIC, HIDDEN, "__consumer_offsets")),
        *(
            Case(f"set {group}", "OffsetCommit", 8, {"group_id": group, "topics": BOTH[:2]}, settles=True, **NODE_1)
            for group in (GROUP, OTHER)
        ),
    ]  # fmt: skip


def asked(state: str, *, all_versions: bool = False) -> list[Case]:
    """Return the questions that are asked in each state of the ACLs. None of them changes
    anything in any state.
    """
    fetch_many = {
        "groups": [
            {"group_id": GROUP, "topics": NAMED},
            {"group_id": GROUP, "topics": None},
            {"group_id": OTHER, "topics": None},
        ]
    }
    deletion = {
        "group_id": GROUP,
        "topics": [{"name": name, "partitions": [{"partition_index": 5}]} for name in (TOPIC, HIDDEN)],
    }
    questions: list[tuple[str, str, int, int, dict[str, Any], dict[str, Any]]] = [
        ("set", "OffsetCommit", 1, 9, {"group_id": GROUP, "topics": BOTH}, NODE_1),
        ("offsets", "OffsetFetch", 1, 7, {"group_id": GROUP, "topics": NAMED}, NODE_1),
        ("all offsets", "OffsetFetch", 2, 7, {"group_id": GROUP, "topics": None}, NODE_1),
        ("offsets of many", "OffsetFetch", 8, 9, fetch_many, NODE_1),
        ("remove", "OffsetDelete", 0, 0, deletion, NODE_1),
        ("delete", "DeleteGroups", 0, 2, {"groups_names": ["sgr-nobody", "other-nobody"]}, NODE_1),
        ("list", "ListGroups", 0, 5, {}, NODE_1),
        ("describe", "DescribeGroups", 0, 5, {"groups": [GROUP, OTHER]}, NODE_1),
        ("consumer groups", "ConsumerGroupDescribe", 0, 0, {"group_ids": [GROUP]}, {}),
        ("heartbeat", "ConsumerGroupHeartbeat", 0, 0, {"group_id": GROUP}, {}),
        ("id", "InitProducerId", 0, 4, {"transactional_id": None, "transaction_timeout_ms": 1000}, {"settles": True}),
        ("id of a transaction", "InitProducerId", 0, 4, {"transactional_id": "sgr-tx", "transaction_timeout_ms": 0}, NODE_1),
        ("transactions", "ListTransactions", 0, 1, {}, {}),
        ("transaction", "DescribeTransactions", 0, 0, {"transactional_ids": ["sgr-tx", "sgr-other"]}, NODE_1),
        ("producers", "DescribeProducers", 0, 0, {"topics": NAMED}, NODE_1),
        ("block", "AllocateProducerIds", 0, 0, {"broker_id": 99, "broker_epoch": 1}, {}),
    ]  # fmt: skip
    return [
        case
        for name, api, since, last, body, more in questions
        for case in each_version(f"{state}, {name}", api, body, since=since, **more)
        if case.version <= last and (all_versions or case.version == last)
    ] + update(f"{state}, feature", ("f", 1, UPGRADE))


STATES: States = [
    ("group described", [acl(DESCRIBE, GROUPS, GROUP), acl(DESCRIBE, name=TOPIC)]),
    ("group read", [acl(READ, GROUPS, GROUP), acl(READ, name=TOPIC)]),
    ("group read, no topic", [acl(READ, GROUPS, GROUP)]),
    ("group deleted", [acl(DELETE, GROUPS, GROUP), acl(DELETE, GROUPS, "sgr-nobody"), acl(READ, name=HIDDEN)]),
    ("cluster described too", [acl(DESCRIBE, CLUSTER, THE_CLUSTER)]),
    ("cluster altered too", [acl(ALTER, CLUSTER, THE_CLUSTER)]),
    ("cluster action", [acl(CLUSTER_ACTION, CLUSTER, THE_CLUSTER)]),
    ("idempotent", [acl(IDEMPOTENT_WRITE, CLUSTER, THE_CLUSTER)]),
    ("a topic written", [acl(WRITE, name="sgr-elsewhere")]),
    ("a transaction written", [acl(WRITE, TRANSACTIONAL_ID, "sgr-tx")]),
    ("a transaction described", [acl(DESCRIBE, TRANSACTIONAL_ID, "sgr-tx")]),
]


TWICE = [{"name": TOPIC, "partitions": [{"partition_index": index, "committed_offset": 5}]} for index in (0, 9, 0)]
"""Rows that name one topic three times."""

CASES = [
    *by(ADMIN, setup()),
    *by(ALICE, asked("no right", all_versions=True)),
    *in_states(STATES, asked),
    *by(
        ALICE, [Case("a row for each row", "OffsetCommit", 8, {"group_id": "sgr-denied", "topics": TWICE}, node_1=True)]
    ),
]
