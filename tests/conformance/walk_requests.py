"""The requests of a random walk: each step draws an API, and a body of few names, so that it meets
what earlier steps left behind. About one value in six is wrong.

Replicas are placed by hand, and what a controller would choose is only validated, because two
controllers choose differently.
"""

from collections.abc import Callable, Collection
from random import Random
from typing import Any

from tests.conformance.case import VERSIONS, Body, Case, TokenHmacOf, TopicIdOf, fill, new_topic
from tests.conformance.cases.acl_requests import ADMIN, ALICE, acl, of_filter
from tests.conformance.cases.quotas import entry

TOPICS = ("walk-a", "walk-b", "walk.c", "walk_d", "walk-e")
BAD_TOPICS = ("walk_c", "bad name!", "", "__cluster_metadata", "walk-nowhere", "w" * 250)
CONFIGS = {
    "retention.ms": ("1", "-1", "86400000", "abc", "", "-2", " 7 "),
    "cleanup.policy": ("compact", "delete", "compact,delete", "nonsense", ""),
    "min.insync.replicas": ("1", "2", "0", "-1"),
    "compression.type": ("zstd", "gzip", "nonsense"),
    "unclean.leader.election.enable": ("true", "FALSE", "maybe"),
    "max.message.bytes": ("1048588", "0", "-1", "2147483648"),
    "leader.replication.throttled.replicas": ("*", "0:1,1:2", "none", "x"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime", "now"),
    "no.such.config": ("1",),
}
BROKER_CONFIGS = {
    "log.cleaner.threads": ("1", "2", "0", "x"),
    "message.max.bytes": ("1048588", "-1"),
    "log.retention.ms": ("1000", "-1", "x"),
    "broker.id": ("1", "7"),
    "background.threads": ("10", "9", "50", "x"),
    "no.such.config": ("1",),
}
QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "x")
"""The keys of quotas, but for that of the controller's changes: what it lets pass depends on the
time, and which topics of a request on the order of a hash map.
"""
ENTITIES = (
    (("user", "walk-u"),),
    (("user", None),),
    (("client-id", "walk-c"),),
    (("user", "walk-u"), ("client-id", "walk-c")),
    (("user", None), ("client-id", None)),
    (("ip", "10.0.0.1"),),
    (("user", ""),),
    (("user", "a b/c"), ("client-id", None)),
    (),
    (("foo", "x"),),
)
USERS = ("walk-u", "walk-v", "walk w")
GROUPS = ("walk-g", "walk-h", "")
A_TOKEN = "a token"
"""Becomes the HMAC of one that was made."""

Draw = Callable[[Random], Body]


def is_wrong(random: Random) -> bool:
    return random.random() < 0.16


def a_topic(random: Random) -> str:
    return random.choice(BAD_TOPICS if is_wrong(random) else TOPICS)


def some(random: Random, draw: Callable[[Random], Any], most: int = 3) -> list[Any]:
    return [draw(random) for _ in range(0 if is_wrong(random) and is_wrong(random) else random.randint(1, most))]


def replicas(random: Random, most: int = 3) -> list[int]:
    nodes = [1, 2, 3]
    random.shuffle(nodes)
    nodes = nodes[: random.randint(1, most)]
    return random.choice([[*nodes, nodes[0]], [], [9], [-1, 1]]) if is_wrong(random) and is_wrong(random) else nodes


def a_value(random: Random, configs: dict[str, tuple[str, ...]]) -> tuple[str, str | None]:
    key = random.choice(list(configs))
    return key, None if is_wrong(random) and is_wrong(random) else random.choice(configs[key])


def create_topics(random: Random) -> Body:
    def topic(random: Random) -> Body:
        settings = [a_value(random, CONFIGS) for _ in range(random.choice((0, 0, 1, 2, 3)))]
        factor = random.randint(1, 3)
        lists = [[*replicas(random)] for _ in range(random.randint(1, 3))]
        if not is_wrong(random):
            lists = [(each + [node for node in (1, 2, 3) if node not in each])[:factor] for each in lists]
        placed = dict(enumerate(lists))
        if any(node < 1 or node > 3 for nodes in lists for node in nodes) or not all(lists):
            placed = {0: [1]}  # Kafka creates what can be neither used nor deleted: `unusable-placement`
        return new_topic(a_topic(random), placed=placed, configs=settings)

    topics = some(random, topic)  # Kafka creates them in no order, so that names that collide are asked for apart
    first = [each for each in topics if each["name"] != "walk_c"] or topics
    return {"topics": first, "timeout_ms": 30_000, "validate_only": is_wrong(random)}


