"""The rights of users who have no ACLs, some, or many.

A state of the ACLs is made by admin, and then the same questions are asked by alice.
"""

from collections.abc import Iterator
from typing import Any

from tests.conformance.case import (
    BROKER,
    BROKER_LOGGER,
    SET,
    TOPIC,
    Case,
    TopicIdOf,
    creation,
    each_version,
    new_topic,
)
from tests.conformance.cases.acl_requests import (
    ADMIN,
    ALICE,
    ALL,
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CREATE,
    DELEGATION_TOKEN,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    EVERYTHING,
    GROUPS,
    PREFIXED,
    READ,
    THE_CLUSTER,
    TRANSACTIONAL_ID,
    WRITE,
    acl,
    by,
    of_filter,
)


def configs_of(*resources: tuple[int, str]) -> dict[str, Any]:
    return {
        "resources": [
            {"resource_type": kind, "resource_name": name, "configuration_keys": ["retention.ms", "log.retention.ms"]}
            for kind, name in resources
        ]
    }


RESOURCES = ((BROKER, "1"), (TOPIC, "sec-other"), (TOPIC, "sec-missing"), (TOPIC, "sec-mine"), (BROKER_LOGGER, "1"))


def questions() -> list[tuple[str, str, dict[str, Any], int, dict[str, Any]]]:
    """Name, API, body, first version, and further fields of the case, for each question."""
    named = [{"name": name} for name in ("sec-mine", "sec-other", "sec-missing", "sec bad")]
    by_id = [{"name": None, "topic_id": TopicIdOf(name)} for name in ("sec-mine", "sec-other")]
    retention = [{"name": "retention.ms", "value": "1000"}]
    set_retention = [{"name": "retention.ms", "config_operation": SET, "value": "1000"}]
    altered = [(TOPIC, "sec-mine"), (TOPIC, "sec-other"), (TOPIC, "sec-missing"), (BROKER, "")]
    return [
        ("all topics", "Metadata", {"topics": None}, 1, {}),
        ("named topics", "Metadata", {"topics": named, "allow_auto_topic_creation": False}, 4, {}),
        ("topics by id", "Metadata", {"topics": by_id}, 12, {}),
        (
            "operations",
            "Metadata",
            {
                "topics": None,
                "include_topic_authorized_operations": True,
                "include_cluster_authorized_operations": True,
            },
            8,
            {},
        ),
        (
            "operations of named topics",
            "Metadata",
            {"topics": named, "allow_auto_topic_creation": False, "include_topic_authorized_operations": True},
            8,
            {},
        ),
        ("cluster", "DescribeCluster", {"include_cluster_authorized_operations": True}, 0, {}),
        ("configs", "DescribeConfigs", configs_of(*RESOURCES[:4]), 0, {"node_1": True}),
        ("loggers", "DescribeConfigs", configs_of((BROKER_LOGGER, "nonsense")), 1, {}),
        (
            "create",
            "CreateTopics",
            creation(
                new_topic("sec-new", placed={0: [1]}),
                new_topic("sec-mine", placed={0: [1]}),
                new_topic("sec bad", placed={0: [1]}),
                new_topic("sec-other", placed={0: [1]}),
                validate_only=True,
            ),
            1,
            {},
        ),
        (
            "create twice",
            "CreateTopics",
            creation(new_topic("sec-new"), new_topic("sec-new"), validate_only=True),
            5,
            {},
        ),
        (
            "partitions",
            "CreatePartitions",
            {
                "topics": [
                    {"name": name, "count": 2, "assignments": None} for name in ("sec-mine", "sec-other", "sec-missing")
                ],
                "timeout_ms": 30_000,
                "validate_only": True,
            },
            0,
            {},
        ),
        (
            "alter configs",
            "AlterConfigs",
            {
                "resources": [
                    {"resource_type": kind, "resource_name": name, "configs": retention if kind == TOPIC else []}
                    for kind, name in altered
                ],
                "validate_only": True,
            },
            0,
            {},
        ),
        (
            "alter configs incrementally",
            "IncrementalAlterConfigs",
            {
                "resources": [
                    {"resource_type": kind, "resource_name": name, "configs": set_retention if kind == TOPIC else []}
                    for kind, name in altered
                ],
                "validate_only": True,
            },
            0,
            {},
        ),
        (
            "alter a broker wrongly",
            "IncrementalAlterConfigs",
            {
                "resources": [
                    {
                        "resource_type": BROKER,
                        "resource_name": "1",
                        "configs": [{"name": "log.retention.ms", "config_operation": SET, "value": "nonsense"}],
                    }
                ],
                "validate_only": True,
            },
            0,
            {"node_1": True},
        ),
        ("delete", "DeleteTopics", {"topic_names": ["sec-missing"], "timeout_ms": 30_000}, 0, {}),
        ("coordinator of a group", "FindCoordinator", {"key": "sec-group"}, 0, {"random_placement": True}),
        ("coordinators", "FindCoordinator", {"coordinator_keys": ["sec-group", "sec-other-group"]}, 4, {}),
        (
            "coordinators of transactions",
            "FindCoordinator",
            {"coordinator_keys": ["sec-tx", "sec-other-tx"], "key_type": 1},
            4,
            {},
        ),
        (
            "groups",
            "DescribeGroups",
            {"groups": ["sec-group", "sec-other-group"], "include_authorized_operations": True},
            0,
            {"node_1": True},
        ),
        ("list of groups", "ListGroups", {}, 0, {}),
        ("reassignments", "ListPartitionReassignments", {"timeout_ms": 30_000, "topics": None}, 0, {}),
        (
            "reassignments of topics",
            "ListPartitionReassignments",
            {"timeout_ms": 30_000, "topics": [{"name": "sec-mine", "partition_indexes": [0]}]},
            0,
            {},
        ),
        ("acls", "DescribeAcls", {**EVERYTHING, "resource_type_filter": DELEGATION_TOKEN}, 1, {}),
        ("new acl", "CreateAcls", {"creations": [acl(READ, name="sec/bad", principal="User:carol")]}, 1, {}),
        (
            "old acls",
            "DeleteAcls",
            {"filters": [{**EVERYTHING, "resource_type_filter": DELEGATION_TOKEN}]},
            1,
            {},
        ),
        ("quotas", "DescribeClientQuotas", {"components": [], "strict": False}, 0, {}),
        (
            "new quota",
            "AlterClientQuotas",
            {
                "entries": [
                    {
                        "entity": [{"entity_type": "user", "entity_name": "alice"}],
                        "ops": [{"key": "producer_byte_rate", "value": 1024.0, "remove": False}],
                    }
                ],
                "validate_only": True,
            },
            0,
            {},
        ),
        ("users", "DescribeUserScramCredentials", {"users": [{"name": "nobody"}]}, 0, {}),
        (
            "old user",
            "AlterUserScramCredentials",
            {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []},
            0,
            {},
        ),
    ]


