"""`python -m benchmarks.elections`: how long it takes to elect the preferred leaders of all
partitions, beside a real Kafka.

Rule: before each round the order of the two replicas of every partition is turned round, which
moves no data and no leader, so afterwards no partition is led by its preferred leader. One
ElectLeaders request then names all partitions by null. The systems are up side by side and are
measured in turns. It is done when Metadata of every node shows the elected leaders.
"""

import argparse
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from time import perf_counter, sleep

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from minicontroller.protocol.registry import KAFKA

from . import messages
from .cluster import Cluster
from .driver import DriverError
from .reassignment import NAMES
from .turns import NODES, TIMEOUT_MS, check_reassigned, creation, frame, in_turns, reassignment, running, wait_until

TOPICS, PARTITIONS, ROUNDS = 10, 100, 5
TOPICS_A_REQUEST = 5
"""A real Kafka must answer requests before the driver gives up."""
QUIET_SECONDS = 10.0
"""Five seconds after its election a controller moves leaders back by itself, and then not for five
minutes; rounds begin after that.
"""


def replicas(turn: int, partition: int) -> list[int]:
    """Return the replicas of a partition in this round, whose first one is to lead."""
    pair = [partition % NODES + 1, (partition + 1) % NODES + 1]
    return pair if turn % 2 == 0 else pair[::-1]


ELECTION = frame(
    ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=TIMEOUT_MS)
)


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


def shows(answer: bytes, topics: int, turn: int, *, elected: bool) -> bool:
    """Return whether Metadata shows the replicas of this round, led by the first or by the last."""
    found = messages.read_metadata(answer).topics
    return len(found) == topics and all(
        len(topic.partitions) == PARTITIONS
        and all(
            list(row.replica_nodes) == (wanted := replicas(turn, row.partition_index))
            and row.leader_id == wanted[0 if elected else -1]
            for row in topic.partitions
        )
        for topic in found
    )


def elected(topics: int, cluster: Cluster, turn: int) -> tuple[float, float]:
    """Elect all leaders, and return the seconds to the answer, and until every node shows them."""
    for names in parts(topics):
        request = reassignment(names, PARTITIONS, partial(replicas, turn))
        check_reassigned(cluster.at_controller.call(request), len(names) * PARTITIONS)
    wait_shown(cluster, topics, turn, elected=False)
    begin = perf_counter()
    answer = cluster.at_controller.call(ELECTION)
    answered = perf_counter() - begin
    check_elected(answer, topics)
    wait_shown(cluster, topics, turn, elected=True)
    return answered, perf_counter() - begin


def wait_shown(cluster: Cluster, topics: int, turn: int, *, elected: bool) -> None:
    """Wait until every node shows the replicas of this round."""
    question = messages.metadata(None)
    for node in cluster.nodes:
        wait_until(lambda at=cluster[node]: shows(at.call(question), topics, turn, elected=elected))  # type: ignore[misc]


def measured(names: Sequence[str], topics: int, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Return the seconds of each round by system."""
    with running(names) as clusters:
        for cluster in clusters.values():
            for part in parts(topics):
                request = creation(part, PARTITIONS, partial(replicas, 0))
                messages.check_created(cluster.at_controller.call(request))
            cluster.wait_led(messages.metadata(None), topics, PARTITIONS)
        sleep(QUIET_SECONDS)
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
