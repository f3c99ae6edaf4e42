"""Replicas that move in a cluster of nodes: who is told what, what stands in the store, and that no
death stops it.
"""

from collections.abc import Iterable

import pytest
import trio

from minicontroller.cluster.entities import Partition
from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.content import MalformedZnodeError
from minicontroller.cluster.znodes.requests import decode_reassignments, encode_reassignments
from minicontroller.cluster.znodes.topics import decode_partition_state, decode_topic, encode_topic
from minicontroller.controller.active.control_requests import ControlRequest
from minicontroller.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from minicontroller.protocol.messages.stop_replica import StopReplicaRequest
from minicontroller.store.base import Create, SetData, Store
from tests.store.worlds import in_both_worlds
from tests.support.small_cluster import SmallCluster, WireLink

MOST_COMMITS = 5


def partition(cluster: SmallCluster, index: int = 0, topic: str = "t") -> Partition:
    return cluster.controller.image.topics[topic].partitions[index]


async def until_moved(cluster: SmallCluster, to: Iterable[int], index: int = 0, topic: str = "t") -> None:
    """All nodes show the partition with these replicas in sync, and nothing is left to be done."""
    wanted = tuple(to)
    await cluster.until(lambda: bool(cluster.rulers()))
    await cluster.until(
        lambda: all(
            (seen := cluster.seen(broker_id).topics.get(topic)) is not None
            and seen.partitions[index].replicas == wanted
            and set(seen.partitions[index].isr) == set(wanted)
            and seen.partitions[index].leader in wanted
            for broker_id in cluster.members
        )
    )
    await cluster.until_quiet()
    await cluster.until(lambda: not cluster.controller.image.topics[topic].partitions[index].is_moving)


async def stored(store: Store, topic: str = "t") -> tuple[bytes | None, Partition]:
    """Return the data of the topic's znode, and partition 0 as the store has it."""
    assignment = await store.get(layout.topic_path(topic))
    state = await store.get(layout.partition_state_path(topic, 0))
    assert assignment is not None
    assert state is not None
    before = decode_topic(topic, assignment.data).partitions[0]
    return assignment.data, decode_partition_state(before, state.data, state.stat.version)


@in_both_worlds
async def test_a_move(cluster: SmallCluster, other: Store) -> None:
    """A partition moves to other brokers entirely; the store has what the controller has."""
    await cluster.create("t", replication_factor=1)
    (before,) = partition(cluster).replicas
    goal = tuple(each for each in (1, 2, 3) if each != before)
    assert await cluster.reassign("t", {0: goal}) == [0]
    await until_moved(cluster, goal)
    data, state = await stored(other)
    assert data == encode_topic(cluster.controller.image.topics["t"])
    assert state == partition(cluster)
    assert (state.leader, set(state.isr)) == (goal[0], set(goal))


async def test_who_is_told(cluster: SmallCluster, monkeypatch: pytest.MonkeyPatch, autojump_clock: object) -> None:
    """The added replica is told by LeaderAndIsr that it is new, and the removed one is told to stop
    and to delete.
    """
    told: list[tuple[int, ControlRequest]] = []
    ask = WireLink.request

    async def listened(link: WireLink, message: ControlRequest) -> object:
        told.append((link._broker.broker_id, message))
        return await ask(link, message)

    monkeypatch.setattr(WireLink, "request", listened)
    await cluster.create("t", replication_factor=3)
    await cluster.reassign("t", {0: [1, 2]})
    await until_moved(cluster, (1, 2))
    await cluster.until(lambda: len(stops(told)) == 2)
    assert stops(told) == [(3, False), (3, True)]
    await cluster.reassign("t", {0: [1, 2, 3]})
    await until_moved(cluster, (1, 2, 3))
    news = [
        (broker_id, state.is_new)
        for broker_id, message in told
        if isinstance(message, LeaderAndIsrRequest)
        for topic in message.topic_states
        for state in topic.partition_states
        if state.adding_replicas
    ]
    assert set(news) == {(2, False), (3, True)}
    assert len(stops(told)) == 2


def stops(told: list[tuple[int, ControlRequest]]) -> list[tuple[int, bool]]:
    return [
        (broker_id, state.delete_partition)
        for broker_id, message in told
        if isinstance(message, StopReplicaRequest)
        for topic in message.topic_states
        for state in topic.partition_states
    ]


@pytest.mark.parametrize("commits", range(MOST_COMMITS))
async def test_the_controller_dies(cluster: SmallCluster, other: Store, commits: int, autojump_clock: object) -> None:
    """Whenever the controller dies while a partition moves, the next one finishes the move."""
    await cluster.create("t", partitions=3, replication_factor=2)
    goal = (3, 2)
    first = cluster.controller_node.metrics
    begun = first.commits
    assert await cluster.reassign("t", dict.fromkeys(range(3), goal)) == [0, 0, 0]
    await cluster.until(lambda: first.commits >= begun + commits or not cluster.controller.image.topics["t"].is_moving)
    await cluster.kill(1)
    for index in range(3):
        await until_moved(cluster, goal, index)
    assert cluster.controller.reassignments.count_moving() == 0
    data, state = await stored(other)
    assert data is not None
    assert state == partition(cluster)


