"""AlterPartitionReassignments: what is refused with which text, what begins, and what is listed of
it. The nodes of these tests bring nothing into an ISR, so a reassignment stays under way until the
test does it.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from trio.testing import wait_all_tasks_blocked

from minicontroller.cluster.entities import Partition
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.topics import encode_topic
from minicontroller.controller.active.partition_states import stage_states
from minicontroller.policies import AlterTopicRequest, ClusterState, PolicyViolation, TopicManagementPolicy
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from minicontroller.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from minicontroller.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    RequestedTopic,
)
from tests.handlers.asking import Client
from tests.handlers.ruling import PATIENT_MS, Ruling, ruling, wanted
from tests.support.specs import APIS

Rows = list[tuple[str, int, int, str | None]]
MANY = list(range(100))


@pytest.fixture(name="cluster")
async def cluster_fixture(autojump_clock: object) -> AsyncIterator[Ruling]:
    async with ruling() as cluster:
        await cluster.make(wanted("t", placed={0: [1, 2], 1: [2, 3]}), wanted("u", placed={0: [1]}))
        yield cluster


def moving(
    *rows: tuple[str, int, Sequence[int] | None], timeout_ms: int = 60_000
) -> AlterPartitionReassignmentsRequest:
    return AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[ReassignablePartition(partition_index=index, replicas=None if to is None else list(to))],
            )
            for topic, index, to in rows
        ],
    )


async def move(cluster: Ruling, *rows: tuple[str, int, Sequence[int] | None], **how: Any) -> Rows:
    return rows_of(await cluster.ask(moving(*rows, **how), 0))


def rows_of(answer: AlterPartitionReassignmentsResponse) -> Rows:
    assert answer.error_code == 0
    return [
        (topic.name, row.partition_index, row.error_code, row.error_message)
        for topic in answer.responses
        for row in topic.partitions
    ]


async def listed(cluster: Ruling, *topics: tuple[str, list[int]]) -> list[tuple[str, int, Any, Any, Any]]:
    named = [RequestedTopic(name=name, partition_indexes=indexes) for name, indexes in topics]
    answer = await cluster.ask(ListPartitionReassignmentsRequest(topics=named or None), 0)
    assert (answer.error_code, answer.error_message, answer.throttle_time_ms) == (0, "", 0)
    return [
        (topic.name, row.partition_index, row.replicas, row.adding_replicas, row.removing_replicas)
        for topic in answer.topics
        for row in topic.partitions
    ]


def partition(cluster: Ruling, topic: str = "t", index: int = 0) -> Partition:
    return cluster.topic(topic).partitions[index]


async def in_sync(cluster: Ruling, *isr: int, topic: str = "t", index: int = 0) -> None:
    """The leader brings these replicas into the ISR."""
    before = partition(cluster, topic, index)

    async def plan(draft: Any) -> None:
        now = draft.image.topics[topic]
        state = replace(now.partitions[index], isr=isr, partition_epoch=before.partition_epoch + 1)
        stage_states(draft, now, {index: state}, cluster.controller.epoch)

    await cluster.controller.writer.write(plan)
    await wait_all_tasks_blocked()  # the controller has done about it what it does


def has_moved(image: Image) -> bool:
    """Return whether a node knows the topic, which it may not yet, with its new replicas."""
    topic = image.topics.get("t")
    return topic is not None and topic.partitions[0].replicas == (3, 1)


async def test_a_move_begins(cluster: Ruling) -> None:
    """A row without an error and with a null text says that a reassignment has begun; it is listed,
    stands in the znode, and ends when its replicas are in sync (K4-A1a).
    """
    assert await move(cluster, ("t", 0, [3, 1])) == [("t", 0, 0, None)]
    assert await listed(cluster) == [("t", 0, [3, 1, 2], [3], [2])]
    entry = await cluster.store.get(layout.topic_path("t"))
    assert entry is not None
    assert entry.data == encode_topic(cluster.topic("t"))
    assert b'"adding_replicas":{"0":[3]}' in entry.data
    await in_sync(cluster, 1, 2, 3)
    assert await listed(cluster) == []
    assert (partition(cluster).replicas, partition(cluster).isr, partition(cluster).leader) == ((3, 1), (1, 3), 1)
    for node in cluster.nodes.values():
        await node.cache.wait_topic("t", has_moved)


@pytest.mark.parametrize("timeout_ms", [0, -1, 1])
async def test_the_timeout_means_nothing(cluster: Ruling, timeout_ms: int) -> None:
    """As in Kafka, a request's timeout is ignored."""
    assert await move(cluster, ("t", 0, [3]), timeout_ms=timeout_ms) == [("t", 0, 0, None)]


