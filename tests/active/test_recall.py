"""A controller whose node has just started, and was sent nothing, learns from the other nodes what
the znodes of a topic no longer say.
"""

import pytest
import trio

from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.topics import encode_topic
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.store.base import Delete, SetData, Store
from tests.active.topic_znodes import PATH, created, is_served, shown, stored, with_partitions, without_id
from tests.support.small_cluster import SmallCluster

STATE = layout.partition_state_path("t", 1)


async def end_controller(cluster: SmallCluster) -> None:
    """Kill node 1, which rules, and have no other node stand for election."""
    for broker_id in (2, 3):
        await cluster.members[broker_id].election.withdraw()
    await cluster.kill(1)


async def elect_new_node(cluster: SmallCluster) -> None:
    """Start node 1 again, which is elected."""
    await cluster.start(1)
    await cluster.until(lambda: bool(cluster.rulers()))
    assert cluster.controller.broker_id == 1


async def test_a_damaged_topic_is_served(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """Every node shows it, with leaders that live; it is not written over, and grows once it is
    mended.
    """
    topic = await created(cluster)
    await other.commit([SetData(PATH, b"?")])
    await end_controller(cluster)
    await elect_new_node(cluster)
    await cluster.until(lambda: is_served(cluster, topic))
    assert await cluster.grow("t", 3) == ErrorCode.INVALID_TOPIC_EXCEPTION
    await cluster.kill(2)
    await cluster.until_quiet()
    await cluster.until(lambda: is_served(cluster, topic))
    assert all(each.leader in (1, 3) for each in cluster.controller.image.topics["t"].partitions)
    await cluster.start_in_turn(2)
    await other.commit([SetData(PATH, encode_topic(topic))])
    await trio.sleep(1)
    assert await cluster.grow("t", 3) == ErrorCode.NONE
    assert is_served(cluster, topic, 3)


async def test_an_id_is_kept(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """An id that a tool has dropped is written again."""
    topic = await created(cluster)
    await other.commit([SetData(PATH, without_id(topic))])
    await end_controller(cluster)
    await elect_new_node(cluster)
    await cluster.until(lambda: is_served(cluster, topic))
    assert (await stored(other)).topic_id == topic.topic_id


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_a_state_is_kept(is_deleted: bool, cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """A partition whose state is damaged or gone is led, by a replica that was in sync, in a higher
    epoch.
    """
    topic = await created(cluster)
    await cluster.kill(3)
    await cluster.until_quiet()
    await cluster.start_in_turn(3)
    before = cluster.controller.image.topics["t"].partitions[1]
    await other.commit([Delete(STATE) if is_deleted else SetData(STATE, b"?")])
    await end_controller(cluster)
    await elect_new_node(cluster)
    await cluster.until(lambda: is_served(cluster, topic))
    after = cluster.controller.image.topics["t"].partitions[1]
    assert after.leader in before.isr
    assert after.leader_epoch > before.leader_epoch


async def test_the_latest_answer_counts(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """A node that nobody could reach when the topic grew does not hide what another one knows."""
    topic = await created(cluster)
    await cluster.until_quiet()
    cluster.unreachable.add(3)
    await other.commit([SetData(PATH, with_partitions(topic, p2=[1, 2]))])
    await trio.sleep(1)
    assert [len(seen.partitions) for seen in shown(cluster) if seen is not None] == [3, 3, 2]
    await other.commit([SetData(PATH, b"?")])
    await end_controller(cluster)
    cluster.unreachable.clear()
    await elect_new_node(cluster)
    await cluster.until(lambda: is_served(cluster, topic, 3))


async def test_a_node_that_does_not_answer(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """It holds the new controller up for seconds, and what another one remembers is served."""
    topic = await created(cluster)
    await other.commit([SetData(PATH, b"?")])
    cluster.silent.add(3)
    await end_controller(cluster)
    with trio.fail_after(10):
        await elect_new_node(cluster)
    assert cluster.controller.image.topics["t"].topic_id == topic.topic_id
    assert cluster.controller.image.topics["t"].is_complete
