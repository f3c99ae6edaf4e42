"""Requests of users with and without ACLs that move replicas, elect leaders, delete records, see
offsets and log directories, remove members of groups, abort transactions, and change configs of
client metrics. Nothing that is asked changes anything in any state of the ACLs.
"""

from typing import Any

from tests.conformance.case import Body, Case, creation, each_version, new_topic
from tests.conformance.cases.acl_requests import (
    ADMIN,
    ALICE,
    ALTER,
    CLUSTER,
    CLUSTER_ACTION,
    DELETE,
    DESCRIBE,
    GROUPS,
    READ,
    THE_CLUSTER,
    WRITE,
    States,
    acl,
    by,
    in_states,
)
from tests.conformance.cases.leaving import marker
from tests.conformance.cases.quotas import entry

TOPIC, HIDDEN, MISSING, GROUP = "smv-t", "smv-u", "smv-missing", "sgr-g"
NODE_1: dict[str, Any] = {"node_1": True}


def setup() -> list[Case]:
    topics = [new_topic(TOPIC, placed={0: [1], 1: [2]}), new_topic(HIDDEN, placed={0: [1]})]
    return [
        Case("setup of moves", "CreateTopics", 7, creation(*topics)),
        Case("moves led", "Metadata", 12, {"topics": [{"name": TOPIC}, {"name": HIDDEN}]}, once_led=(TOPIC, HIDDEN)),
        Case("here", "DescribeProducers", 0, {"topics": [{"name": name, "partition_indexes": [0]} for name in (TOPIC, HIDDEN)]}, settles=True, **NODE_1),
    ]  # fmt: skip


def rows(field: str, **of_partition: int) -> list[dict[str, Any]]:
    return [{"name": name, field: [{"partition_index": 0, **of_partition}]} for name in (TOPIC, MISSING, HIDDEN)]


def asked(state: str, *, all_versions: bool = False) -> list[Case]:
    """Return the questions of a user that are asked in each state of the ACLs."""
    moves = [
        {
            "name": TOPIC,
            "partitions": [{"partition_index": 0, "replicas": None}, {"partition_index": 7, "replicas": [1]}],
        },
        {"name": MISSING, "partitions": [{"partition_index": 0, "replicas": [1]}]},
    ]
    elections = [{"topic": name, "partitions": [0]} for name in (TOPIC, MISSING)]
    quotas = [entry((("user", None),), {key: 1.0}) for key in ("producer_byte_rate", "consumer_byte_rate")]
    metrics: Body = {"resource_type": 16, "resource_name": TOPIC, "configs": []}
    topic: Body = {**metrics, "resource_type": 2}
    configured = {"alone": [metrics], "first": [metrics, topic], "last": [topic, metrics]}
    twice = [{"topic": TOPIC, "partitions": some} for some in ([1, 3], [], [0, 3])]
    directory = {"path": "/nowhere", "topics": [{"name": TOPIC, "partitions": [0, 1]}]}
    questions: list[tuple[str, str, int, dict[str, Any], dict[str, Any]]] = [
        ("alter reassignments", "AlterPartitionReassignments", 0, {"topics": moves}, {}),
        ("elect", "ElectLeaders", 0, {"topic_partitions": elections}, {}),
        ("elect twice", "ElectLeaders", 0, {"topic_partitions": twice}, {}),
        ("elect of no type", "ElectLeaders", 1, {"topic_partitions": twice, "election_type": 9}, {}),
        ("elect all", "ElectLeaders", 0, {"topic_partitions": None}, {}),
        ("elect unclean", "ElectLeaders", 1, {"topic_partitions": elections, "election_type": 1}, {}),
        ("delete records", "DeleteRecords", 0, {"topics": rows("partitions", offset=0)}, NODE_1),
        ("offsets", "ListOffsets", 1, {"replica_id": -1, "topics": rows("partitions", timestamp=-1)}, NODE_1),
        ("log dirs", "DescribeLogDirs", 0, {"topics": [{"topic": TOPIC, "partitions": [0, 1]}]}, NODE_1),
        ("move logs", "AlterReplicaLogDirs", 0, {"dirs": [directory]}, NODE_1),
        ("leave", "LeaveGroup", 3, {"group_id": GROUP, "members": [{"member_id": "m"}]}, NODE_1),
        *(
            (f"metrics {name}", "IncrementalAlterConfigs", 0, {"resources": some, "validate_only": True}, {})
            for name, some in configured.items()
        ),
        ("quotas of one twice", "AlterClientQuotas", 0, {"entries": quotas, "validate_only": True}, {}),
        ("metrics replaced", "AlterConfigs", 0, {"resources": configured["alone"], "validate_only": True}, {}),
        ("markers", "WriteTxnMarkers", 0, {"markers": [marker(1, (MISSING, [0, 1]))]}, NODE_1),
    ]
    found = []
    for name, api, since, body, more in questions:
        cases = each_version(f"{state}, {name}", api, body, since=since, **more)
        found += cases if all_versions else cases[-1:]
    return found


STATES: States = [
    ("moves, topic described", [acl(DESCRIBE, name=TOPIC)]),
    ("moves, topic deleted", [acl(DELETE, name=TOPIC)]),
    ("moves, topic altered", [acl(ALTER, name=TOPIC), acl(WRITE, name=HIDDEN)]),
    ("moves, cluster described", [acl(DESCRIBE, CLUSTER, THE_CLUSTER)]),
    ("moves, cluster altered", [acl(ALTER, CLUSTER, THE_CLUSTER)]),
    ("moves, cluster action", [acl(CLUSTER_ACTION, CLUSTER, THE_CLUSTER)]),
    ("moves, group read", [acl(READ, GROUPS, GROUP)]),
]


CASES = [
    *by(ADMIN, setup()),
    *by(ALICE, asked("moves, no right", all_versions=True)),
    *by(ADMIN, asked("moves, super user", all_versions=True)),
    *in_states(STATES, asked),
]
