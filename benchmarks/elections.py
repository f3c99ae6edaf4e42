"""`python -m benchmarks.elections`: how long it takes to elect the preferred leaders of all
partitions, beside a real Kafka.

Rule: before each round the order of the two replicas of every partition is turned round, which
moves no data and no leader, so afterwards no partition is led by its preferred leader. One
ElectLeaders request then names all partitions by null. The systems are up side by side and are
measured in turns. It is done when Metadata of every node shows the elected leaders.
"""

import argparse
import statistics
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter, sleep

from minicontroller.protocol.api_keys import ApiKey
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
from minicontroller.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from minicontroller.protocol.registry import KAFKA

from . import messages
from .cluster import Cluster
from .driver import DriverError
from .peers import SYSTEMS
from .peers.base import CannotRunError, System
from .reassignment import NAMES, NODES, frame, wait

TOPICS, PARTITIONS, ROUNDS = 10, 100, 5
TOPICS_A_REQUEST = 5
"""A real Kafka must answer requests before the driver gives up."""
QUIET_SECONDS = 10.0
"""Five seconds after its election a controller moves leaders back by itself, and then not for five
minutes; rounds begin after that.
"""


def replicas(partition: int, turn: int) -> list[int]:
    """Return the replicas of a partition in this round, whose first one is to lead."""
    pair = [partition % NODES + 1, (partition + 1) % NODES + 1]
    return pair if turn % 2 == 0 else pair[::-1]


def creation(names: Sequence[str]) -> bytes:
    rows = [CreatableReplicaAssignment(partition_index=index, broker_ids=replicas(index, 0)) for index in indexes()]
    topics = [CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=rows) for name in names]
    return frame(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics, timeout_ms=120_000))


def turning(names: Sequence[str], turn: int) -> bytes:
    rows = [ReassignablePartition(partition_index=index, replicas=replicas(index, turn)) for index in indexes()]
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=name, partitions=rows) for name in names], timeout_ms=120_000
    )
    return frame(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)


ELECTION = frame(
    ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=120_000)
)


def indexes() -> range:
    return range(PARTITIONS)


def parts(topics: int) -> Iterator[Sequence[str]]:
    """Return the names of the topics, in groups that one request names."""
    names = [f"elected-{number}" for number in range(topics)]
    return (names[start : start + TOPICS_A_REQUEST] for start in range(0, topics, TOPICS_A_REQUEST))


def check_turned(answer: bytes) -> None:
    _, response = KAFKA.decode_response(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, answer)
    assert isinstance(response, AlterPartitionReassignmentsResponse)
    codes = {row.error_code for topic in response.responses for row in topic.partitions}
    if response.error_code or codes != {0}:
        raise DriverError(f"the reassignment is refused: {response.error_code}, {codes}")


def check_elected(answer: bytes, topics: int) -> None:
    _, response = KAFKA.decode_response(ApiKey.ELECT_LEADERS, 2, answer)
    assert isinstance(response, ElectLeadersResponse)
    codes = [row.error_code for topic in response.replica_election_results for row in topic.partition_result]
    if response.error_code or len(codes) != topics * PARTITIONS or any(codes):
        raise DriverError(f"not all are elected: {response.error_code}, {len(codes)} partitions, {set(codes)}")


def shows(answer: bytes, topics: int, turn: int, *, elected: bool) -> bool:
    """Return whether Metadata shows the replicas of this round, led by the first or by the last."""
    found = messages.read_metadata(answer).topics
    return len(found) == topics and all(
        len(topic.partitions) == PARTITIONS
        and all(
            list(row.replica_nodes) == (wanted := replicas(row.partition_index, turn))
            and row.leader_id == wanted[0 if elected else -1]
            for row in topic.partitions
        )
        for topic in found
    )


def elected(cluster: Cluster, topics: int, turn: int) -> tuple[float, float]:
    """Elect all leaders, and return the seconds to the answer, and until every node shows them."""
    question = messages.metadata(None)
    begin = perf_counter()
    for names in parts(topics):
        check_turned(cluster.at_controller.call(turning(names, turn)))
    for node in cluster.nodes:
        while not shows(cluster[node].call(question), topics, turn, elected=False):
            wait(begin)
    begin = perf_counter()
    answer = cluster.at_controller.call(ELECTION)
    answered = perf_counter() - begin
    check_elected(answer, topics)
    for node in cluster.nodes:
        while not shows(cluster[node].call(question), topics, turn, elected=True):
            wait(begin)
    return answered, perf_counter() - begin


def measured(names: Sequence[str], topics: int, rounds: int) -> Mapping[str, list[tuple[float, float]]]:
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
            for part in parts(topics):
                messages.check_created(cluster.at_controller.call(creation(part)))
            cluster.wait_led(messages.metadata(None), topics, PARTITIONS)
        sleep(QUIET_SECONDS)
        for turn in range(1, rounds + 2):
            for name, cluster in clusters.items():
                seconds = elected(cluster, topics, turn)
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
    parser.add_argument("--topics", type=int, default=TOPICS, help="topics of 100 partitions")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    times = measured(asked.systems or NAMES, asked.topics, asked.rounds)
    for name, rounds in times.items():
        answered, done = (statistics.median(column) for column in zip(*rounds, strict=True))
        leaders = asked.topics * PARTITIONS
        print(f"{name}: {leaders} leaders, answered after {answered:.3f} s, shown after {done:.3f} s")


if __name__ == "__main__":
    main()
