"""Partitions whose replicas in sync are all gone get a leader as soon as unclean leader election is
enabled for them.
"""

import pytest

from minicontroller.cluster.entities import NO_LEADER, Partition
from tests.store.worlds import in_both_worlds
from tests.support.small_cluster import SmallCluster

KEY = "unclean.leader.election.enable"
BROKER = 4


async def lose_the_replicas_in_sync(cluster: SmallCluster) -> int:
    """Have both topics lack a leader, and return the broker whose replica is back, out of sync."""
    controller = cluster.controller_node.broker_id
    lost, back = (number for number in (1, 2, 3) if number != controller)
    await cluster.create("t", "u", replication_factor=3)
    for name in ("t", "u"):
        assert await cluster.reassign(name, {0: [lost, back]}) == [0]
    await cluster.until(lambda: all(partition_of(cluster, name).replicas == (lost, back) for name in ("t", "u")))
    await cluster.until_quiet()
    await cluster.kill(back)
    await cluster.until(lambda: all(partition_of(cluster, name).isr == (lost,) for name in ("t", "u")))
    await cluster.kill(lost)
    await cluster.until(lambda: all(partition_of(cluster, name).leader == NO_LEADER for name in ("t", "u")))
    await cluster.start(back)
    await cluster.until(lambda: back in cluster.controller.image.live_ids())
    await cluster.until_quiet()
    assert partition_of(cluster, "t").leader == partition_of(cluster, "u").leader == NO_LEADER
    return back


def partition_of(cluster: SmallCluster, name: str) -> Partition:
    return cluster.controller.image.topics[name].partitions[0]


@in_both_worlds
async def test_a_topic_that_allows_it_is_led_at_once(cluster: SmallCluster) -> None:
    """The config of a topic elects its leader; other topics stay without one."""
    back = await lose_the_replicas_in_sync(cluster)
    assert await cluster.change_config("t", KEY, "true") == 0
    await cluster.until(lambda: partition_of(cluster, "t").leader == back)
    assert partition_of(cluster, "u").leader == NO_LEADER


@in_both_worlds
@pytest.mark.parametrize("excepted", [False, True])
async def test_a_cluster_that_allows_it_is_led_at_once(cluster: SmallCluster, excepted: bool) -> None:
    """The default for all brokers elects leaders of all topics but those that forbid it."""
    back = await lose_the_replicas_in_sync(cluster)
    if excepted:
        assert await cluster.change_config("u", KEY, "false") == 0
    assert await cluster.change_config("", KEY, "true", resource_type=BROKER) == 0
    await cluster.until(lambda: partition_of(cluster, "t").leader == back)
    if excepted:
        assert partition_of(cluster, "u").leader == NO_LEADER
    else:
        await cluster.until(lambda: partition_of(cluster, "u").leader == back)
