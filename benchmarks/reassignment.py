"""`python -m benchmarks.reassignment`: how long it takes to move the replicas of 1,000 partitions,
beside a real Kafka.

Rule: every partition has one replica, which moves to the next node, round after round, with its
leader; so nothing is won by leaving out a part of the way. The partitions are empty. The systems
are up side by side and are measured in turns. It is done when the controller lists no reassignment
and Metadata of every node shows all partitions led where they are to be.
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from time import perf_counter, sleep

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from minicontroller.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from minicontroller.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct

from . import messages
from .cluster import Cluster
from .driver import DriverError
from .peers import SYSTEMS
from .peers.base import CannotRunError, System

NAMES = ("minicontroller-zookeeper", "minicontroller-processes", "kafka")
TOPICS, PARTITIONS, ROUNDS = 10, 100, 5
NODES = 3
POLL_SECONDS = 0.01
PATIENCE_SECONDS = 300.0


def frame(key: ApiKey, version: int, request: WireStruct) -> bytes:
    return KAFKA.encode_request(RequestHeader(key, version, 1, "benchmarks"), request)


def topics() -> list[str]:
    return [f"moved-{number}" for number in range(TOPICS)]


def place(partition: int, turn: int) -> int:
    """Return the node of a partition's replica in this round."""
    return (partition + turn) % NODES + 1


def creation() -> bytes:
    return frame(
        ApiKey.CREATE_TOPICS,
        7,
        CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[
                        CreatableReplicaAssignment(partition_index=index, broker_ids=[place(index, 0)])
                        for index in range(PARTITIONS)
                    ],
                )
                for name in topics()
            ],
            timeout_ms=120_000,
        ),
    )


def moves(turn: int) -> bytes:
    rows = [ReassignablePartition(partition_index=index, replicas=[place(index, turn)]) for index in range(PARTITIONS)]
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=name, partitions=rows) for name in topics()]
    )
    return frame(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)


LISTING = frame(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest())


def check_begun(answer: bytes) -> None:
    _, response = KAFKA.decode_response(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, answer)
    assert isinstance(response, AlterPartitionReassignmentsResponse)
    codes = [row.error_code for topic in response.responses for row in topic.partitions]
    if response.error_code or len(codes) != TOPICS * PARTITIONS or any(codes):
        raise DriverError(f"the reassignment is refused: {response.error_code}, {set(codes)}")


def moves_nothing(answer: bytes) -> bool:
    _, response = KAFKA.decode_response(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, answer)
    assert isinstance(response, ListPartitionReassignmentsResponse)
    return not response.topics


def arrived(answer: bytes, turn: int) -> bool:
    found = messages.read_metadata(answer).topics
    return len(found) == TOPICS and all(
        len(topic.partitions) == PARTITIONS
        and all(
            row.leader_id == place(row.partition_index, turn) and list(row.replica_nodes) == [row.leader_id]
            for row in topic.partitions
        )
        for topic in found
    )


def moved(cluster: Cluster, turn: int) -> tuple[float, float]:
    """Move all partitions, and return the seconds to the answer, and until all is done."""
    request, question = moves(turn), messages.metadata(topics())
    begin = perf_counter()
    answer = cluster.at_controller.call(request)
    answered = perf_counter() - begin
    check_begun(answer)
    while not moves_nothing(cluster.at_controller.call(LISTING)):
        wait(begin)
    for node in cluster.nodes:
        while not arrived(cluster[node].call(question), turn):
            wait(begin)
    return answered, perf_counter() - begin


def wait(begin: float) -> None:
    if perf_counter() - begin > PATIENCE_SECONDS:
        raise DriverError(f"nothing is moved after {PATIENCE_SECONDS:.0f} s")
    sleep(POLL_SECONDS)


def measured(names: Sequence[str], rounds: int) -> Mapping[str, list[tuple[float, float]]]:
    """Return the seconds of each round by system. A first round is not counted."""
    systems: list[System] = []
    clusters: dict[str, Cluster] = {}
    times: dict[str, list[tuple[float, float]]] = {}
    try:
        for name in names:
            system = SYSTEMS[name]()
            if (missing := system.missing()) is not None:
                raise CannotRunError(missing)
            system.prepare()
            systems.append(system)
            system.start()
            clusters[name] = cluster = Cluster.discover(system)
            messages.check_created(cluster.at_controller.call(creation()))
            cluster.wait_led(messages.metadata(topics()), TOPICS, PARTITIONS)
        for turn in range(1, rounds + 2):
            for name, cluster in clusters.items():
                seconds = moved(cluster, turn)
                if turn > 1:
                    times.setdefault(name, []).append(seconds)
    finally:
        for cluster in clusters.values():
            cluster.close()
        for system in systems:
            system.close()
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", action="append", choices=NAMES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    times = measured(asked.systems or NAMES, asked.rounds)
    for name, rounds in times.items():
        answered, done = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"{name}: {TOPICS * PARTITIONS} partitions, answered after {answered:.3f} s, moved after {done:.3f} s")


if __name__ == "__main__":
    main()