LAST = {
    "AlterClientQuotas": 1,
    "AlterConfigs": 2,
    "AlterUserScramCredentials": 0,
    "CreateAcls": 3,
    "CreatePartitions": 3,
    "CreateTopics": 7,
    "DeleteAcls": 3,
    "DeleteTopics": 5,
    "DescribeAcls": 3,
    "DescribeClientQuotas": 1,
    "DescribeCluster": 1,
    "DescribeConfigs": 4,
    "DescribeGroups": 5,
    "DescribeUserScramCredentials": 0,
    "FindCoordinator": 6,
    "IncrementalAlterConfigs": 1,
    "ListGroups": 5,
    "ListPartitionReassignments": 0,
    "Metadata": 12,
}
"""The newest version of each API in which the questions above can be asked."""


def asked(state: str, *, all_versions: bool) -> Iterator[Case]:
    """Yield all questions, asked in a state of the ACLs."""
    for name, api, body, since, more in questions():
        last = 10 if "include_cluster_authorized_operations" in body and api == "Metadata" else LAST[api]
        last = 3 if name == "coordinator of a group" else last
        for case in each_version(f"{state}, {name}", api, body, since=since, **more):
            if case.version <= last and (all_versions or case.version == last):
                yield case


STATES: list[tuple[str, list[dict[str, Any]]]] = [
    ("one topic described", [acl(DESCRIBE)]),
    ("one topic read", [acl(READ)]),
    ("topics by prefix", [acl(WRITE, name="sec-m", pattern=PREFIXED)]),
    ("all topics but one", [acl(ALL, name="*"), acl(DESCRIBE, name="sec-other", permission=DENY)]),
    ("all topics but for a prefix", [acl(READ, name="*"), acl(ALL, name="sec-o", pattern=PREFIXED, permission=DENY)]),
    ("configs", [acl(DESCRIBE_CONFIGS), acl(ALTER_CONFIGS, name="sec-other")]),
    ("topics changed", [acl(ALTER), acl(CREATE, name="sec-new"), acl(DELETE, name="sec-missing")]),
    ("create in the cluster", [acl(CREATE, CLUSTER, THE_CLUSTER), acl(DESCRIBE_CONFIGS, name="sec-new")]),
    ("cluster described", [acl(DESCRIBE, CLUSTER, THE_CLUSTER)]),
    ("cluster altered", [acl(ALTER, CLUSTER, THE_CLUSTER)]),
    ("cluster configs", [acl(ALTER_CONFIGS, CLUSTER, THE_CLUSTER)]),
    ("groups", [acl(READ, GROUPS, "sec-g", pattern=PREFIXED), acl(DESCRIBE, TRANSACTIONAL_ID, "sec-tx")]),
    ("of another host", [acl(ALL, name="*", host="10.9.8.7"), acl(ALL, CLUSTER, THE_CLUSTER, host="10.9.8.7")]),
    ("of this host", [acl(READ, host="127.0.0.1"), acl(READ, name="sec-other", host="127.0.0.1", principal="User:*")]),
    ("everything", [acl(ALL, name="*"), acl(ALL, CLUSTER, THE_CLUSTER), acl(ALL, GROUPS, "*")]),
]


