"""`python -m benchmarks.reassignment`: how long it takes to move the replicas of 1,000 partitions,
beside a real Kafka.

Rule: every partition has one replica, which moves to the next node, round after round, with its
leader; so nothing is won by leaving out a part of the way. The partitions are empty. The systems
are up side by side and are measured in turns. It is done when the controller lists no reassignment
and Metadata of every node shows all partitions led where they are to be.
"""

import argparse
import statistics
from collections.abc import Sequence
from functools import partial
from time import perf_counter

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from minicontroller.protocol.registry import KAFKA

from . import messages
from .cluster import Cluster
from .turns import NODES, check_reassigned, creation, frame, in_turns, reassignment, running, wait_until

NAMES = ("minicontroller-zookeeper", "minicontroller-processes", "kafka")
TOPICS, PARTITIONS, ROUNDS = 10, 100, 5
TOPIC_NAMES = [f"moved-{number}" for number in range(TOPICS)]


def place(partition: int, turn: int) -> int:
    """Return the node of a partition's replica in this round."""
    return (partition + turn) % NODES + 1


LISTING = frame(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest())


def moves_nothing(answer: bytes) -> bool:
    _, response = KAFKA.decode_response(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, answer)
    assert isinstance(response, ListPartitionReassignmentsResponse)
    return not response.topics


def arrived(turn: int, answer: bytes) -> bool:
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
    request = reassignment(TOPIC_NAMES, PARTITIONS, lambda index: [place(index, turn)])
    question = messages.metadata(TOPIC_NAMES)
    begin = perf_counter()
    answer = cluster.at_controller.call(request)
    answered = perf_counter() - begin
    check_reassigned(answer, TOPICS * PARTITIONS)
    wait_until(lambda: moves_nothing(cluster.at_controller.call(LISTING)))
    listed = perf_counter() - begin
    return answered, listed + cluster.wait(question, partial(arrived, turn)).seconds


def measured(names: Sequence[str], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Return the seconds of each round by system."""
    with running(names) as clusters:
        for cluster in clusters.values():
            messages.check_created(
                cluster.at_controller.call(creation(TOPIC_NAMES, PARTITIONS, lambda index: [place(index, 0)]))
            )
            cluster.wait_led(messages.metadata(TOPIC_NAMES), TOPICS, PARTITIONS)
        return in_turns(clusters, rounds, moved)


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
