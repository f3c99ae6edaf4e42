"""Changes that are carried out for who may make them, in every version, and what an ACL for one
operation implies (KIP-430).
"""

from typing import Any

from tests.conformance.case import (
    DELETE as REMOVE_CONFIG,
)
from tests.conformance.case import (
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
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    EVERYTHING,
    GROUPS,
    IDEMPOTENT_WRITE,
    PREFIXED,
    READ,
    THE_CLUSTER,
    TOPICS,
    acl,
    by,
    created,
    removed,
)

OPERATIONS = range(ALL, IDEMPOTENT_WRITE + 1)


def allowed(name: str, *acls: dict[str, Any]) -> list[Case]:
    return by(ADMIN, created(f"actions, {name}", *acls))


def cleared(name: str) -> list[Case]:
    return by(ADMIN, removed(f"actions, {name}", EVERYTHING))


def ready(name: str, *topics: str) -> list[Case]:
    """Admin sees topics, after they have leaders."""
    body = {"topics": [{"name": topic} for topic in topics], "allow_auto_topic_creation": False}
    return by(ADMIN, [Case(f"{name} ready", "Metadata", 12, body, once_led=topics, settles=True)])


def wanted(*names: str) -> dict[str, Any]:
    return {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": True}


def asked_for(state: str) -> list[Case]:
    """Topics that are created because somebody asks for them."""
    topics = (f"auto-{state}-v4", f"auto-{state}-v12")
    return by(
        ALICE,
        [
            Case(f"automatic, {state}", "Metadata", version, wanted(f"auto-{state}-v{version}", "auto bad"))
            for version in (4, 12)
        ],
    ) + by(
        ADMIN,
        [Case(f"automatic, {state}", "Metadata", 12, {**wanted(*topics), "allow_auto_topic_creation": False}, settles=True, random_placement=True)],
    )  # fmt: skip


AUTOMATIC = [
    *asked_for("nothing"),
    *allowed("describe", acl(DESCRIBE, name="auto-", pattern=PREFIXED)),
    *asked_for("describe"),
    *allowed("create", acl(CREATE, name="auto-create", pattern=PREFIXED)),
    *asked_for("create"),
    *cleared("create"),
    *allowed("create only", acl(CREATE, name="auto-only", pattern=PREFIXED)),
    *asked_for("only"),
    *cleared("create only"),
    *allowed("in the cluster", acl(CREATE, CLUSTER, THE_CLUSTER), acl(DESCRIBE, name="auto-", pattern=PREFIXED)),
    *asked_for("cluster"),
    *cleared("in the cluster"),
]

PREFIX = "act-"


def mine(operation: int) -> dict[str, Any]:
    return acl(operation, name=PREFIX, pattern=PREFIXED)


def topics_of(api: str) -> list[str]:
    return [f"{PREFIX}v{case.version}" for case in each_version("", api, {})]


CREATED = [
    *allowed("created", mine(CREATE)),
    *by(
        ALICE,
        each_version(
            "own topics",
            "CreateTopics",
            creation(
                new_topic("act-v{v}", placed={0: [1]}, configs={"retention.ms": "1000"}),
                new_topic("other-v{v}", placed={0: [1]}),
            ),
        ),
    ),
    *allowed("configs", mine(DESCRIBE_CONFIGS)),
    *by(
        ALICE, [Case("own topic with configs", "CreateTopics", 7, creation(new_topic("act-configs", placed={0: [1]})))]
    ),
    *ready("own topics", *topics_of("CreateTopics")),
    *by(
        ALICE,
        each_version(
            "own configs",
            "DescribeConfigs",
            {
                "resources": [
                    {"resource_type": TOPIC, "resource_name": name, "configuration_keys": ["retention.ms"]}
                    for name in ("act-v{v}", "sec-other")
                ]
            },
        ),
    ),
]

GROWN = [
    *by(
        ALICE,
        each_version("grow", "CreatePartitions", {"topics": [{"name": "act-v{v}", "count": 2, "assignments": None}]}),
    ),
    *allowed("altered", mine(ALTER)),
    *by(
        ALICE,
        each_version(
            "grow own",
            "CreatePartitions",
            {
                "topics": [{"name": name, "count": 2, "assignments": None} for name in ("act-v{v}", "sec-other")],
                "timeout_ms": 30_000,
            },
        ),
    ),
]

CONFIGURED = [
    *allowed("configs altered", mine(ALTER_CONFIGS)),
    *by(
        ALICE,
        [
            *each_version(
                "own",
                "AlterConfigs",
                {
                    "resources": [
                        {
                            "resource_type": TOPIC,
                            "resource_name": name,
                            "configs": [{"name": "retention.ms", "value": "2000"}],
                        }
                        for name in ("act-v{v}", "sec-other")
                    ]
                },
            ),
            *each_version(
                "own",
                "IncrementalAlterConfigs",
                {
                    "resources": [
                        {
                            "resource_type": TOPIC,
                            "resource_name": name,
                            "configs": [
                                {"name": "retention.ms", "config_operation": REMOVE_CONFIG, "value": None},
                                {"name": "segment.ms", "config_operation": SET, "value": "3000"},
                            ],
                        }
                        for name in ("act-v{v}", "sec-other")
                    ]
                },
            ),
            Case(
                "own configs after that",
                "DescribeConfigs",
                4,
                {
                    "resources": [
                        {
                            "resource_type": TOPIC,
                            "resource_name": f"act-v{number}",
                            "configuration_keys": ["retention.ms", "segment.ms"],
                        }
                        for number in range(3)
                    ]
                },
                settles=True,
            ),
        ],
    ),
]

DELETED = [
    *by(ALICE, [Case("without DELETE", "DeleteTopics", 5, {"topic_names": ["act-v0", "sec-other", "missing"]})]),
    *allowed("deleted", mine(DELETE)),
    *by(
        ALICE,
        [
            case
            for case in each_version(
                "own", "DeleteTopics", {"topic_names": ["act-v{v}", "other-v{v}"], "timeout_ms": 30_000}
            )
            if case.version < 6
        ],
    ),
    *by(
        ALICE,
        [
            Case(
                "own",
                "DeleteTopics",
                6,
                {
                    "topics": [
                        {"name": "act-v6"},
                        {"name": None, "topic_id": TopicIdOf("act-v7")},
                        {"name": None, "topic_id": TopicIdOf("sec-other")},
                    ],
                    "timeout_ms": 30_000,
                },
            )
        ],
    ),
    *cleared("deleted"),
]

KINDS = {TOPICS: "sec-other", GROUPS: "sec-group", CLUSTER: THE_CLUSTER}


def implied(kind: int, operation: int) -> list[Case]:
    """An ACL for one operation on one resource, and the operations that Kafka tells."""
    name = f"operation {operation} on {KINDS[kind]}"
    given = acl(operation, kind, KINDS[kind])
    with_all = {"include_authorized_operations": True}
    questions = {
        TOPICS: Case(
            name,
            "Metadata",
            12,
            {
                "topics": [{"name": "sec-other"}],
                "allow_auto_topic_creation": False,
                "include_topic_authorized_operations": True,
            },
        ),
        GROUPS: Case(name, "DescribeGroups", 5, {"groups": ["sec-group"], **with_all}, node_1=True),
        CLUSTER: Case(name, "DescribeCluster", 1, {"include_cluster_authorized_operations": True}),
    }
    return [*allowed(name, given), *by(ALICE, [questions[kind]]), *cleared(name)]


IMPLIED = [case for kind in KINDS for operation in OPERATIONS for case in implied(kind, operation)]


def denied(name: str, *acls: dict[str, Any]) -> list[Case]:
    body = {"topics": None, "include_topic_authorized_operations": True}
    asked = by(ALICE, [Case(f"seen, {name}", "Metadata", 12, body, random_placement=True)])
    return [*allowed(name, *acls), *asked, *cleared(name)]


DENIED = [
    *denied("READ denied", acl(ALL, name="*"), acl(READ, name="sec-other", permission=DENY)),
    *denied("DESCRIBE denied, READ allowed", acl(READ, name="*"), acl(DESCRIBE, name="sec-other", permission=DENY)),
    *denied("denied to everybody", acl(ALL, name="*"), acl(ALL, name="sec-", pattern=PREFIXED, permission=DENY, principal="User:*")),
    *denied("denied from here", acl(ALL, name="*"), acl(ALL, name="sec-other", permission=DENY, host="127.0.0.1")),
    *denied("denied from elsewhere", acl(ALL, name="*"), acl(ALL, name="sec-other", permission=DENY, host="10.0.0.1")),
    *denied("allowed to everybody", acl(READ, name="sec-", pattern=PREFIXED, principal="User:*")),
    *denied("a principal in other letters", acl(ALL, name="*", principal="User:Alice")),
    *denied("a type in other letters", acl(ALL, name="*", principal="user:alice")),
    *denied("a longer prefix", acl(ALL, name="sec-other-and-more", pattern=PREFIXED)),
    *denied("a literal prefix", acl(ALL, name="sec-")),
    *denied("a prefix of everything", acl(ALL, name="*", pattern=PREFIXED)),
]  # fmt: skip

CASES = [*AUTOMATIC, *CREATED, *GROWN, *CONFIGURED, *DELETED, *IMPLIED, *DENIED]