def create_chosen(random: Random) -> Body:
    topics = [
        new_topic(a_topic(random), random.choice((-1, 0, 1, 3)), random.choice((-1, 0, 1, 3, 4))) for _ in range(2)
    ]
    return {"topics": topics, "timeout_ms": 30_000, "validate_only": True}


def delete_topics(random: Random) -> Body:
    return {"topic_names": some(random, a_topic), "timeout_ms": 30_000}


def delete_named(random: Random) -> Body:
    def one(random: Random) -> Body:
        return {"name": a_topic(random)} if random.random() < 0.5 else {"name": None, "topic_id": a_topic_id(random)}

    return {"topics": some(random, one, 2), "timeout_ms": 30_000}


def a_topic_id(random: Random) -> Any:
    return TopicIdOf(random.choice(TOPICS))


def create_partitions(random: Random) -> Body:
    def topic(random: Random) -> Body:
        nodes = [replicas(random) for _ in range(random.randint(1, 2))]
        return {
            "name": a_topic(random) or TOPICS[0],
            "count": random.choice((1, 2, 3, 3, 4, 5, 0, -1)),
            "assignments": [{"broker_ids": each} for each in nodes],
        }

    return {"topics": some(random, topic, 2), "timeout_ms": 30_000, "validate_only": is_wrong(random)}


def a_config_resource(random: Random) -> tuple[int, str, dict[str, tuple[str, ...]]]:
    kind = random.random()
    if kind < 0.75:
        return 2, a_topic(random), CONFIGS
    name = random.choice(("", "1", "1", "7", "x")) if kind < 0.97 else "x"
    return (4 if kind < 0.97 else random.choice((0, 1, 16, 99))), name, BROKER_CONFIGS


def alter_configs(random: Random) -> Body:
    resources = {}
    for _ in range(random.randint(1, 2)):  # Kafka never answers if one is named twice: `no-request-unanswered`
        kind, name, configs = a_config_resource(random)
        settings = dict(a_value(random, configs) for _ in range(random.randint(0, 3)))
        resources[kind, name] = [{"name": key, "value": value} for key, value in settings.items()]
    rows = [{"resource_type": kind, "resource_name": name, "configs": each} for (kind, name), each in resources.items()]
    return {"resources": rows, "validate_only": is_wrong(random)}


def incremental_alter_configs(random: Random) -> Body:
    def resource(random: Random) -> Body:
        kind, name, configs = a_config_resource(random)
        changes = []
        for _ in range(random.randint(1, 3)):
            key, value = a_value(random, configs)
            operation = random.choice((0, 0, 0, 1, 1, 2, 3) if key != "no.such.config" else (0, 1))
            changes.append({"name": key, "config_operation": operation, "value": None if operation == 1 else value})
        return {"resource_type": kind, "resource_name": name, "configs": changes}

    return {"resources": some(random, resource, 2), "validate_only": is_wrong(random)}


def describe_configs(random: Random) -> Body:
    def resource(random: Random) -> Body:
        kind, name, configs = a_config_resource(random)
        keys = random.sample(list(configs), 3)
        return {"resource_type": kind, "resource_name": name, "configuration_keys": keys}

    return {"resources": some(random, resource), "include_synonyms": random.random() < 0.5}


def metadata(random: Random) -> Body:
    return {"topics": [{"name": a_topic(random)} for _ in range(3)], "allow_auto_topic_creation": False}


def reassign(random: Random) -> Body:
    def topic(random: Random) -> Body:
        rows = [
            {
                "partition_index": random.choice((0, 0, 1, 2, 9)),
                "replicas": None if is_wrong(random) else replicas(random),
            }
            for _ in range(random.randint(1, 2))
        ]
        return {"name": a_topic(random), "partitions": rows}

    return {"timeout_ms": 30_000, "topics": some(random, topic, 2)}


def list_reassignments(random: Random) -> Body:
    rows = [{"name": a_topic(random), "partition_indexes": [0, 1]} for _ in range(2)]
    return {"timeout_ms": 30_000, "topics": random.choice((None, rows))}


def elect(random: Random) -> Body:
    rows = [{"topic": a_topic(random), "partitions": random.sample(range(4), 2)} for _ in range(2)]
    kind = random.choice((0, 0, 1, 2))
    return {"election_type": kind, "topic_partitions": random.choice((None, rows, rows)), "timeout_ms": 30_000}


def alter_quotas(random: Random) -> Body:
    def one(random: Random) -> Body:
        ops = {random.choice(QUOTAS): random.choice((None, 1.0, 2.5, 1e9, 0.0)) for _ in range(random.randint(1, 2))}
        return entry(random.choice(ENTITIES), ops)

    return {"entries": some(random, one, 2), "validate_only": is_wrong(random)}