@pytest.mark.parametrize(
    ("to", "text"),
    [
        ([], "Empty replica list specified in partition reassignment."),
        ([1, 1], "Duplicate replica ids in partition reassignment replica list: ArrayBuffer(1, 1)"),
        ([-1, -1], "Duplicate replica ids in partition reassignment replica list: ArrayBuffer(-1, -1)"),
        ([1, -1], "Invalid broker id in replica list: ArrayBuffer(1, -1)"),
        (
            [9, 8],
            "Replica assignment has brokers that are not alive. Replica list: ArrayBuffer(9, 8), live broker list: Set(1, 2, 3)",
        ),
    ],
    ids=["none", "twice", "negative twice", "negative", "not there"],
)
async def test_impossible_replicas(cluster: Ruling, to: list[int], text: str) -> None:
    """Kafka's checks of a row, with its texts, come before the check whether there is such a
    partition.
    """
    assert await move(cluster, ("t", 0, to)) == [("t", 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)]
    assert (await move(cluster, ("nobody", 0, to)))[0][2:] == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    assert not cluster.topic("t").is_moving


@pytest.mark.parametrize(("topic", "index"), [("nobody", 0), ("t", 2), ("t", -1), ("", 0)])
async def test_partitions_that_are_not_there(cluster: Ruling, topic: str, index: int) -> None:
    """A partition that does not exist is refused with 3, but there is nothing to cancel in it."""
    rows = await move(cluster, (topic, index, [1]))
    assert rows == [(topic, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")]
    rows = await move(cluster, (topic, index, None))
    assert rows[0][2:] == (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")


async def test_the_last_row_counts(cluster: Ruling) -> None:
    """Of two rows about one partition the last one counts, and each partition has one row."""
    assert await move(cluster, ("t", 0, []), ("u", 0, []), ("t", 0, [2, 1])) == [
        ("t", 0, 0, None),
        ("u", 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Empty replica list specified in partition reassignment."),
    ]
    assert partition(cluster).replicas == (2, 1)


async def test_bad_rows_do_not_stop_good_ones(cluster: Ruling) -> None:
    """Each partition is decided by itself."""
    request = moving(("t", 0, [2, 1]), ("u", 0, [9]), ("nobody", 0, [1]), ("u", 0, [1, 2]), ("t", 1, None))
    rows = {(topic, index): code for topic, index, code, _ in rows_of(await cluster.ask(request, 0))}
    assert rows == {("t", 0): 0, ("t", 1): 85, ("u", 0): 0, ("nobody", 0): 3}
    assert partition(cluster, "u").adding_replicas == (2,)


async def test_cancelling(cluster: Ruling) -> None:
    """A cancelled reassignment leaves the replicas of before, without those that it had added."""
    await move(cluster, ("t", 0, [3]))
    await in_sync(cluster, 1, 2)
    assert await move(cluster, ("t", 0, None)) == [("t", 0, 0, None)]
    assert (partition(cluster).replicas, partition(cluster).isr, partition(cluster).is_moving) == (
        (1, 2),
        (1, 2),
        False,
    )
    assert (await move(cluster, ("t", 0, None)))[0][2] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


async def test_replacing(cluster: Ruling) -> None:
    """Another reassignment of the same partition replaces the one under way (K4-A4)."""
    await move(cluster, ("t", 1, [1]))
    assert await move(cluster, ("t", 1, [2, 1])) == [("t", 1, 0, None)]
    assert await listed(cluster) == [("t", 1, [2, 1, 3], [1], [3])]


async def test_listing_by_name(cluster: Ruling) -> None:
    """Only partitions that move are listed, in the order in which they are asked for."""
    await move(cluster, ("t", 0, [3]), ("t", 1, [1]))
    assert [row[:2] for row in await listed(cluster, ("t", [1, 5, 0, 1]), ("u", [0]), ("nobody", [0]))] == [
        ("t", 1),
        ("t", 0),
    ]
    assert await listed(cluster, ("t", [])) == []


async def test_other_changes_meanwhile(cluster: Ruling) -> None:
    """A topic that moves gets no partitions (60). It can be deleted, and then neither moves nor
    cancels, while it is still listed until its replicas are deleted.
    """
    cluster.deaf.update({2, 3})
    await move(cluster, ("t", 0, [3]))
    grown = await cluster.ask(
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="t", count=4, assignments=None)], timeout_ms=PATIENT_MS
        ),
        3,
    )
    assert grown.results[0].error_code == ErrorCode.REASSIGNMENT_IN_PROGRESS
    deleted = await cluster.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=PATIENT_MS), 5)
    assert deleted.responses[0].error_code == ErrorCode.NONE
    assert "t" not in cluster.node.cache.image.topics
    assert [row[:2] for row in await listed(cluster)] == [("t", 0)]
    for to in ([1, 2], None):
        assert (await move(cluster, ("t", 0, to)))[0][2] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await move(cluster, ("t", 1, None)))[0][2] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


