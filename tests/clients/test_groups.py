"""The offsets of groups and the ids of producers, asked for over the wire at every node: whichever
node coordinates a group, the controller keeps its offsets.
"""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.support.cluster import Cluster, other_ids, until_everywhere
from tests.support.waiting import PATIENCE_SECONDS, at_last
from tests.support.wire import Body, Wire

pytestmark = pytest.mark.usefixtures("coordinated")


@pytest.fixture
def topic(cluster: Cluster) -> Iterator[str]:
    """A topic of two partitions, known to every node."""
    name = f"groups-{uuid4()}"
    new: dict[str, Any] = {"name": name, "num_partitions": 2, "replication_factor": 1}
    with Wire(cluster.addresses[1]) as wire:
        wire.ask("CreateTopics", 4, {"topics": [{**new, "assignments": [], "configs": []}], "timeout_ms": 10_000})
        until_everywhere(cluster, name)
        yield name
        wire.ask("DeleteTopics", 3, {"topic_names": [name], "timeout_ms": 10_000})


@pytest.fixture(params=["controller", "another node"])
def group(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[tuple[str, Wire]]:
    """A group that the controller coordinates, or another node, and a connection to this one."""
    others = other_ids(cluster)
    is_other = request.param == "another node"
    with Wire(cluster.addresses[others[0]]) as wire:
        names = (f"g-{uuid4()}" for _ in range(1000))
        name, found = next((each, node) for each in names if ((node := coordinator(wire, each)) in others) is is_other)
    with Wire(cluster.addresses[found]) as connection:
        yield name, connection
        connection.ask("DeleteGroups", 1, {"groups_names": [name]})


def coordinator(wire: Wire, group: str) -> int:
    def ask() -> Body:
        found: Body = wire.ask("FindCoordinator", 4, {"coordinator_keys": [group], "key_type": 0})["coordinators"][0]
        return found

    return int(at_last(ask, right=lambda found: found["error_code"] == 0, within=PATIENCE_SECONDS)["node_id"])


@pytest.mark.parametrize("version", range(10))
def test_offsets_are_kept_whoever_coordinates(
    cluster: Cluster, topic: str, group: tuple[str, Wire], version: int
) -> None:
    """Every version of OffsetCommit sets them, every later read sees them at once, and no other
    node answers for the group.
    """
    name, wire = group
    partition = {"partition_index": 1, "committed_offset": 42, "committed_metadata": "note"}
    wanted = {"group_id": name, "topics": [{"name": topic, "partitions": [partition]}]}
    answer = wire.ask("OffsetCommit", version, wanted)
    assert answer["topics"] == [{"name": topic, "partitions": [{"partition_index": 1, "error_code": 0}]}]
    reading = min(version, 1)  # Kafka keeps what version 0 sets elsewhere
    asked = {"group_id": name, "topics": [{"name": topic, "partition_indexes": [1]}]}
    (row,) = wire.ask("OffsetFetch", reading, asked)["topics"][0]["partitions"]
    assert (row["committed_offset"], row["error_code"]) == (42, 0)
    if version == 0:
        return
    for address in cluster.addresses.values():
        with Wire(address) as other:
            (state,) = other.ask("DescribeGroups", 5, {"groups": [name]})["groups"]
            is_its_own = coordinator(other, name) == coordinator(wire, name) and state["error_code"] == 0
            assert is_its_own or state["error_code"] == 16
    deletion = {"group_id": name, "topics": [{"name": topic, "partitions": [{"partition_index": 1}]}]}
    removed = wire.ask("OffsetDelete", 0, deletion)
    assert (removed["error_code"], removed["topics"][0]["partitions"][0]["error_code"]) == (0, 0)
    (state,) = wire.ask("DescribeGroups", 5, {"groups": [name]})["groups"]
    assert state["group_state"] == "Dead"


def test_each_producer_has_an_id_of_its_own(cluster: Cluster) -> None:
    """Whichever node it asks, in every version."""
    found = []
    for address in cluster.addresses.values():
        with Wire(address) as wire:
            for version in range(6):
                body = {"transactional_id": None, "transaction_timeout_ms": 1000}
                answer = at_last(
                    lambda wire=wire, version=version, body=body: wire.ask("InitProducerId", version, body),  # type: ignore[misc]
                    right=lambda answer: answer["error_code"] == 0,
                    within=PATIENCE_SECONDS,
                )
                found.append(answer["producer_id"])
    assert len(set(found)) == len(found) and min(found) >= 0