def describe_quotas(random: Random) -> Body:
    parts = [
        {"entity_type": kind, "match_type": 1 if name is None else 0, "match": name}
        for kind, name in random.choice(ENTITIES)
    ]
    return {"components": parts, "strict": random.random() < 0.5}


def alter_users(random: Random) -> Body:
    def put(random: Random) -> Body:
        return {
            "name": random.choice(("", *USERS) if is_wrong(random) else USERS),
            "mechanism": random.choice((1, 1, 2, 2, 3) if is_wrong(random) else (1, 2)),
            "iterations": random.choice((4096, 8192, 16384, 4095, 16385)),
            "salt": b"0123456789abcdef",
            "salted_password": b"p" * 32,
        }

    deletions = [
        {"name": random.choice(USERS), "mechanism": random.choice((1, 2))} for _ in range(random.randint(0, 1))
    ]
    return {"deletions": deletions, "upsertions": [put(random) for _ in range(random.randint(0, 2))]}


def describe_users(random: Random) -> Body:
    return {"users": random.choice((None, [{"name": random.choice(USERS)} for _ in range(2)]))}


def an_acl(random: Random) -> dict[str, Any]:
    kind = random.choice((2, 2, 3, 4, 5, 7))
    names = {2: ("walk-a", "walk-", "*"), 3: ("walk-g", "*"), 4: ("kafka-cluster", "x"), 5: ("t",), 7: ("User:bob",)}
    pattern = random.choice((3, 4)) if kind in (2, 3) else 3
    operation = random.choice((2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12))
    principal = random.choice(("User:alice", "User:bob", "User:*"))
    host = random.choice(("*", "127.0.0.1"))
    name, permission = random.choice(names[kind]), random.choice((2, 3))
    return acl(operation, kind, name, pattern=pattern, permission=permission, principal=principal, host=host)


def create_acls(random: Random) -> Body:
    return {"creations": some(random, an_acl)}


def delete_acls(random: Random) -> Body:
    return {"filters": some(random, a_filter, 2)}


def a_filter(random: Random) -> dict[str, Any]:
    wanted = of_filter(an_acl(random))
    wide = {"resource_name_filter": None, "principal_filter": None, "host_filter": None, "operation": 1}
    return {**wanted, **wide, "pattern_type_filter": random.choice((1, 2, 3)), "permission_type": 1}


def describe_acls(random: Random) -> Body:
    return a_filter(random)


def delete_records(random: Random) -> Body:
    rows = [
        {"name": a_topic(random), "partitions": [{"partition_index": 0, "offset": random.choice((0, -1, 1, -2))}]}
        for _ in range(2)
    ]
    return {"topics": rows, "timeout_ms": 10_000}


def list_offsets(random: Random) -> Body:
    rows = [
        {
            "name": name,
            "partitions": [{"partition_index": random.choice((0, 1, 9)), "timestamp": random.choice((-1, -2, -3, 5))}],
        }
        for name in random.sample(TOPICS, 2)
    ]
    return {"replica_id": -1, "isolation_level": random.choice((0, 1)), "topics": rows}


def list_groups(random: Random) -> Body:
    return {"states_filter": random.choice(([], ["Empty"], ["Stable"]))}


def update_features(random: Random) -> Body:
    updates = [{"feature": random.choice(("metadata.version", "x")), "max_version_level": random.choice((0, 1, 17))}]
    return {"feature_updates": updates}


def commit(random: Random) -> Body:
    rows = [
        {
            "name": random.choice(TOPICS),
            "partitions": [
                {
                    "partition_index": random.choice((0, 0, 1, 9)),
                    "committed_offset": random.choice((0, 5, -1, 2**40)),
                    # Too much of it leaves Kafka a group without offsets: `no-group-of-nothing`
                    "committed_metadata": random.choice(("", None, "m", "m" * 4096)),
                }
            ],
        }
        for _ in range(random.randint(1, 2))
    ]
    return {"group_id": random.choice(GROUPS), "topics": rows}


def fetch(random: Random) -> Body:
    rows = [{"name": name, "partition_indexes": [0, 1]} for name in random.sample(TOPICS, 2)]
    return {"group_id": random.choice(GROUPS), "topics": random.choice((None, rows))}


def delete_offsets(random: Random) -> Body:
    rows = [{"name": a_topic(random), "partitions": [{"partition_index": random.choice((0, 1, 9))}]} for _ in range(2)]
    return {"group_id": random.choice(GROUPS), "topics": rows}


def delete_groups(random: Random) -> Body:
    return {"groups_names": some(random, lambda each: each.choice(GROUPS))}


def describe_groups(random: Random) -> Body:
    return {"groups": some(random, lambda each: each.choice(GROUPS))}