def in_state(state: str, acls: list[dict[str, Any]]) -> list[Case]:
    """Admin makes the ACLs, alice asks, and admin removes them."""
    return [
        *by(ADMIN, [Case(f"{state}, make", "CreateAcls", 3, {"creations": acls})]),
        *by(ALICE, list(asked(state, all_versions=state == "everything"))),
        *by(ADMIN, [Case(f"{state}, unmake", "DeleteAcls", 3, {"filters": [of_filter(each) for each in acls]})]),
    ]


SETUP = by(
    ADMIN,
    [
        Case(
            "setup",
            "CreateTopics",
            7,
            creation(
                new_topic("sec-mine", placed={0: [1]}),
                new_topic("sec-other", placed={0: [1]}),
                new_topic(
                    "__consumer_offsets",
                    placed={0: [1], 1: [1], 2: [1], 3: [1]},
                    configs={"cleanup.policy": "compact"},
                ),
                new_topic("__transaction_state", placed={0: [1]}, configs={"cleanup.policy": "compact"}),
            ),
        ),
        Case("all topics", "Metadata", 12, {"topics": None}, once_led=("sec-mine", "sec-other", "__consumer_offsets", "__transaction_state")),
        Case("ready", "FindCoordinator", 4, {"coordinator_keys": ["g"]}, settles=True),
        Case("ready for transactions", "FindCoordinator", 4, {"coordinator_keys": ["g"], "key_type": 1}, settles=True),
    ],
)  # fmt: skip

CASES = [
    *SETUP,
    *by(ALICE, list(asked("nothing", all_versions=True))),
    *by(ADMIN, list(asked("super user", all_versions=True))),
    *(case for state, acls in STATES for case in in_state(state, acls)),
    *by(ADMIN, [Case("delete, make", "CreateAcls", 3, {"creations": [acl(DELETE), acl(DESCRIBE, name="sec-other")]})]),
    *by(
        ALICE,
        [
            Case(
                "delete by id",
                "DeleteTopics",
                6,
                {
                    "topics": [{"name": None, "topic_id": TopicIdOf(name)} for name in ("sec-other", "sec-mine")]
                    + [{"name": None, "topic_id": TopicIdOf("__transaction_state")}, {"name": "sec-missing"}],
                    "timeout_ms": 30_000,
                },
            )
        ],
    ),
    *by(ADMIN, [Case("delete, unmake", "DeleteAcls", 3, {"filters": [EVERYTHING]})]),
]
