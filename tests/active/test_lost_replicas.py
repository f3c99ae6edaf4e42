"""Brokers that live and have lost a log directory: their replicas count as dead, and nothing else
of them does.
"""

from minicontroller.cluster.entities import NO_LEADER, Partition
from minicontroller.cluster.znodes import broker_notifications, layout
from minicontroller.store.base import Create, SetData, Store
from tests.support.small_cluster import SmallCluster


def partition(cluster: SmallCluster, topic: str, index: int = 0) -> Partition:
    return cluster.controller.image.topics[topic].partitions[index]


async def lose(cluster: SmallCluster, other: Store, broker_id: int, topic: str) -> None:
    """The directory of these replicas fails, and the broker says so."""
    cluster.lost.add((broker_id, topic))
    path, notification = (
        f"{layout.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_",
        broker_notifications.encode_log_dir_event(broker_id),
    )
    await other.commit([Create(path, notification, sequential=True)])


def all_see(cluster: SmallCluster, topic: str, offline: tuple[int, ...], index: int = 0) -> bool:
    return all(
        cluster.seen(broker_id).topics[topic].partitions[index].offline_replicas == offline
        for broker_id in cluster.members
    )


async def test_a_lost_leader_is_succeeded(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """Another in-sync replica leads, in the next epoch and without it; it is offline for everyone,
    and its other topics are not.
    """
    await cluster.create("lost", "kept", partitions=3, replication_factor=3)
    before = [partition(cluster, "lost", index) for index in range(3)]
    await lose(cluster, other, 2, "lost")
    await cluster.until(lambda: all(all_see(cluster, "lost", (2,), index) for index in range(3)))
    for index, old in enumerate(before):
        now = partition(cluster, "lost", index)
        assert now.leader == (old.leader if old.leader != 2 else next(each for each in old.replicas if each != 2))
        assert now.isr == tuple(replica for replica in old.isr if replica != 2)
        assert (now.leader_epoch, now.partition_epoch) == (old.leader_epoch + 1, old.partition_epoch + 1)
    assert set(cluster.controller.image.brokers) == {1, 2, 3}
    assert all_see(cluster, "kept", ())


async def test_the_last_replica_in_sync_is_waited_for(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """A partition whose last in-sync replica is lost has no leader and keeps that replica in the
    ISR; it leads again when its broker registers.
    """
    assert await cluster.create("t", partitions=3, replication_factor=1) == [0]
    (index,) = [index for index in range(3) if partition(cluster, "t", index).leader == 2]
    await lose(cluster, other, 2, "t")
    await cluster.until(lambda: partition(cluster, "t", index).leader == NO_LEADER)
    assert partition(cluster, "t", index).isr == (2,)
    cluster.lost.clear()
    await cluster.expire(2)
    await cluster.until(lambda: partition(cluster, "t", index).leader == 2)
    await cluster.until(lambda: all_see(cluster, "t", (), index))
    assert partition(cluster, "t", index).lost_replicas == ()


async def test_a_broker_that_begins_again_follows_again(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """A broker that lost a replica and registers again may rejoin the ISR."""
    await cluster.create("t", partitions=1, replication_factor=3)
    await lose(cluster, other, 3, "t")
    await cluster.until(lambda: all_see(cluster, "t", (3,)))
    cluster.lost.clear()
    await cluster.kill(3)
    await cluster.start(3)
    await cluster.until(lambda: set(partition(cluster, "t").isr) == {1, 2, 3})
    await cluster.until(lambda: all_see(cluster, "t", ()))


async def test_the_next_controller_is_told_too(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """The loss stands in no znode: a new controller learns it from the answers to its first
    LeaderAndIsr.
    """
    await cluster.create("t", partitions=2, replication_factor=3)
    await lose(cluster, other, 2, "t")
    await cluster.until(lambda: all_see(cluster, "t", (2,)))
    await cluster.elect_anew()
    await cluster.until(lambda: partition(cluster, "t").lost_replicas == (2,) and all_see(cluster, "t", (2,)))
    assert all(2 not in partition(cluster, "t", index).isr for index in range(2))


async def test_a_state_that_is_read_anew_says_nothing_of_it(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """A lost replica stays lost after the controller reads a state that the leader wrote itself."""
    await cluster.create("t", partitions=1, replication_factor=3)
    await lose(cluster, other, 2, "t")
    await cluster.until(lambda: all_see(cluster, "t", (2,)))
    entry = await other.get(layout.partition_state_path("t", 0))
    assert entry is not None
    notification = broker_notifications.encode_isr_change([broker_notifications.NotifiedPartition("t", 0)])
    await other.commit(
        [
            SetData(layout.partition_state_path("t", 0), entry.data, entry.stat.version),
            Create(f"{layout.ISR_CHANGE_NOTIFICATION}/isr_change_", notification, sequential=True),
        ]
    )
    await cluster.until(lambda: partition(cluster, "t").partition_epoch == entry.stat.version + 1)
    assert partition(cluster, "t").lost_replicas == (2,)
