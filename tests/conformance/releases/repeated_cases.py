"""Requests that name something twice: what they ask for.

Each case has topics of its own (`{0}` in its name stands for its number), of two partitions with
the replicas 1 and 2.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from tests.conformance.releases.kafkas import BROKER, TOPIC
from tests.support.wire import Body

T, U = "t{0}", "u{0}"
"""Topics that a case finds."""
NEW = "new{0}"
"""A topic that a case may create."""
ID = "id of t{0}"
"""Stands for the id of the topic T."""
SET, DELETE, APPEND, SUBTRACT = range(4)
RETENTION, CLEANUP = "retention.ms", "cleanup.policy"
REASSIGN, RECORDS = "AlterPartitionReassignments", "DeleteRecords"
Rows = list[tuple[int, Any]]


class Repeated(msgspec.Struct, frozen=True):
    """A request that names something twice."""

    name: str
    api: str
    version: int
    body: Body
    look: str = "topics"
    """What is looked at afterwards: a key of LOOKS in `repeated.py`."""

    def of(self, number: int, topic_ids: dict[str, str]) -> Body:
        """The body with the names and ids of the case's own topics."""
        body: Body = _filled(self.body, number, topic_ids)
        return body


def _filled(value: Any, number: int, topic_ids: dict[str, str]) -> Any:
    match value:
        case str():
            text = value.replace("{0}", str(number))
            return topic_ids[text.removeprefix("id of ")] if value == ID else text
        case list():
            return [_filled(each, number, topic_ids) for each in value]
        case dict():
            return {name: _filled(each, number, topic_ids) for name, each in value.items()}
        case _:
            return value


def new(
    name: str = NEW,
    partitions: int = 1,
    assignments: Sequence[Any] = (),
    configs: Sequence[tuple[str, str | None]] = (),
) -> Body:
    return {
        "name": name,
        "num_partitions": -1 if assignments else partitions,
        "replication_factor": -1 if assignments else 1,
        "assignments": [{"partition_index": index, "broker_ids": ids} for index, ids in assignments],
        "configs": [{"name": key, "value": value} for key, value in configs],
    }


def create(name: str, *topics: Body) -> Repeated:
    return Repeated(
        f"CreateTopics: {name}",
        "CreateTopics",
        5,
        {"timeout_ms": 30_000, "topics": list(topics), "validate_only": False},
    )


def delete(name: str, *topics: Body) -> Repeated:
    return Repeated(f"DeleteTopics: {name}", "DeleteTopics", 6, {"timeout_ms": 30_000, "topics": list(topics)})


def grow(name: str, *topics: tuple[int, list[list[int]] | None]) -> Repeated:
    rows = [
        {"name": T, "count": count, "assignments": None if ids is None else [{"broker_ids": each} for each in ids]}
        for count, ids in topics
    ]
    return Repeated(
        f"CreatePartitions: {name}",
        "CreatePartitions",
        3,
        {"timeout_ms": 30_000, "topics": rows, "validate_only": False},
    )


def moved(*rows: tuple[int, list[int] | None], topic: str = T) -> Body:
    return {"name": topic, "partitions": [{"partition_index": index, "replicas": ids} for index, ids in rows]}


def move(name: str, *topics: Body) -> Repeated:
    return Repeated(f"{REASSIGN}: {name}", REASSIGN, 0, {"timeout_ms": 30_000, "topics": list(topics)})


def shortened(*rows: tuple[int, int], topic: str = T) -> Body:
    return {"name": topic, "partitions": [{"partition_index": index, "offset": offset} for index, offset in rows]}


def shorten(name: str, *topics: Body) -> Repeated:
    return Repeated(f"{RECORDS}: {name}", RECORDS, 2, {"timeout_ms": 30_000, "topics": list(topics)}, "records")


def resource(*configs: tuple[str, str | None] | tuple[str, int, str | None], name: str = T, kind: int = TOPIC) -> Body:
    entries = [
        {"name": each[0], "value": each[-1]} | ({"config_operation": each[1]} if len(each) == 3 else {})
        for each in configs
    ]
    return {"resource_type": kind, "resource_name": name, "configs": entries}


def replace(name: str, *resources: Body, look: str = "topics") -> Repeated:
    return Repeated(
        f"AlterConfigs: {name}", "AlterConfigs", 2, {"resources": list(resources), "validate_only": False}, look
    )


def alter(name: str, *resources: Body, look: str = "topics") -> Repeated:
    body = {"resources": list(resources), "validate_only": False}
    return Repeated(f"IncrementalAlterConfigs: {name}", "IncrementalAlterConfigs", 1, body, look)