def coordinator(random: Random) -> Body:
    return {"key": random.choice(GROUPS), "key_type": 0}


def producers(random: Random) -> Body:
    return {"topics": [{"name": a_topic(random), "partition_indexes": [0, 1, 9]}]}


def create_token(random: Random) -> Body:
    renewers = some(
        random, lambda each: {"principal_type": each.choice(("User", "User", "x")), "principal_name": "bob"}
    )
    return {"renewers": renewers, "max_lifetime_ms": random.choice((-1, -1, 3_600_000, 0, -2))}


def renew_token(random: Random) -> Body:
    return {"hmac": A_TOKEN, "renew_period_ms": random.choice((-1, 3_600_000, 0, -2))}


def expire_token(random: Random) -> Body:
    return {"hmac": A_TOKEN, "expiry_time_period_ms": random.choice((-1, 3_600_000, 7_200_000, 0))}


def describe_tokens(random: Random) -> Body:
    owners = [{"principal_type": "User", "principal_name": random.choice((ADMIN, ALICE, "bob"))}]
    return {"owners": random.choice((None, owners, []))}


def nothing(_random: Random) -> Body:
    return {}


REQUESTS: dict[str, tuple[int, Draw, int]] = {
    "CreateTopics": (14, create_topics, 0),
    "CreateTopics ": (3, create_chosen, 4),
    "DeleteTopics": (6, delete_topics, 0),
    "DeleteTopics ": (3, delete_named, 6),
    "CreatePartitions": (8, create_partitions, 0),
    "AlterConfigs": (6, alter_configs, 0),
    "IncrementalAlterConfigs": (10, incremental_alter_configs, 0),
    "DescribeConfigs": (4, describe_configs, 0),
    "Metadata": (5, metadata, 4),
    "AlterPartitionReassignments": (8, reassign, 0),
    "ListPartitionReassignments": (2, list_reassignments, 0),
    "ElectLeaders": (4, elect, 0),
    "AlterClientQuotas": (6, alter_quotas, 0),
    "DescribeClientQuotas": (3, describe_quotas, 0),
    "AlterUserScramCredentials": (4, alter_users, 0),
    "DescribeUserScramCredentials": (2, describe_users, 0),
    "CreateAcls": (5, create_acls, 1),
    "DeleteAcls": (3, delete_acls, 1),
    "DescribeAcls": (3, describe_acls, 1),
    "DeleteRecords": (2, delete_records, 0),
    "ListOffsets": (2, list_offsets, 1),
    "ListGroups": (1, list_groups, 0),
    "UpdateFeatures": (1, update_features, 0),
    "DescribeCluster": (1, nothing, 0),
    "OffsetCommit": (5, commit, 1),
    "OffsetFetch": (3, fetch, 2),
    "OffsetDelete": (2, delete_offsets, 0),
    "DeleteGroups": (2, delete_groups, 0),
    "DescribeGroups": (2, describe_groups, 0),
    "FindCoordinator": (1, coordinator, 0),
    "DescribeProducers": (1, producers, 0),
    "ListTransactions": (1, nothing, 0),
    "CreateDelegationToken": (2, create_token, 0),
    "RenewDelegationToken": (2, renew_token, 0),
    "ExpireDelegationToken": (2, expire_token, 0),
    "DescribeDelegationToken": (2, describe_tokens, 0),
}
"""By API: how often it is drawn, what draws a body, and since which version. A space tells two of
the same API apart.
"""
OLDER = {"DeleteTopics": range(6), "OffsetFetch": range(8), "FindCoordinator": range(4)}
"""The versions that have such a body, where newer ones have another."""
OF_ADMIN = ("AlterPartitionReassignments", "DescribeUserScramCredentials")
"""To others, Kafka's answers are wrong in ways that the scenarios name."""
READS = ("Describe", "List", "Metadata", "Find", "OffsetFetch")


def a_case(random: Random, step: int, tokens: Collection[str]) -> Case:
    """Draw one request; `tokens` are the cases that made delegation tokens, with their versions."""
    names = list(REQUESTS)
    name = random.choices(names, [REQUESTS[each][0] for each in names])[0]
    _, draw, since = REQUESTS[name]
    api = name.strip()
    versions = [version for version in OLDER.get(name, VERSIONS[api]) if version >= since]
    version = random.choice((versions[-1], random.choice(versions)))
    body = fill(draw(random), version, api)
    if body.get("hmac") == A_TOKEN:
        body["hmac"] = TokenHmacOf(random.choice(sorted(tokens))) if tokens else b"unknown"
    user = ADMIN if random.random() < 0.85 or api in OF_ADMIN else ALICE
    return Case(f"step {step}", api, version, body, user=user, settles=api.startswith(READS))