async def test_not_at_the_controller(cluster: Ruling) -> None:
    """A node that is not the controller and cannot forward refuses the request as a whole, without
    rows.
    """
    answer = await Client(cluster.nodes[2], handlers=APIS).ask(moving(("t", 0, [3])), 0)
    assert (answer.error_code, answer.responses) == (ErrorCode.NOT_CONTROLLER, [])


class Two(TopicManagementPolicy):
    """Grants two replicas at most, and notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[AlterTopicRequest] = []

    def validate_alter_topic(self, request: AlterTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        self.asked.append(request)
        if any(len(row) > 2 for row in (request.reassignments or {}).values() if row is not None):
            raise PolicyViolation("Two replicas are enough.")


async def test_the_policy_is_asked(autojump_clock: object) -> None:
    """The policy judges the valid partitions of each topic together, and sees the topic as it is to
    be; a violation refuses those of that topic alone (K201-5).
    """
    policy = Two()
    async with ruling(policy=policy) as cluster:
        await cluster.make(wanted("t", placed={0: [1], 1: [2]}), wanted("u", placed={0: [1]}))
        rows = await move(cluster, ("t", 0, [2]), ("t", 1, [1, 2, 3]), ("t", 2, [1]), ("u", 0, [2, 1]), ("x", 0, [1]))
        refused = (ErrorCode.POLICY_VIOLATION, "Two replicas are enough.")
        unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        assert rows == [
            ("t", 0, *refused),
            ("t", 1, *refused),
            ("t", 2, *unknown),
            ("u", 0, 0, None),
            ("x", 0, *unknown),
        ]
        first, second = policy.asked
        assert (first.topic, first.reassignments) == ("t", {0: (2,), 1: (1, 2, 3)})
        assert dict(first.requested_state.replica_assignments or {}) == {0: (2,), 1: (1, 2, 3)}
        assert (second.topic, second.api) == ("u", "AlterPartitionReassignments")
        assert not cluster.topic("t").is_moving
        assert cluster.topic("u").is_moving


async def test_many_topics(cluster: Ruling) -> None:
    """A request that is planned in parts answers every row."""
    await cluster.make(*(wanted(f"many-{number}", placed={0: [1]}) for number in MANY))
    rows = [(f"many-{number}", index, [2]) for number in MANY for index in (0, 7)]
    codes = {(topic, index): code for topic, index, code, _ in await move(cluster, *rows)}
    assert codes == {(f"many-{n}", index): (3 if index else 0) for n in MANY for index in (0, 7)}
    assert len(await listed(cluster)) == len(MANY)
