"""`python -m benchmarks.elections`: how long it takes to elect the preferred leaders of all
partitions, beside a real Kafka.

Rule: all partitions prefer one node. Before each round that node is killed and started again, so
afterwards all partitions are led by another one. One ElectLeaders request then names all partitions
by null. The systems are up side by side and are measured in turns. It is done when Metadata of
every node shows the elected leaders.
"""

import argparse
import signal
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from time import perf_counter

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from minicontroller.protocol.registry import KAFKA

from . import messages
from .cluster import Cluster
from .driver import DriverError
from .turns import NODES, TIMEOUT_MS, creation, frame, in_turns, running, say, wait_until

NAMES = ("minicontroller-processes", "kafka")
TOPICS, PARTITIONS, ROUNDS = 100, 100, 2
TOPICS_A_REQUEST = 5
"""A real Kafka must answer requests before the driver gives up."""
STOP_SECONDS = 30.0
SETTINGS = {"auto.leader.rebalance.enable": "false"}
"""No controller moves leaders back by itself."""

ELECTION = frame(
    ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=TIMEOUT_MS)
)

EVERYTHING = messages.metadata(None)


def preferred(cluster: Cluster) -> int:
    """Return the node that all partitions prefer, which is not the controller."""
    return cluster.controller % NODES + 1


def replicas(cluster: Cluster) -> list[int]:
    return [preferred(cluster), preferred(cluster) % NODES + 1]


def parts(topics: int) -> Iterator[Sequence[str]]:
    """Return the names of the topics, in groups that one request names."""
    names = [f"elected-{number}" for number in range(topics)]
    return (names[start : start + TOPICS_A_REQUEST] for start in range(0, topics, TOPICS_A_REQUEST))


def check_elected(answer: bytes, topics: int) -> None:
    _, response = KAFKA.decode_response(ApiKey.ELECT_LEADERS, 2, answer)
    assert isinstance(response, ElectLeadersResponse)
    codes = [row.error_code for topic in response.replica_election_results for row in topic.partition_result]
    if response.error_code or len(codes) != topics * PARTITIONS or any(codes):
        raise DriverError(f"not all are elected: {response.error_code}, {len(codes)} partitions, {set(codes)}")


def shows(topics: int, leader: int, isr: Sequence[int], answer: bytes) -> bool:
    """Return whether Metadata has this leader and this ISR everywhere."""
    found = messages.read_metadata(answer).topics
    return len(found) == topics and all(
        len(topic.partitions) == PARTITIONS
        and all(row.leader_id == leader and sorted(row.isr_nodes) == sorted(isr) for row in topic.partitions)
        for topic in found
    )


def bounce(cluster: Cluster, topics: int) -> None:
    """Kill the preferred node, and start it again, so that all partitions are led by the other."""
    first, second = pair = replicas(cluster)
    process = cluster.system.nodes[first]
    process.send(signal.SIGKILL)
    process.wait(STOP_SECONDS)
    cluster.forget(first)
    say(f"{cluster.system.name}: node {first} is gone")
    wait_until(lambda: shows(topics, second, [second], cluster.at_controller.call(EVERYTHING)), pause=1)
    say(f"{cluster.system.name}: all are led by node {second}")
    cluster.system.restart_node(first)
    wait_until(lambda: answers(cluster, first))
    wait_until(lambda: shows(topics, second, pair, cluster.at_controller.call(EVERYTHING)), pause=1)
    cluster.wait(EVERYTHING, partial(shows, topics, second, pair))
    say(f"{cluster.system.name}: node {first} is back and in sync")


def answers(cluster: Cluster, node: int) -> bool:
    try:
        cluster[node].call(messages.metadata([]))
    except (OSError, DriverError):
        cluster.forget(node)
        return False
    return True


def elected(topics: int, cluster: Cluster, _turn: int) -> tuple[float, float]:
    """Elect all leaders, and return the seconds to the answer, and until every node shows them."""
    bounce(cluster, topics)
    begin = perf_counter()
    answer = cluster.at_controller.call(ELECTION)
    answered = perf_counter() - begin
    shown = cluster.wait(EVERYTHING, partial(shows, topics, preferred(cluster), replicas(cluster)))
    check_elected(answer, topics)
    return answered, answered + shown.seconds


def create(cluster: Cluster, topics: int) -> None:
    say(f"{cluster.system.name}: topics are created")
    pair = replicas(cluster)
    for names in parts(topics):
        messages.check_created(cluster.at_controller.call(creation(names, PARTITIONS, lambda _: pair)))
    cluster.wait(EVERYTHING, partial(shows, topics, pair[0], pair))


def measured(names: Sequence[str], topics: int, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Return the seconds of each round by system."""
    with running(names, SETTINGS) as clusters:
        for cluster in clusters.values():
            create(cluster, topics)
        return in_turns(clusters, rounds, partial(elected, topics))


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
