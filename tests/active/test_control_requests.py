"""LeaderAndIsr, UpdateMetadata and StopReplica: every field, as a broker of Kafka 3.9
must find it.
"""

import trio

from minicontroller.cluster.entities import Broker, Endpoint, Partition, Topic
from minicontroller.cluster.image import Image
from minicontroller.controller.active.control_requests import (
    COMPLETE_TAG,
    CZXID_TAG,
    EPOCH_DURING_DELETE,
    ControlVersions,
    leader_and_isr,
    leader_states,
    replicas_on,
    still_removed,
    stop_replica,
    topic_states,
    update_metadata,
    whole_topic_state,
)
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from minicontroller.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from minicontroller.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from tests.store.worlds import MemoryWorld
from tests.support.small_cluster import SmallCluster

LED = Partition(
    replicas=(1, 2, 9),
    leader=2,
    leader_epoch=4,
    isr=(2, 1),
    controller_epoch=5,
    partition_epoch=11,
    adding_replicas=(9,),
    removing_replicas=(1,),
)
NEVER_LED = Partition(replicas=(9,))
TOPIC = Topic("t", b"t" * 16, (LED, NEVER_LED), czxid=2**40)
DOOMED = Topic("d", b"d" * 16, (LED, NEVER_LED), marked_for_deletion=True)


def broker(broker_id: int, rack: str | None = None) -> Broker:
    endpoints = (
        Endpoint("CLIENTS", f"c{broker_id}", 1, "SASL_PLAINTEXT"),
        Endpoint("NODES", f"n{broker_id}", 2, "PLAINTEXT"),
    )
    return Broker(broker_id, endpoints, rack, epoch=100 + broker_id)


IMAGE = (
    Image(controller_id=1, controller_epoch=7)
    .with_brokers([broker(2, "east"), broker(1)])
    .with_topics([TOPIC, DOOMED, Topic("never", b"n" * 16, (NEVER_LED,))])
)


def told(leader: int, leader_epoch: int, zk_version: int) -> list[UpdateMetadataPartitionState]:
    """Return what UpdateMetadata says of a topic: the partitions in LED, and none in NEVER_LED."""
    return [
        UpdateMetadataPartitionState(
            partition_index=0,
            controller_epoch=5,
            leader=leader,
            leader_epoch=leader_epoch,
            isr=[2, 1],
            zk_version=zk_version,
            replicas=[1, 2, 9],
            offline_replicas=[9],
        )
    ]


def test_the_versions_are_those_of_a_controller_of_kafka_3_9() -> None:
    """The versions are fixed, as a real controller fixes them by its
    inter.broker.protocol.version.
    """
    versions = ControlVersions()
    assert [versions.of(each()) for each in (LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest)] == [
        7,
        8,
        4,
    ]


def test_leader_and_isr() -> None:
    """The header's epoch is the controller's, a partition's that of its state; leaders are named
    where nodes meet.
    """
    states = leader_states(IMAGE, 2, {"t": {0: True, 1: True, 7: True}, "d": {0: False}, "x": {0: True}})
    request = leader_and_isr(IMAGE, IMAGE.brokers[2], list(states), "NODES")
    assert request == LeaderAndIsrRequest(
        controller_id=1,
        is_kraft_controller=False,
        controller_epoch=7,
        broker_epoch=102,
        type=0,
        topic_states=[
            LeaderAndIsrTopicState(
                topic_name="t",
                topic_id=b"t" * 16,
                partition_states=[
                    LeaderAndIsrPartitionState(
                        partition_index=0,
                        controller_epoch=5,
                        leader=2,
                        leader_epoch=4,
                        isr=[2, 1],
                        partition_epoch=11,
                        replicas=[1, 2, 9],
                        adding_replicas=[9],
                        removing_replicas=[1],
                        is_new=True,
                        leader_recovery_state=0,
                    )
                ],
            )
        ],
        live_leaders=[LeaderAndIsrLiveLeader(broker_id=2, host_name="n2", port=2)],
    )


def test_replicas_that_have_moved_away() -> None:
    """A broker is told nothing of a partition that it has no replica of any more, and is not to
    delete one that it has got again.
    """
    assert list(leader_states(IMAGE, 3, {"t": {0: False}})) == []
    assert still_removed(IMAGE, 2, {"t": (TOPIC, {0, 1}), "x": (TOPIC, {0})}) == {"t": (TOPIC, {1}), "x": (TOPIC, {0})}


