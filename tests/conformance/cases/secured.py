"""What users may do who have none, some or many ACLs, and the APIs of ACLs, quotas and SCRAM users.

The cluster authenticates by SASL PLAIN; `admin` is a super user, alice, bob and carol are not. A
state of the ACLs is made by admin, and then the same questions are asked by alice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
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

ADMIN, ALICE, BOB = "admin", "alice", "bob"
ANY, TOPICS, GROUPS, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = 1, 2, 3, 4, 5, 6, 7
LITERAL, PREFIXED, MATCH = 3, 4, 2
DENY, ALLOW = 2, 3
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 2, 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12
THE_CLUSTER = "kafka-cluster"

ACL = Mapping[str, Any]


def acl(
    operation: int,
    kind: int = TOPICS,
    name: str = "sec-mine",
    *,
    pattern: int = LITERAL,
    permission: int = ALLOW,
    principal: str = "User:alice",
    host: str = "*",
) -> dict[str, Any]:
    return {
        "resource_type": kind,
        "resource_name": name,
        "resource_pattern_type": pattern,
        "principal": principal,
        "host": host,
        "operation": operation,
        "permission_type": permission,
    }


def of_filter(each: ACL) -> dict[str, Any]:
    """The filter that finds exactly this ACL."""
    return {
        "resource_type_filter": each["resource_type"],
        "resource_name_filter": each["resource_name"],
        "pattern_type_filter": each["resource_pattern_type"],
        "principal_filter": each["principal"],
        "host_filter": each["host"],
        "operation": each["operation"],
        "permission_type": each["permission_type"],
    }


EVERYTHING = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}


def by(user: str, cases: list[Case]) -> list[Case]:
    """The same cases asked by a user, who is named in their keys."""
    return [replace(case, name=f"{user}: {case.name}", user=user) for case in cases]


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
        *by(ALICE, list(asked(state, all_versions=False))),
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

AUTHORIZATION = [
    *SETUP,
    *by(ALICE, list(asked("nothing", all_versions=True))),
    *by(ADMIN, list(asked("super user", all_versions=False))),
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

OTHERS = [
    acl(READ, name="acl-a", principal="User:bob"),
    acl(WRITE, name="acl-a", principal="User:bob"),
    acl(READ, name="acl-", pattern=PREFIXED, principal="User:bob"),
    acl(READ, name="*", principal="User:carol"),
    acl(DESCRIBE, GROUPS, "acl-a", principal="User:*", permission=DENY),
    acl(CREATE, CLUSTER, THE_CLUSTER, principal="Group:admins"),
    acl(READ, name="acl-a", principal="User:CN=a,O=b c"),
    acl(11, USER, "bob", principal="User:carol"),
    acl(13, USER, "bob", principal="User:carol"),
]


def described(name: str, **parts: Any) -> list[Case]:
    return [Case(f"describe {name}", "DescribeAcls", 3, {**EVERYTHING, **parts})]


def removed(name: str, *filters: Mapping[str, Any]) -> list[Case]:
    return [Case(f"delete {name}", "DeleteAcls", 3, {"filters": list(filters)})]


def created(name: str, *acls: Mapping[str, Any], version: int = 3) -> list[Case]:
    creations = [dict(each) for each in acls]
    if version == 0:
        for each in creations:
            del each["resource_pattern_type"]
    return [Case(f"create {name}", "CreateAcls", version, {"creations": creations})]


def old_filter(**parts: Any) -> dict[str, Any]:
    found = {**EVERYTHING, **parts}
    del found["pattern_type_filter"]
    return found


ACLS = by(
    ADMIN,
    [
        *created("in version 0", acl(READ, name="acl-v0"), version=0),
        *created("in version 1", acl(READ, name="acl-v1"), version=1),
        *created("in version 2", acl(READ, name="acl-v2"), version=2),
        *created("many", *OTHERS),
        *created("again", OTHERS[0]),
        *created("none"),
        *created("wrong cluster", acl(READ, CLUSTER, "other")),
        *created("empty name", acl(READ, name="")),
        *created("slash", acl(READ, name="a/b"), acl(READ, name="acl-b")),
        *created("blank principal", acl(READ, name="acl-c", principal="")),
        *created("no type in principal", acl(READ, name="acl-c", principal="bob")),
        *created("empty host", acl(READ, name="acl-c", host="")),
        *created("strange host", acl(READ, name="acl-c", host="no host at all")),
        *created("any operation", acl(1, name="acl-c")),
        *created("any permission", acl(READ, name="acl-c", permission=1)),
        *created("any type", acl(READ, ANY, "acl-c")),
        *created("match", acl(READ, name="acl-c", pattern=MATCH)),
        *created("any pattern", acl(READ, name="acl-c", pattern=1)),
        *created("operation of another resource", acl(CLUSTER_ACTION, name="acl-d")),
        *created("unknown operation", acl(99, name="acl-c")),
        *created("unknown type", acl(READ, 99, "acl-c")),
        *created("unknown pattern", acl(READ, name="acl-c", pattern=99)),
        *created("unknown permission", acl(READ, name="acl-c", permission=99)),
        *created("operation zero", acl(0, name="acl-c")),
        *created("type zero", acl(READ, 0, "acl-c")),
        *created("long name", acl(READ, name="n" * 300)),
        *created("name of many kinds", acl(READ, name="a b\u00e9:\u4e2d")),
        *described("everything"),
        *[
            Case("describe everything", "DescribeAcls", version, EVERYTHING if version else old_filter())
            for version in range(3)
        ],
        *described("topics", resource_type_filter=TOPICS),
        *described("a name", resource_name_filter="acl-a"),
        *described("literal", resource_name_filter="acl-a", pattern_type_filter=LITERAL),
        *described("prefixed", resource_name_filter="acl-", pattern_type_filter=PREFIXED),
        *described("match", resource_type_filter=TOPICS, resource_name_filter="acl-a", pattern_type_filter=MATCH),
        *described("match of nothing", resource_type_filter=TOPICS, resource_name_filter="zzz", pattern_type_filter=MATCH),
        *described("match of a wildcard", resource_name_filter="*", pattern_type_filter=MATCH),
        *described("a principal", principal_filter="User:bob"),
        *described("everybody", principal_filter="User:*"),
        *described("a host", host_filter="*"),
        *described("another host", host_filter="1.2.3.4"),
        *described("an operation", operation=READ),
        *described("operation all", operation=ALL),
        *described("denials", permission_type=DENY),
        *described("unknown operation", operation=99),
        *described("operation zero", operation=0),
        *described("unknown type", resource_type_filter=99),
        *described("bad principal", principal_filter="bob"),
        *described("empty name", resource_name_filter=""),
        *removed("one", {**EVERYTHING, "resource_name_filter": "acl-v0"}),
        *[
            Case("delete a name", "DeleteAcls", version, {"filters": [EVERYTHING_V if version else old_filter(resource_name_filter="acl-v1")]})
            for version, EVERYTHING_V in ((version, {**EVERYTHING, "resource_name_filter": "acl-v2"}) for version in range(3))
        ],
        *removed("nothing", {**EVERYTHING, "resource_name_filter": "zzz"}),
        *removed(
            "twice", {**EVERYTHING, "principal_filter": "User:bob", "operation": WRITE}, {**EVERYTHING, "principal_filter": "User:bob"}
        ),
        *removed("operation zero", {**EVERYTHING, "operation": 0}),
        *removed("unknown operation", {**EVERYTHING, "operation": 99}),
        *removed("no filters"),
        *removed("by match", {**EVERYTHING, "resource_type_filter": TOPICS, "resource_name_filter": "acl-zzz", "pattern_type_filter": MATCH}),
        *described("what is left"),
        *removed("everything", EVERYTHING),
        *described("nothing"),
    ],
)  # fmt: skip


def entity(**parts: str | None) -> list[dict[str, Any]]:
    return [{"entity_type": kind.replace("_", "-"), "entity_name": name} for kind, name in parts.items()]


def quota(name: str, who: list[dict[str, Any]], *ops: tuple[str, float | None], validate_only: bool = False) -> Case:
    return Case(
        f"alter quotas {name}",
        "AlterClientQuotas",
        1,
        {
            "entries": [
                {"entity": who, "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops]}
            ],
            "validate_only": validate_only,
        },
    )  # fmt: skip


def quotas(name: str, *components: tuple[str, int, str | None], strict: bool = False) -> Case:
    return Case(
        f"describe quotas {name}",
        "DescribeClientQuotas",
        1,
        {
            "components": [{"entity_type": kind, "match_type": how, "match": match} for kind, how, match in components],
            "strict": strict,
        },
    )


EXACT, DEFAULT, SPECIFIED = 0, 1, 2

QUOTAS = by(
    ADMIN,
    [
        quota("of a user", entity(user="q-alice"), ("producer_byte_rate", 1024.0), ("consumer_byte_rate", 2048.0)),
        quota("of the default user", entity(user=None), ("request_percentage", 50.0)),
        quota("of a client", entity(client_id="q-app"), ("controller_mutation_rate", 10.0)),
        quota("of a pair", entity(user="q-alice", client_id="q-app"), ("producer_byte_rate", 1.0)),
        quota("of a user's default client", entity(user="q-alice", client_id=None), ("producer_byte_rate", 2.0)),
        quota("of both defaults", entity(user=None, client_id=None), ("producer_byte_rate", 3.0)),
        quota("of an ip", entity(ip="10.1.2.3"), ("connection_creation_rate", 100.0)),
        quota("of the default ip", entity(ip=None), ("connection_creation_rate", 200.0)),
        quota("of a strange user", entity(user="q a:b/c*"), ("producer_byte_rate", 9.0)),
        quota("of nobody", [], ("producer_byte_rate", 9.0)),
        quota("of an unknown kind", entity(group="g"), ("producer_byte_rate", 9.0)),
        quota("of an empty name", entity(user=""), ("producer_byte_rate", 9.0)),
        quota("of an ip and a user", entity(user="a", ip="10.1.2.3"), ("producer_byte_rate", 9.0)),
        quota("of a host", entity(ip="no host at all"), ("connection_creation_rate", 9.0)),
        quota("with an unknown key", entity(user="q-alice"), ("nonsense", 9.0)),
        quota("with the key of an ip", entity(user="q-alice"), ("connection_creation_rate", 9.0)),
        quota("with a fraction", entity(ip="10.1.2.3"), ("connection_creation_rate", 1.5)),
        quota("with a fraction of bytes", entity(user="q-alice"), ("producer_byte_rate", 1.5)),
        quota("validated", entity(user="q-bob"), ("producer_byte_rate", 7.0), validate_only=True),
        quota("removed that is not there", entity(user="q-zzz"), ("producer_byte_rate", None)),
        quotas("all"),
        Case("describe quotas all", "DescribeClientQuotas", 0, {"components": [], "strict": False}),
        quotas("strictly nothing", strict=True),
        quotas("a user", ("user", EXACT, "q-alice")),
        quotas("strictly a user", ("user", EXACT, "q-alice"), strict=True),
        quotas("the default user", ("user", DEFAULT, None)),
        quotas("any user", ("user", SPECIFIED, None)),
        quotas("strictly any user", ("user", SPECIFIED, None), strict=True),
        quotas("a pair", ("user", EXACT, "q-alice"), ("client-id", EXACT, "q-app")),
        quotas("ips", ("ip", SPECIFIED, None)),
        quotas("the default ip", ("ip", DEFAULT, None)),
        quotas("an ip and a user", ("ip", SPECIFIED, None), ("user", SPECIFIED, None)),
        quotas("twice", ("user", SPECIFIED, None), ("user", SPECIFIED, None)),
        quotas("an unknown kind", ("group", SPECIFIED, None)),
        quotas("an empty kind", ("", SPECIFIED, None)),
        quota("removed", entity(user="q-alice"), ("producer_byte_rate", None), ("consumer_byte_rate", None)),
        quotas("what is left", ("user", EXACT, "q-alice")),
    ],
)


def scram(name: str, *, remove: list[tuple[str, int]] = [], put: list[tuple[str, int, int]] = []) -> Case:  # noqa: B006 - not changed
    return Case(
        f"alter users {name}",
        "AlterUserScramCredentials",
        0,
        {
            "deletions": [{"name": user, "mechanism": mechanism} for user, mechanism in remove],
            "upsertions": [
                {
                    "name": user,
                    "mechanism": mechanism,
                    "iterations": iterations,
                    "salt": b"0123456789abcdef",
                    "salted_password": b"p" * 32,
                }
                for user, mechanism, iterations in put
            ],
        },
    )


def scram_users(name: str, *users: str) -> Case:
    return Case(
        f"describe users {name}", "DescribeUserScramCredentials", 0, {"users": [{"name": user} for user in users]}
    )


USERS = by(
    ADMIN,
    [
        scram_users("of none", "u-alice"),
        scram("new", put=[("u-alice", 1, 4096), ("u-bob", 2, 8192)]),
        scram("second mechanism", put=[("u-alice", 2, 5000)]),
        scram("strange name", put=[("u a:b/c*", 1, 4096)]),
        scram("too few iterations", put=[("u-carol", 1, 4095)]),
        scram("too many iterations", put=[("u-carol", 1, 16385)]),
        scram("unknown mechanism", put=[("u-carol", 3, 4096)]),
        scram("mechanism zero", put=[("u-carol", 0, 4096)]),
        scram("empty name", put=[("", 1, 4096)]),
        scram("same twice", put=[("u-carol", 1, 4096), ("u-carol", 1, 4097)]),
        scram("put and removed", put=[("u-bob", 2, 4096)], remove=[("u-bob", 2)]),
        scram("two mechanisms at once", put=[("u-dave", 1, 4096), ("u-dave", 2, 4096)]),
        scram("removed that is not there", remove=[("u-zzz", 1)]),
        scram("removed empty", remove=[("", 1)]),
        scram("removed of an unknown mechanism", remove=[("u-alice", 9)]),
        scram("some wrong", put=[("u-erin", 1, 4096), ("u-frank", 1, 1)], remove=[("u-zzz", 2)]),
        scram("nothing"),
        scram_users("one", "u-alice"),
        scram_users("some", "u-alice", "u-bob", "u-zzz", "u a:b/c*"),
        scram_users("twice", "u-alice", "u-alice"),
        scram_users("empty", ""),
        scram_users("all"),
        scram("removed", remove=[("u-alice", 1), ("u-alice", 2)]),
        scram_users("removed", "u-alice"),
    ],
)
