"""`python -m benchmarks.policy_process`: what a judgement by a class in Python costs in its
process, beside the same class asked in place.

Rule: the same requests against the same clusters for both. Each topic that is asked about is made,
so that every cluster differs from the one before by one topic, as those of a controller do. What is
in place is the least that a policy can cost: no time limit holds for it.
"""

import argparse
import statistics
import time
from collections.abc import Sequence

import trio

from minicontroller.admin.policy.cluster_view import TopicStates, requested, view
from minicontroller.admin.policy.process import PolicyProcess
from minicontroller.cluster.entities import Partition, Topic
from minicontroller.cluster.image import Image
from minicontroller.policies import ClusterState, CreateTopicRequest, TopicManagementPolicy
from minicontroller.policies.judging import PolicyJudge
from minicontroller.policies.loading import POLICY_KEY
from minicontroller.policies.states import VersionedCluster
from minicontroller.policies.verdict import PolicyOutcome

SIZES = (1_000, 10_000)
JUDGEMENTS = 300
PARTITION = Partition(replicas=(1, 2, 3))
CONFIGS = {"retention.ms": "3600000"}


class Simple(TopicManagementPolicy):
    """Looks at the request alone."""

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        assert request.requested_state.replication_factor == 3


class One(TopicManagementPolicy):
    """Looks at one topic."""

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        assert cluster.topic_state("t7") is not None


class Names(TopicManagementPolicy):
    """Counts all topics."""

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        assert len(cluster.topics()) >= SIZES[0]


class All(TopicManagementPolicy):
    """Looks at all topics."""

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        states = (cluster.topic_state(name) for name in cluster.topics())
        assert sum(state.num_partitions for state in states if state is not None) >= 6 * SIZES[0]


Question = tuple[CreateTopicRequest, VersionedCluster]


def questions(size: int) -> list[Question]:
    """Each about a topic that is there when the next one is asked."""
    topics = [Topic(name=f"t{number}", partitions=(PARTITION,) * 6, configs=CONFIGS) for number in range(size)]
    image, states = Image().with_topics(topics), TopicStates()
    asked: list[Question] = []
    for number in range(JUDGEMENTS):
        new = Topic(name=f"new-{number}", partitions=(PARTITION,) * 6, configs=CONFIGS)
        request = CreateTopicRequest(
            topic=new.name, principal="User:a", api="CreateTopics", requested_state=requested(new)
        )
        asked.append((request, view(image, states)))
        image = image.with_topic(new)
    return asked


def in_place(policy: TopicManagementPolicy, asked: Sequence[Question]) -> list[float]:
    """Seconds of each."""
    judge, seconds = PolicyJudge(policy), []
    for request, cluster in asked:
        began = time.perf_counter()
        assert judge.judge(request, cluster).decision is PolicyOutcome.ALLOWED
        seconds.append(time.perf_counter() - began)
    return seconds


async def in_process(kind: type[TopicManagementPolicy], asked: Sequence[Question]) -> list[float]:
    """Seconds of each."""
    process = PolicyProcess({POLICY_KEY: f"{__file__}:{kind.__name__}"}, timeout_ms=60_000)
    await process.start()
    seconds = []
    for request, cluster in asked:
        began = time.perf_counter()
        assert (await process.ask(request, cluster))[0] is PolicyOutcome.ALLOWED
        seconds.append(time.perf_counter() - began)
    await process.close()
    return seconds


async def measure() -> None:
    print(f"{'':8}{'topics':>8}{'in place, us':>16}{'in a process, us':>18}{'the first, ms':>16}")
    for kind in (Simple, One, Names, All):
        for size in SIZES:
            here, there = in_place(kind(), questions(size)), await in_process(kind, questions(size))
            middle = [statistics.median(seconds) * 1e6 for seconds in (here, there)]
            print(f"{kind.__name__:8}{size:8}{middle[0]:16.0f}{middle[1]:18.0f}{there[0] * 1000:16.1f}")


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    trio.run(measure)


if __name__ == "__main__":
    main()