def test_update_metadata() -> None:
    """All brokers with all endpoints, every time; what is forgotten first; what was never led not
    at all; who is offline; and, for nodes of this program, which transaction created a topic.
    """
    changed = {"t": None, "never": None, "d": None, "x": None}
    told_of = list(topic_states(IMAGE, changed, {"d": DOOMED}, whole_topic_state))
    assert [partitions for _, partitions in told_of] == [2, 2]
    request = update_metadata(IMAGE, IMAGE.brokers[2], [state for state, _ in told_of])
    assert request == UpdateMetadataRequest(
        controller_id=1,
        is_kraft_controller=False,
        type=0,
        controller_epoch=7,
        broker_epoch=102,
        topic_states=[
            UpdateMetadataTopicState(
                topic_name="d",
                topic_id=b"d" * 16,
                partition_states=told(leader=-2, leader_epoch=0, zk_version=0),
            ),
            UpdateMetadataTopicState(
                topic_name="t",
                topic_id=b"t" * 16,
                partition_states=told(leader=2, leader_epoch=4, zk_version=11),
                unknown_tags={CZXID_TAG: b"\0\0\1\0\0\0\0\0"},
            ),
        ],
        live_brokers=[
            UpdateMetadataBroker(
                id=broker_id,
                endpoints=[
                    UpdateMetadataEndpoint(port=1, host=f"c{broker_id}", listener="CLIENTS", security_protocol=2),
                    UpdateMetadataEndpoint(port=2, host=f"n{broker_id}", listener="NODES", security_protocol=0),
                ],
                rack=rack,
            )
            for broker_id, rack in ((1, None), (2, "east"))
        ],
    )


def test_a_broker_in_shutdown_is_known_and_offline() -> None:
    """Controlled shutdown: it stays among the brokers, and its replicas are offline (Kafka:
    ControllerContext.isReplicaOnline).
    """
    leaving = Broker(1, epoch=101, shutting_down=True)
    image = IMAGE.with_brokers([leaving, broker(2)])
    states = topic_states(image, {"t": {0}}, {}, whole_topic_state)
    request = update_metadata(image, leaving, [state for state, _ in states])
    assert [each.id for each in request.live_brokers] == [1, 2]
    assert request.topic_states[0].partition_states[0].offline_replicas == [1, 9]


def test_the_first_word_says_that_it_is_complete() -> None:
    """The first UpdateMetadata says that it is complete in a tag that Kafka's brokers pass over;
    Kafka's own `Type` stays out of it.
    """
    request = update_metadata(IMAGE, IMAGE.brokers[2], [], complete=True)
    assert request.unknown_tags == {COMPLETE_TAG: b""}
    assert request.type == 0


def test_stop_replica() -> None:
    """The leader epoch is the current one, and -2 for a topic that is being deleted."""
    stopped = stop_replica(IMAGE, IMAGE.brokers[2], {"t": (TOPIC, {0})}, delete=False)
    deleted = stop_replica(IMAGE, IMAGE.brokers[2], replicas_on(9, [DOOMED]), delete=True)
    assert stopped == StopReplicaRequest(
        controller_id=1,
        is_kraft_controller=False,
        controller_epoch=7,
        broker_epoch=102,
        topic_states=[
            StopReplicaTopicState(
                topic_name="t",
                partition_states=[StopReplicaPartitionState(partition_index=0, leader_epoch=4, delete_partition=False)],
            )
        ],
    )
    assert EPOCH_DURING_DELETE == -2
    assert deleted.topic_states == [
        StopReplicaTopicState(
            topic_name="d",
            partition_states=[
                StopReplicaPartitionState(partition_index=0, leader_epoch=-2, delete_partition=True),
                StopReplicaPartitionState(partition_index=1, leader_epoch=-2, delete_partition=True),
            ],
        )
    ]


async def test_each_broker_is_sent_its_versions(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """A broker that takes older versions is sent all three requests in these, and ends up with the
    same metadata as the others.
    """
    cluster = SmallCluster(nursery, memory)
    cluster.versions[2] = ControlVersions(5, 7, 3)
    await cluster.start_in_turn(1, 2, 3)
    await cluster.create("t", "gone", partitions=3, replication_factor=3)
    await cluster.delete("gone")
    await cluster.until(lambda: {(each, ApiKey.STOP_REPLICA) for each in (2, 3)} <= {sent[:2] for sent in cluster.sent})
    await cluster.controller.propagation.wait_acknowledged()
    for broker_id, versions in ((2, (5, 7, 3)), (3, (7, 8, 4))):
        keys = (ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA, ApiKey.STOP_REPLICA)
        assert {each for each in cluster.sent if each[0] == broker_id} == {
            (broker_id, key, version) for key, version in zip(keys, versions, strict=True)
        }
    assert [*cluster.seen(2).topics.values()] == [*cluster.seen(3).topics.values()]