def quota(entity: list[tuple[str, str | None]], *ops: tuple[str, float | None]) -> Body:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops],
    }


def quotas(name: str, *entries: Body) -> Repeated:
    return Repeated(
        f"AlterClientQuotas: {name}",
        "AlterClientQuotas",
        1,
        {"entries": list(entries), "validate_only": False},
        "quotas",
    )


def scram(name: str, deletions: list[tuple[str, int]], upsertions: list[tuple[str, int, int]]) -> Repeated:
    body = {
        "deletions": [{"name": user, "mechanism": mechanism} for user, mechanism in deletions],
        "upsertions": [
            {"name": user, "mechanism": mechanism, "iterations": count, "salt": b"salt", "salted_password": b"password"}
            for user, mechanism, count in upsertions
        ],
    }
    return Repeated(f"AlterUserScramCredentials: {name}", "AlterUserScramCredentials", 0, body, "users")


def acl(name: str = T, principal: str = "User:a") -> Body:
    return {
        "resource_type": 2, "resource_name": name, "resource_pattern_type": 3, "principal": principal, "host": "*",
        "operation": 3, "permission_type": 3,
    }  # fmt: skip


def acl_filter(name: str = T) -> Body:
    return {
        "resource_type_filter": 2, "resource_name_filter": name, "pattern_type_filter": 3, "principal_filter": None,
        "host_filter": None, "operation": 1, "permission_type": 1,
    }  # fmt: skip


def committed(*topics: tuple[str, Rows]) -> Body:
    rows = [
        {
            "name": name,
            "partitions": [
                {"partition_index": index, "committed_offset": offset, "committed_metadata": ""}
                for index, offset in partitions
            ],
        }
        for name, partitions in topics
    ]
    return {"group_id": "g{0}", "generation_id_or_member_epoch": -1, "member_id": "", "topics": rows}


def commit(name: str, *topics: tuple[str, Rows]) -> Repeated:
    return Repeated(f"OffsetCommit: {name}", "OffsetCommit", 8, committed(*topics), "offsets")


def forget(name: str, *topics: tuple[str, list[int]]) -> Repeated:
    rows = [
        {"name": topic, "partitions": [{"partition_index": index} for index in indexes]} for topic, indexes in topics
    ]
    return Repeated(f"OffsetDelete: {name}", "OffsetDelete", 0, {"group_id": "g{0}", "topics": rows}, "offsets")


def elect(name: str, *topics: tuple[str, list[int]]) -> Repeated:
    rows = [{"topic": topic, "partitions": indexes} for topic, indexes in topics]
    return Repeated(
        f"ElectLeaders: {name}", "ElectLeaders", 2, {"election_type": 0, "topic_partitions": rows, "timeout_ms": 30_000}
    )


def directories(name: str, *dirs: tuple[str, list[tuple[str, list[int]]]]) -> Repeated:
    rows = [
        {"path": path, "topics": [{"name": topic, "partitions": indexes} for topic, indexes in topics]}
        for path, topics in dirs
    ]
    return Repeated(f"AlterReplicaLogDirs: {name}", "AlterReplicaLogDirs", 2, {"dirs": rows}, "directories")


by_id, by_name = {"name": None, "topic_id": ID}, {"name": T}
DIR, OTHER_DIR, NO_DIR = "<first>", "<second>", "/nowhere"

