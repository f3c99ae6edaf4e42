"""The controller takes over what other programs write to its tree."""

import itertools
from collections.abc import Sequence

import trio

from minicontroller.cluster.znodes import broker_notifications, layout
from minicontroller.cluster.znodes.cluster import NO_FEATURES
from minicontroller.cluster.znodes.configs import encode_config
from minicontroller.cluster.znodes.topics import encode_partition_state
from minicontroller.controller.handlers.alter_partition import alter
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from minicontroller.store.base import (
    Answered,
    Create,
    Delete,
    Entry,
    Operation,
    SetData,
    Store,
    StoreError,
    Watch,
)
from minicontroller.store.memory import MemoryStore
from tests.store.worlds import MemoryWorld
from tests.support.small_cluster import BROKER, SmallCluster


async def test_features_are_written_as_kafka_writes_them(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """The first controller of Kafka 3.9 writes `/feature`, enabled and empty; one that is there
    stays as it is.
    """
    entry = await other.get(layout.FEATURE)
    assert entry is not None
    assert entry.data == NO_FEATURES
    assert entry.stat.version == 0
    await cluster.elect_anew()
    assert await other.get(layout.FEATURE) == entry


async def test_disabled_features_are_enabled(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """Features as a controller before Kafka 2.7 left them are enabled: status 0 becomes 1, and no
    feature is finalized.
    """
    await other.commit([SetData(layout.FEATURE, b'{"features":{},"version":1,"status":0}')])
    await cluster.elect_anew()
    entry = await other.get(layout.FEATURE)
    assert entry is not None
    assert entry.data == NO_FEATURES


async def test_an_election_removes_old_notices(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """An election removes notifications for the controller before: the new one reads
    everything anyway.
    """
    epoch = cluster.controller.epoch
    cluster.controller.resign()
    await other.commit(
        [
            Create(f"{layout.ISR_CHANGE_NOTIFICATION}/isr_change_", b"not json", sequential=True),
            Create(
                f"{layout.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_",
                broker_notifications.encode_log_dir_event(2),
                sequential=True,
            ),
        ]
    )
    await cluster.until_succeeded(epoch)
    assert await other.children(layout.ISR_CHANGE_NOTIFICATION) == []
    assert await other.children(layout.LOG_DIR_EVENT_NOTIFICATION) == []


async def test_an_isr_that_a_leader_wrote_is_read_and_told(
    cluster: SmallCluster, other: Store, memory: MemoryWorld, autojump_clock: object
) -> None:
    """When a broker before Kafka 2.7 writes a partition's state, its notification makes the
    controller read the state, propagate it and remove the notification.
    """
    await cluster.create("t", partitions=1, replication_factor=3)
    (partition,) = cluster.controller.image.topics["t"].partitions
    cluster.unreachable.add(partition.leader)  # it would ask for its follower back at once
    shrunk = encode_partition_state(
        type(partition)(
            replicas=partition.replicas,
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=partition.replicas[:2],
            controller_epoch=partition.controller_epoch,
        )
    )
    notification = broker_notifications.encode_isr_change([broker_notifications.NotifiedPartition("t", 0)])
    await other.commit(
        [
            SetData(layout.partition_state_path("t", 0), shrunk, 0),
            Create(f"{layout.ISR_CHANGE_NOTIFICATION}/isr_change_", notification, sequential=True),
        ]
    )
    follower = partition.replicas[1]
    await cluster.until(lambda: cluster.seen(follower).topics["t"].partitions[0].partition_epoch >= 1)
    assert f"{layout.ISR_CHANGE_NOTIFICATION}/isr_change_0000000000" not in memory.tree.nodes


async def test_a_lost_directory_is_asked_for(
    cluster: SmallCluster, other: Store, memory: MemoryWorld, autojump_clock: object
) -> None:
    """The notification is removed once the broker has been asked, and nothing changes for a broker
    that has lost nothing.
    """
    await cluster.create("t", partitions=3, replication_factor=3)
    before = cluster.controller.image.topics["t"]
    await other.commit(
        [
            Create(
                f"{layout.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_",
                broker_notifications.encode_log_dir_event(2),
                sequential=True,
            )
        ]
    )
    await cluster.until(lambda: not memory.tree.nodes[layout.LOG_DIR_EVENT_NOTIFICATION].children)
    assert cluster.controller.image.topics["t"] == before


async def test_a_grant_that_the_store_refuses_is_no_grant(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """AlterPartition on a state that another program has changed is answered
    INVALID_UPDATE_VERSION, and the state is read again.
    """
    await cluster.create("t", partitions=1, replication_factor=3)
    controller = cluster.controller
    topic = controller.image.topics["t"]
    (partition,) = topic.partitions
    entry = await other.get(layout.partition_state_path("t", 0))
    assert entry is not None
    await other.commit([SetData(layout.partition_state_path("t", 0), entry.data, 0)])
    request = AlterPartitionRequest(
        broker_id=partition.leader,
        broker_epoch=controller.image.brokers[partition.leader].epoch,
        topics=[
            TopicData(
                topic_id=topic.topic_id,
                partitions=[
                    PartitionData(
                        leader_epoch=0,
                        partition_epoch=0,
                        new_isr_with_epochs=[BrokerState(broker_id=replica) for replica in partition.replicas[:2]],
                    )
                ],
            )
        ],
    )
    answer = await alter(cluster.controller_node.place, request, version=3)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_UPDATE_VERSION
    await cluster.until(lambda: cluster.controller.image.topics["t"].partitions[0].partition_epoch == 1)


async def test_an_election_on_a_state_that_moved_is_held_again(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """If another program changes the state of a partition whose leader has died, the controller
    reads the state again and elects a leader.
    """
    await cluster.create("t", partitions=1, replication_factor=3)
    (partition,) = cluster.controller.image.topics["t"].partitions
    entry = await other.get(layout.partition_state_path("t", 0))
    assert entry is not None
    await other.commit([SetData(layout.partition_state_path("t", 0), entry.data, 0)])
    victim = next(r for r in partition.replicas if r != cluster.controller.broker_id)
    await cluster.kill(victim)
    await cluster.until_quiet()
    await cluster.until(lambda: victim not in cluster.controller.image.topics["t"].partitions[0].isr)


async def test_a_huge_topic_deleted_by_half_is_deleted(
    cluster: SmallCluster, memory: MemoryWorld, other: Store, autojump_clock: object
) -> None:
    """A predecessor died between two commits of the deletion of one topic: the first of its znodes
    are gone, the rest follow. Before, nodes know which of its commits created the topic's znode.
    """
    assert await cluster.create("huge", partitions=4_000, replication_factor=1) == [0]
    czxid = memory.tree.nodes[layout.topic_path("huge")].stat.czxid
    await cluster.until(lambda: all(cluster.seen(each).topics["huge"].czxid == czxid for each in (1, 2, 3)))
    epoch = cluster.controller.epoch
    cluster.controller.resign()
    gone = [
        Delete(path)
        for index in range(100)
        for path in (layout.partition_state_path("huge", index), layout.partition_path("huge", index))
    ]
    await other.commit([*gone, Create(layout.delete_topic_path("huge"))])
    await cluster.until_succeeded(epoch)
    await cluster.until(lambda: layout.topic_path("huge") not in memory.tree.nodes)
    assert not [path for path in memory.tree.nodes if "/huge" in path]


async def test_a_topic_and_its_mark_made_by_another(
    cluster: SmallCluster, memory: MemoryWorld, other: Store, autojump_clock: object
) -> None:
    """A topic that a broker created gets leaders and is propagated; a deletion mark that another
    program wrote deletes it.
    """
    await other.commit([Create("/brokers/topics/theirs", b'{"version":1,"partitions":{"0":[1,2],"1":[3,9]}}')])
    await cluster.until(lambda: "theirs" in cluster.seen(3).topics)
    first, second = cluster.seen(3).topics["theirs"].partitions
    assert (first.leader, first.isr) == (1, (1, 2))
    assert (second.leader, second.isr, second.offline_replicas) == (3, (3,), (9,))
    await other.commit([Create("/admin/delete_topics/theirs")])
    await cluster.until(lambda: all("theirs" not in cluster.seen(broker_id).topics for broker_id in (1, 2, 3)))
    assert layout.topic_path("theirs") in memory.tree.nodes, "a replica is on a broker that is not there"


async def test_a_shutdown_asked_for_twice_is_one(cluster: SmallCluster, autojump_clock: object) -> None:
    """ControlledShutdown again: nothing left to hand over, and the broker stays out of every ISR,
    also after a reload.
    """
    await cluster.create("t", partitions=6, replication_factor=3)
    ruler = cluster.controller.broker_id
    leaver = next(broker_id for broker_id in cluster.members if broker_id != ruler)
    for _ in range(2):
        answer = await cluster.shut_down(leaver)
        assert (answer.error_code, answer.remaining_partitions) == (0, [])
        after = cluster.controller.image.topics["t"]
        assert all(leaver not in partition.isr and partition.leader != leaver for partition in after.partitions)


class FarStore(MemoryStore):
    """Once it is far, a read or a commit travels for a second, and so does its answer."""

    is_far = False

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[Entry | None]:
        await trio.sleep(self.is_far)
        found = await super().get_many(paths, watch)
        await trio.sleep(self.is_far)
        return found

    def send(self, operations: Sequence[Operation], answered: Answered) -> None:
        if not self.is_far:
            super().send(operations, answered)
            return
        answers: list[StoreError | int] = []

        async def travel() -> None:
            await trio.sleep(self.is_far)
            super(FarStore, self).send(operations, answers.append)
            await trio.sleep(self.is_far)
            answered(*answers)

        trio.lowlevel.spawn_system_task(travel)


class FarWorld(MemoryWorld):
    async def open(self) -> Store:
        return FarStore(self.tree)


async def test_a_change_finds_its_place_between_those_of_another(nursery: trio.Nursery, autojump_clock: object) -> None:
    """A change takes effect if a round trip to the store fits between two writes of another program
    to the same znode: nothing else is read between its reading and its commit.
    """
    world = FarWorld()
    cluster, other = SmallCluster(nursery, world), await world.open()
    await cluster.start_in_turn(1)
    path = f"{layout.BROKER_CONFIGS}/{layout.DEFAULT_ENTITY}"
    await other.commit([Create(path, encode_config({}))])

    async def write_again_and_again() -> None:
        for number in itertools.count():
            await other.commit([SetData(path, encode_config({"other.key": str(number)}))])
            await trio.sleep(3.1)

    nursery.start_soon(write_again_and_again)
    await cluster.until_quiet()
    store = cluster.members[1].store
    assert isinstance(store, FarStore)
    store.is_far = True
    assert await cluster.change_config("", "my.key", "1", resource_type=BROKER) == ErrorCode.NONE