async def test_a_broker_that_is_dead(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """A move to a dead broker waits for its return, through any number of elections. Meanwhile it
    can be cancelled.
    """
    await cluster.create("t", "u", replication_factor=2)
    for topic in ("t", "u"):
        await cluster.reassign(topic, {0: [1, 2]})
        await until_moved(cluster, (1, 2), topic=topic)
    await cluster.kill(3)
    await cluster.until(lambda: 3 not in cluster.controller.image.brokers)
    assert await cluster.reassign("t", {0: [3]}) == [39]
    wanted = {("t", 0): (3,), ("u", 0): (3,)}
    await other.commit([Create(layout.REASSIGN_PARTITIONS, encode_reassignments(wanted))])
    await cluster.until(lambda: cluster.controller.reassignments.count_moving() == 2)
    for _ in range(3):
        await cluster.elect_anew()
    assert await cluster.reassign("u", {0: None}) == [0]
    assert partition(cluster, topic="u").replicas == (1, 2)
    await cluster.until(lambda: list(cluster.controller.reassignments._submitted.wanted) == [("t", 0)])
    assert cluster.controller.reassignments.count_moving() == 1
    assert partition(cluster).adding_replicas == (3,)
    assert partition(cluster).leader in (1, 2)
    await cluster.start(3)
    await until_moved(cluster, (3,))
    await until_absent(other, layout.REASSIGN_PARTITIONS)


async def test_a_deletion_takes_all_replicas(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """A topic that is deleted while it moves to a dead broker is gone when that broker is back."""
    await cluster.create("t", replication_factor=1)
    await cluster.reassign("t", {0: [1]})
    await until_moved(cluster, (1,))
    await other.commit([Create(layout.REASSIGN_PARTITIONS, encode_reassignments({("t", 0): (4,)}))])
    await cluster.until(lambda: partition(cluster).adding_replicas == (4,))
    assert await cluster.delete("t") == [0]
    await cluster.elect_anew()
    assert cluster.controller.image.topics["t"].marked_for_deletion
    await cluster.start(4)
    await cluster.until(lambda: "t" not in cluster.controller.image.topics)


async def until_absent(store: Store, path: str) -> None:
    while await store.get(path) is not None:  # noqa: ASYNC110 - the znode has no event of its own
        await trio.sleep(0.01)


@in_both_worlds
async def test_old_tools(cluster: SmallCluster, other: Store) -> None:
    """What `/admin/reassign_partitions` asks for is done, and removed from there; what cannot be
    done is removed, too.
    """
    await cluster.create("t", partitions=2, replication_factor=1)
    wanted = {("t", 0): (3, 2), ("t", 1): (2,), ("t", 7): (1,), ("nobody", 0): (1,)}
    await other.commit([Create(layout.REASSIGN_PARTITIONS, encode_reassignments(wanted))])
    await until_moved(cluster, (3, 2))
    await until_moved(cluster, (2,), 1)
    await until_absent(other, layout.REASSIGN_PARTITIONS)
    await other.commit([Create(layout.REASSIGN_PARTITIONS, b"no json")])
    await other.commit([SetData(layout.REASSIGN_PARTITIONS, encode_reassignments({("t", 0): (1,)}))])
    await until_moved(cluster, (1,))


def test_what_is_read_of_old_tools() -> None:
    """A reassignment of any version is read, and one with keys that Kafka does not know is not."""
    row = b'"topic":"t","partition":0,"replicas":[3,2]'
    for version in (b"", b'"version":1,', b'"version":9,'):
        assert decode_reassignments(b'{%s"partitions":[{%s}]}' % (version, row)) == {("t", 0): (3, 2)}
    for data in (b'{"partitions":[{%s,"more":1}]}' % row, b'{"more":1,"partitions":[{%s}]}' % row):
        with pytest.raises(MalformedZnodeError):
            decode_reassignments(data)


@in_both_worlds
async def test_old_tools_with_znodes_below(cluster: SmallCluster, other: Store) -> None:
    """What is below `/admin/reassign_partitions` is removed with it, as by Kafka."""
    await cluster.create("t", partitions=1, replication_factor=1)
    for replicas in ((3,), (1,)):
        path, wanted = layout.REASSIGN_PARTITIONS, encode_reassignments({("t", 0): replicas})
        await other.commit([Create(path, wanted), Create(f"{path}/child", b""), Create(f"{path}/child/of it", b"")])
        await until_moved(cluster, replicas)
        await until_absent(other, path)


async def test_nobody_led_it(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """A partition that no live broker has ever had moves to live ones, which then lead it."""
    topic = encode_topic_on(9)
    await other.commit([Create(layout.topic_path("t"), topic)])
    await cluster.until(lambda: "t" in cluster.controller.image.topics)
    assert await cluster.reassign("t", {0: [2, 3]}) == [0]
    await until_moved(cluster, (2, 3))


def encode_topic_on(broker_id: int) -> bytes:
    return b'{"version":1,"partitions":{"0":[%d]}}' % broker_id