CASES = [
    create("a topic, equally", new(), new()),
    create("a topic, with other counts", new(), new(partitions=3)),
    create("a topic, three times", new(), new(partitions=3), new()),
    create("a topic, the second with a replica that is none", new(), new(assignments=[(0, [9])])),
    create("a topic, beside another", new(), new(U + "x"), new(partitions=2)),
    create("a partition, equally", new(assignments=[(0, [1]), (0, [1])])),
    create("a partition, the last with more replicas", new(assignments=[(0, [1]), (0, [1, 2])])),
    create("a partition, the first with more replicas", new(assignments=[(0, [1, 2]), (0, [1])])),
    create("a partition of two", new(assignments=[(0, [1]), (1, [2]), (0, [3])])),
    create("a replica", new(assignments=[(0, [1, 1])])),
    create("a config, equally", new(configs=[(RETENTION, "5000"), (RETENTION, "5000")])),
    create("a config", new(configs=[(RETENTION, "5000"), (RETENTION, "6000")])),
    create("a config, the other way round", new(configs=[(RETENTION, "6000"), (RETENTION, "5000")])),
    create("a config, null last", new(configs=[(RETENTION, "5000"), (RETENTION, None)])),
    create("a config, null first", new(configs=[(RETENTION, None), (RETENTION, "5000")])),
    create("a config, an invalid one first", new(configs=[(RETENTION, "x"), (RETENTION, "5000")])),
    delete("a name", by_name, by_name),
    delete("an id", by_id, by_id),
    delete("a topic by name and by id", by_name, by_id),
    delete("a topic by id and by name", by_id, by_name),
    delete("a topic by name and id in one row", {"name": T, "topic_id": ID}),
    delete("a name three times", by_name, by_name, by_name),
    Repeated("DeleteTopics: a name in the older form", "DeleteTopics", 5, {"timeout_ms": 30_000, "topic_names": [T, T]}),
    grow("a topic, equally", (3, None), (3, None)),
    grow("a topic", (3, None), (4, None)),
    grow("a topic, the other way round", (4, None), (3, None)),
    grow("a topic, three times", (3, None), (4, None), (5, None)),
    grow("a topic, with replicas and without", (3, [[1, 2]]), (4, None)),
    grow("a replica", (3, [[1, 1]])),
    replace("a resource, equally", resource((RETENTION, "5000")), resource((RETENTION, "5000"))),
    replace("a resource", resource((RETENTION, "5000")), resource((RETENTION, "6000"))),
    replace("a key, equally", resource((RETENTION, "5000"), (RETENTION, "5000"))),
    replace("a key", resource((RETENTION, "5000"), (RETENTION, "6000"))),
    replace("a key, null last", resource((RETENTION, "5000"), (RETENTION, None))),
    replace("a broker, in two forms", resource(("log.cleaner.threads", "2"), name="1", kind=BROKER), resource(("log.cleaner.threads", "1"), name="01", kind=BROKER), look="broker"),
    replace("the default of brokers", resource(("log.cleaner.threads", "2"), name="", kind=BROKER), resource(("log.cleaner.threads", "1"), name="", kind=BROKER), look="broker"),
    alter("a resource, equally", resource((RETENTION, SET, "5000")), resource((RETENTION, SET, "5000"))),
    alter("a resource", resource((RETENTION, SET, "5000")), resource((RETENTION, SET, "6000"))),
    alter("a resource, of other keys", resource((RETENTION, SET, "5000")), resource((CLEANUP, SET, "compact"))),
    alter("a resource, three times", *[resource((RETENTION, SET, each)) for each in ("5000", "6000", "7000")]),
    alter("a key, equally", resource((RETENTION, SET, "5000"), (RETENTION, SET, "5000"))),
    alter("a key", resource((RETENTION, SET, "5000"), (RETENTION, SET, "6000"))),
    alter("a key, set and deleted", resource((RETENTION, SET, "5000"), (RETENTION, DELETE, None))),
    alter("a key, appended twice", resource((CLEANUP, APPEND, "compact"), (CLEANUP, APPEND, "compact"))),
    alter("a key, appended and subtracted", resource((CLEANUP, APPEND, "compact"), (CLEANUP, SUBTRACT, "delete"))),
    alter("a broker, in two forms", resource(("log.cleaner.threads", SET, "2"), name="1", kind=BROKER), resource(("log.cleaner.threads", SET, "1"), name="+1", kind=BROKER), look="broker"),
    alter("a key of a broker", resource(("log.cleaner.threads", SET, "2"), ("log.cleaner.threads", SET, "1"), name="1", kind=BROKER), look="broker"),
    alter("a logger", resource(("kafka.server.KafkaApis", SET, "ERROR"), ("kafka.server.KafkaApis", SET, "INFO"), name="1", kind=8), look="loggers"),
    alter("a group", resource(("consumer.session.timeout.ms", SET, "46000"), name="g{0}", kind=32), resource(("consumer.session.timeout.ms", SET, "47000"), name="g{0}", kind=32), look="nothing"),
    move("a partition, fewer last", moved((0, [1, 2]), (0, [1]))),
    move("a partition, fewer first", moved((0, [1]), (0, [1, 2]))),
    move("a partition, equally", moved((0, [1]), (0, [1]))),
    move("a partition, three times", moved((0, [1]), (0, [3]), (0, [1, 2, 3]))),
    move("a partition, null last", moved((0, [1]), (0, None))),
    move("a partition, null first", moved((0, None), (0, [1]))),
    move("a partition, null twice", moved((0, None), (0, None))),
    move("a partition, the last of no broker", moved((0, [1]), (0, [9]))),
    move("a partition, the first of no broker", moved((0, [9]), (0, [1]))),
    move("a topic, other partitions", moved((0, [1])), moved((1, [2]))),
    move("a topic, a partition, fewer last", moved((0, [1, 2, 3])), moved((0, [1]))),
    move("a topic, a partition, fewer first", moved((0, [1])), moved((0, [1, 2, 3]))),
    move("a topic, a partition, null last", moved((0, [1])), moved((0, None))),
    move("a topic, beside another", moved((0, [1])), moved((0, [3]), topic=U), moved((0, [1, 2, 3]))),
    move("a replica", moved((0, [1, 1]))),
    shorten("a partition, less last", shortened((0, 3), (0, 1))),
    shorten("a partition, more last", shortened((0, 1), (0, 3))),
    shorten("a partition, equally", shortened((0, 2), (0, 2))),
    shorten("a partition, all last", shortened((0, 1), (0, -1))),
    shorten("a partition, all first", shortened((0, -1), (0, 1))),
    shorten("a partition, too much last", shortened((0, 1), (0, 99))),
    shorten("a partition, too much first", shortened((0, 99), (0, 1))),
    shorten("a topic, other partitions", shortened((0, 1)), shortened((1, 2))),
    shorten("a topic, a partition, less last", shortened((0, 3)), shortened((0, 1))),
    shorten("a topic, a partition, more last", shortened((0, 1)), shortened((0, 3))),
    elect("a topic", (T, [0]), (T, [0, 1])),
    elect("a partition", (T, [0, 0])),
    directories("a topic and a partition, equally", (DIR, [(T, [0]), (T, [0])])),
    directories("a directory", (DIR, [(T, [0])]), (DIR, [(T, [0])])),
    directories("a partition, to two directories", (DIR, [(T, [0])]), (OTHER_DIR, [(T, [0])])),
    directories("a partition, to two directories the other way round", (OTHER_DIR, [(T, [0])]), (DIR, [(T, [0])])),
    directories("a partition, to no directory last", (OTHER_DIR, [(T, [0])]), (NO_DIR, [(T, [0])])),
    directories("a partition, to no directory first", (NO_DIR, [(T, [0])]), (OTHER_DIR, [(T, [0])])),
    Repeated("CreateAcls: an ACL", "CreateAcls", 3, {"creations": [acl(), acl()]}, "acls"),
    Repeated("CreateAcls: a pattern", "CreateAcls", 3, {"creations": [acl(), acl(principal="User:b")]}, "acls"),
    Repeated("DeleteAcls: a filter", "DeleteAcls", 3, {"filters": [acl_filter(), acl_filter()]}, "acls"),
    quotas("an entity", quota([("user", T)], ("consumer_byte_rate", 1000.0)), quota([("user", T)], ("consumer_byte_rate", 2000.0))),
    quotas("an entity, equally", quota([("user", T)], ("consumer_byte_rate", 1000.0)), quota([("user", T)], ("consumer_byte_rate", 1000.0))),
    quotas("an entity, other keys", quota([("user", T)], ("consumer_byte_rate", 1000.0)), quota([("user", T)], ("producer_byte_rate", 2000.0))),
    quotas("an entity, removed last", quota([("user", T)], ("consumer_byte_rate", 1000.0)), quota([("user", T)], ("consumer_byte_rate", None))),
    quotas("an entity, in another order", quota([("user", T), ("client-id", "c")], ("consumer_byte_rate", 1000.0)), quota([("client-id", "c"), ("user", T)], ("consumer_byte_rate", 2000.0))),
    quotas("a key", quota([("user", T)], ("consumer_byte_rate", 1000.0), ("consumer_byte_rate", 2000.0))),
    quotas("a key, removed first", quota([("user", T)], ("consumer_byte_rate", None), ("consumer_byte_rate", 2000.0))),
    quotas("a type of entity", quota([("user", T), ("user", U)], ("consumer_byte_rate", 1000.0))),
    scram("a user, put twice", [], [(T, 1, 4096), (T, 1, 8192)]),
    scram("a user, by two mechanisms", [], [(T, 1, 4096), (T, 2, 8192)]),
    scram("a user, put and deleted", [(T, 1)], [(T, 1, 4096)]),
    scram("a user, deleted twice", [(T, 1), (T, 1)], []),
    commit("a partition", (T, [(0, 1), (0, 2)])),
    commit("a partition, the other way round", (T, [(0, 2), (0, 1)])),
    commit("a topic, a partition", (T, [(0, 2)]), (T, [(0, 1)])),
    commit("a topic, other partitions", (T, [(0, 2)]), (T, [(1, 1)])),
    commit("a partition, an unknown one first", (T, [(9, 2), (0, 1), (9, 1)])),
    forget("a partition", (T, [0, 0])),
    forget("a topic", (T, [0]), (T, [1])),
    Repeated("DeleteGroups: a group", "DeleteGroups", 2, {"groups_names": ["g{0}", "g{0}"]}, "offsets"),
]  # fmt: skip
