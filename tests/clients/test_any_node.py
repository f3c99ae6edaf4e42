"""Writes sent to every node, the controller or not (K4-5): what clients that do not route by
themselves do, in every version.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.cluster import Cluster, controller_id, unlike_kafka, until_everywhere
from tests.support.waiting import until
from tests.support.wire import Wire

pytestmark = unlike_kafka("a Kafka broker in ZooKeeper mode forwards nothing")

TOPIC, BROKER, SET = 2, 4, 0
WAIT_MS = 10_000


@pytest.fixture(params=[1, 2, 3], ids=lambda node: f"node-{node}")
def wire(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Wire]:
    """A connection to each node in turn: two of them are not the controller."""
    with Wire(cluster.addresses[request.param]) as connection:
        yield connection


def new(topic: str, partitions: int = 2, replicas: int = 2) -> dict[str, Any]:
    return {
        "name": topic,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": [],
        "configs": [],
    }


def create(wire: Wire, *topics: dict[str, Any], version: int = 7, timeout_ms: int = WAIT_MS) -> dict[str, int]:
    answer = wire.ask("CreateTopics", version, {"topics": list(topics), "timeout_ms": timeout_ms})
    return codes(answer["topics"])


def codes(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {row["name"]: row["error_code"] for row in rows}


def of_topic(topic: str, value: str, **more: Any) -> dict[str, Any]:
    config = {"name": "retention.ms", "value": value, **more}
    return {"resources": [{"resource_type": TOPIC, "resource_name": topic, "configs": [config]}]}


def retention(wire: Wire, topic: str) -> str:
    resource = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": ["retention.ms"]}
    (result,) = wire.ask("DescribeConfigs", 1, {"resources": [resource]})["results"]
    return str(result["configs"][0]["value"]) if result["configs"] else ""


def test_the_nodes_agree_on_the_controller(cluster: Cluster, wire: Wire) -> None:
    """Whatever node is asked, Metadata and DescribeCluster name the same controller, one of the
    nodes (K4-X1a, K4-4c).
    """
    assert wire.ask("Metadata", 1, {"topics": []})["controller_id"] == controller_id(cluster)
    assert wire.ask("DescribeCluster", 1, {})["controller_id"] == controller_id(cluster)


@pytest.mark.parametrize("version", range(8))
def test_creates(wire: Wire, topic: str, everywhere: Callable[..., None], version: int) -> None:
    """Every version of CreateTopics makes the topic, through every node, over the wire alone
    (K590-3b, K4-1, K4-4a).
    """
    assert create(wire, new(topic), version=version) == {topic: 0}
    everywhere(topic, partitions=2)


@pytest.mark.parametrize("version", range(7))
def test_deletes(wire: Wire, topic: str, everywhere: Callable[..., None], version: int) -> None:
    """Every version of DeleteTopics deletes it (K590-1, K4-4a)."""
    create(wire, new(topic))
    wish: dict[str, Any] = {"topics": [{"name": topic}]} if version == 6 else {"topic_names": [topic]}
    answer = wire.ask("DeleteTopics", version, {**wish, "timeout_ms": WAIT_MS})
    assert codes(answer["responses"]) == {topic: 0}
    everywhere(topic, partitions=0)


@pytest.mark.parametrize("version", range(3))
def test_deletes_records(
    cluster: Cluster, wire: Wire, topic: str, everywhere: Callable[..., None], version: int
) -> None:
    """Every version of DeleteRecords is decided by the controller for the leader of a partition;
    another node names itself no leader.
    """
    create(wire, new(topic, partitions=3))
    everywhere(topic)
    rows = [{"partition_index": index, "offset": -1} for index in range(3)]
    asked = {"topics": [{"name": topic, "partitions": rows}], "timeout_ms": WAIT_MS}
    (metadata,) = wire.ask("Metadata", 1, {"topics": [{"name": topic}]})["topics"]
    leaders = {row["partition_index"]: row["leader_id"] for row in metadata["partitions"]}
    for node, address in cluster.addresses.items():
        with Wire(address) as leader:
            (answer,) = leader.ask("DeleteRecords", version, asked)["topics"]
        codes = {row["partition_index"]: row["error_code"] for row in answer["partitions"]}
        assert codes == {index: 0 if leads == node else 6 for index, leads in leaders.items()}


@pytest.mark.parametrize("version", range(3))
def test_moves_between_directories(
    cluster: Cluster, wire: Wire, topic: str, everywhere: Callable[..., None], version: int
) -> None:
    """Every version of AlterReplicaLogDirs is decided by the controller for the node that is asked,
    which remembers the directory of a replica that it does not have (REPLICA_NOT_AVAILABLE).
    """
    create(wire, new(topic, partitions=3))
    everywhere(topic, partitions=3)
    (metadata,) = wire.ask("Metadata", 1, {"topics": [{"name": topic}]})["topics"]
    replicas = {row["partition_index"]: row["replica_nodes"] for row in metadata["partitions"]}
    for node, address in cluster.addresses.items():
        with Wire(address) as asked:
            path = asked.ask("DescribeLogDirs", 4, {"topics": []})["results"][0]["log_dir"]
            dirs = [{"path": path, "topics": [{"name": topic, "partitions": [0, 1, 2]}]}]
            (answer,) = asked.ask("AlterReplicaLogDirs", version, {"dirs": dirs})["results"]
        codes = {row["partition_index"]: row["error_code"] for row in answer["partitions"]}
        assert codes == {index: 0 if node in row else 9 for index, row in replicas.items()}


@pytest.mark.parametrize("version", range(4))
def test_grows(wire: Wire, topic: str, everywhere: Callable[..., None], version: int) -> None:
    """Every version of CreatePartitions grows it (K590-1, K4-4a)."""
    create(wire, new(topic))
    everywhere(topic)
    wish = {"topics": [{"name": topic, "count": 5, "assignments": None}], "timeout_ms": WAIT_MS}
    assert codes(wire.ask("CreatePartitions", version, wish)["results"]) == {topic: 0}
    everywhere(topic, partitions=5)


@pytest.mark.parametrize("version", range(3))
def test_replaces_configs(wire: Wire, topic: str, everywhere: Callable[..., None], version: int) -> None:
    """Every version of AlterConfigs changes them (K590-1)."""
    create(wire, new(topic))
    everywhere(topic)
    (row,) = wire.ask("AlterConfigs", version, of_topic(topic, "4321"))["responses"]
    assert row["error_code"] == 0
    until(lambda: retention(wire, topic), right=lambda value: value == "4321")


@pytest.mark.parametrize("version", range(2))
def test_changes_configs(wire: Wire, topic: str, everywhere: Callable[..., None], version: int) -> None:
    """Every version of IncrementalAlterConfigs changes them (K590-1)."""
    create(wire, new(topic))
    everywhere(topic)
    wish = of_topic(topic, "4321", config_operation=SET)
    (row,) = wire.ask("IncrementalAlterConfigs", version, wish)["responses"]
    assert row["error_code"] == 0
    until(lambda: retention(wire, topic), right=lambda value: value == "4321")


def test_lists_no_reassignments(wire: Wire) -> None:
    """ListPartitionReassignments is answered through every node, and nothing is being moved
    (K4-4b).
    """
    answer = wire.ask("ListPartitionReassignments", 0, {"topics": None})
    assert answer == {"throttle_time_ms": 0, "error_code": 0, "error_message": "", "topics": []}


@pytest.mark.parametrize("version", range(3))
def test_elects_leaders(wire: Wire, topic: str, everywhere: Callable[..., None], version: int) -> None:
    """Every version of ElectLeaders is answered through every node: no election is needed, and a
    partition does not exist (K590-1).
    """
    create(wire, new(topic))
    everywhere(topic)
    wish = [{"topic": topic, "partitions": [0, 9]}]
    (row,) = wire.ask("ElectLeaders", version, {"topic_partitions": wish})["replica_election_results"]
    assert [each["error_code"] for each in row["partition_result"]] == [84, 3]


def test_moves_replicas(wire: Wire, topic: str, everywhere: Callable[..., None]) -> None:
    """AlterPartitionReassignments works through every node, which shows the result soon."""
    placed = [{"partition_index": 0, "broker_ids": [1, 2]}]
    create(wire, {**new(topic, -1, -1), "assignments": placed})
    everywhere(topic)
    move = {"name": topic, "partitions": [{"partition_index": 0, "replicas": [2, 3]}]}
    answer = wire.ask("AlterPartitionReassignments", 0, {"timeout_ms": WAIT_MS, "topics": [move]})
    assert answer["responses"][0]["partitions"] == [{"partition_index": 0, "error_code": 0, "error_message": None}]
    body = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
    until(
        lambda: [
            (each["replica_nodes"], sorted(each["isr_nodes"]))
            for each in wire.ask("Metadata", 12, body)["topics"][0]["partitions"]
        ],
        right=lambda found: found == [([2, 3], [2, 3])],
    )
    until(lambda: wire.ask("ListPartitionReassignments", 0, {"topics": None})["topics"] == [])


def test_refuses_with_the_controllers_words(wire: Wire, topic: str) -> None:
    """Codes and texts come through unchanged, row by row, in the order of the request (K4-3)."""
    wish = [new("bad name!"), new(topic), new(f"{topic}-many", 1, 9), new("__cluster_metadata")]
    rows = wire.ask("CreateTopics", 7, {"topics": wish, "timeout_ms": WAIT_MS})["topics"]
    assert [row["error_code"] for row in rows] == [17, 0, 38, 42]
    assert "bad name!" in rows[0]["error_message"]
    assert "9" in rows[2]["error_message"]


def test_a_topic_once_made_is_refused_through_every_node(cluster: Cluster, topic: str) -> None:
    """Nodes do not differ in what exists: the controller judges (K4-4a)."""
    for number, address in cluster.addresses.items():
        with Wire(address) as wire:
            assert create(wire, new(topic)) == {topic: 0 if number == min(cluster.addresses) else 36}


def test_only_triggers_without_time(wire: Wire, topic: str, everywhere: Callable[..., None]) -> None:
    """A timeout of 0 is answered with REQUEST_TIMED_OUT, and the topic is made all the same
    (K4-C6).
    """
    assert create(wire, new(topic), timeout_ms=0) == {topic: 7}
    everywhere(topic)


def test_changes_another_nodes_config_only_at_that_node(cluster: Cluster) -> None:
    """Configs of a node are its own affair: another node refuses, as Kafka does, and does not
    forward.
    """
    config = {"name": "log.retention.ms", "value": "1", "config_operation": SET}
    wish = {"resources": [{"resource_type": BROKER, "resource_name": "1", "configs": [config]}], "validate_only": True}
    for number, address in cluster.addresses.items():
        with Wire(address) as wire:
            (row,) = wire.ask("IncrementalAlterConfigs", 1, wish)["responses"]
        assert row["error_code"] == (0 if number == 1 else 42)


def test_makes_a_topic_that_is_asked_for(wire: Wire, topic: str, everywhere: Callable[..., None]) -> None:
    """Automatic creation goes by way of the controller: LEADER_NOT_AVAILABLE first, then it is
    there.
    """
    (row,) = wire.ask("Metadata", 12, {"topics": [{"name": topic}]})["topics"]
    assert row["error_code"] == 5
    everywhere(topic, partitions=1)


def test_finds_the_same_coordinator(cluster: Cluster) -> None:
    """Every node names the same coordinator of a group, one of the nodes (K590-7)."""
    found = set()
    for address in cluster.addresses.values():
        with Wire(address) as wire:
            answer = until(
                lambda wire=wire: wire.ask("FindCoordinator", 1, {"key": "a group"}),  # type: ignore[misc]
                right=lambda seen: seen["error_code"] == 0,
            )
        found.add(answer["node_id"])
    assert len(found) == 1
    assert found < set(cluster.addresses)


def test_pipelined_writes_are_answered_in_order(wire: Wire, topic: str, cluster: Cluster) -> None:
    """Requests sent without waiting are answered in their order, a slow one before a fast one
    behind it.
    """
    wishes = [
        wire.frame("CreateTopics", 7, {"topics": [new(f"{topic}-{n}", 1, 3)], "timeout_ms": WAIT_MS}) for n in range(5)
    ]
    wire.send(b"".join([*wishes, wire.frame("ApiVersions", 0, {}), wire.frame("Metadata", 1, {"topics": []})]))
    correlation_ids = [int.from_bytes(wire.receive()[:4], "big") for _ in range(7)]
    assert correlation_ids == sorted(correlation_ids)
    until_everywhere(cluster, f"{topic}-4")
