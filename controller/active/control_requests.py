"""Makes LeaderAndIsr, UpdateMetadata and StopReplica from an image; all functions are pure.

The versions are those of the receiving broker. The newest ones are accepted by every broker from
Kafka 3.4 on, whatever its `inter.broker.protocol.version`, so no ApiVersions is sent first.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ...cluster.entities import LEADER_DURING_DELETE, SECURITY_PROTOCOLS, Broker, Partition, Topic
from ...cluster.image import Image
from ...protocol.compiler import encoder
from ...protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from ...protocol.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from ...protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest


class ControlVersions(NamedTuple):
    """The versions in which a broker is sent control requests: LeaderAndIsr from 5, UpdateMetadata
    from 5 and StopReplica from 3 on, because earlier ones have another form.
    """

    leader_and_isr: int = 7
    update_metadata: int = 8
    stop_replica: int = 4

    def of(self, message: ControlRequest) -> int:
        if isinstance(message, LeaderAndIsrRequest):
            return self.leader_and_isr
        return self.update_metadata if isinstance(message, UpdateMetadataRequest) else self.stop_replica


EPOCH_DURING_DELETE = -2
"""The leader epoch in StopReplica for a topic that is being deleted (Kafka:
LeaderAndIsr.EPOCH_DURING_DELETE).
"""
COMPLETE_TAG = 10_000
"""This program's tag in UpdateMetadata that says: topics that the request does not name do not
exist. Kafka's brokers ignore unknown tags. Kafka's own field `Type` means the same, but only in
KRaft.
"""


CONFIGS_TAG = 10_001
"""This program's tag in UpdateMetadata that asks the node to reread the configs of brokers, and the
entities whose paths its value lists in JSON, before it responds, or to respond with an error if it
cannot. Kafka's brokers ignore the tag.
"""
PATHS_READER: msgspec.json.Decoder[tuple[str, ...] | None] = msgspec.json.Decoder(tuple[str, ...] | None)

UPDATE_NUMBER_TAG = 10_002
"""This program's tag with the update number, in eight bytes, that a node has reached when it has
applied this request and those before it. Kafka's brokers ignore the tag.
"""

CZXID_TAG = 10_003
"""This program's tag in the topics of UpdateMetadata with the transaction that created the topic's
znode, in eight bytes, by which the next controller tells a topic that was created again from one
whose id another program has changed. Kafka's brokers ignore the tag.
"""

NO_REPLICAS_TAG = 10_004
"""This program's tag in the brokers of UpdateMetadata: the broker holds no replicas."""

RECALL_TAG = 10_005
"""This program's tag in UpdateMetadata that asks the node what it remembers of the topics which its
value names in JSON, and in the response with what it remembers (`recall.py`). Kafka's brokers
ignore the tag.
"""

MOST_PARTITIONS = 2_000
"""The most partitions in one request, about 20 ms of work for sender and receiver each. A single
topic may exceed it.
"""


def leader_states(
    image: Image, broker_id: int, wanted: Mapping[str, Mapping[int, bool]]
) -> Iterator[LeaderAndIsrTopicState]:
    """Yield the states of partitions for LeaderAndIsr to a broker, without those that have no
    replica there any more. `wanted` maps each topic to its partitions, and each partition to
    whether its replica on the broker is new. A large topic is yielded in several parts.
    """
    for name, partitions in wanted.items():
        topic = image.topics.get(name)
        if topic is None or topic.marked_for_deletion:
            continue
        here = [
            index
            for index in sorted(partitions)
            if index < len(topic.partitions)
            and (partition := topic.partitions[index]).has_state
            and broker_id in partition.replicas
        ]
        for start in range(0, len(here), MOST_PARTITIONS):
            states = [
                _leader_and_isr_state(index, topic.partitions[index], partitions[index])
                for index in here[start : start + MOST_PARTITIONS]
            ]
            yield LeaderAndIsrTopicState(topic_name=name, topic_id=topic.topic_id, partition_states=states)


def leader_and_isr(
    image: Image, target: Broker, states: list[LeaderAndIsrTopicState], inter_broker_listener: str
) -> LeaderAndIsrRequest:
    """Make LeaderAndIsr of these states, with the addresses of the partitions' leaders."""
    leaders = {partition.leader for topic in states for partition in topic.partition_states}
    return LeaderAndIsrRequest(
        controller_id=image.controller_id,
        controller_epoch=image.controller_epoch,
        broker_epoch=target.epoch,
        topic_states=states,
        live_leaders=_live_leaders(image, leaders, inter_broker_listener),
    )


def _leader_and_isr_state(index: int, partition: Partition, is_new: bool) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        partition_index=index,
        controller_epoch=partition.controller_epoch,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        partition_epoch=partition.partition_epoch,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding_replicas),
        removing_replicas=list(partition.removing_replicas),
        is_new=is_new,
        leader_recovery_state=partition.leader_recovery_state,
    )


def _live_leaders(image: Image, leaders: Iterable[int], listener: str) -> list[LeaderAndIsrLiveLeader]:
    live = []
    for leader in sorted(leaders):
        broker = image.brokers.get(leader)
        endpoint = broker.endpoint(listener) if broker is not None else None
        if endpoint is not None:
            live.append(LeaderAndIsrLiveLeader(broker_id=leader, host_name=endpoint.host, port=endpoint.port))
    return live


TopicState = UpdateMetadataTopicState | bytes
"""A topic in UpdateMetadata, as a struct or already encoded."""


def topic_states(
    image: Image,
    changed: Mapping[str, set[int] | None],
    forgotten: Mapping[str, Topic],
    whole_topic: Callable[[Topic, frozenset[int]], TopicState],
) -> Iterator[tuple[TopicState, int]]:
    """Yield the topics for UpdateMetadata, each with the number of its partitions there.

    `changed` has the partitions by topic (None: all of them). `forgotten` are topics that are being
    deleted; they come first, since a new topic may have the same name.
    """
    live = image.live_ids()
    for topic in forgotten.values():
        if topic.was_ever_led:
            yield _forgotten_state(topic, live), len(topic.partitions)
    for name, partitions in changed.items():
        now = image.topics.get(name)
        if now is None or now.marked_for_deletion or not now.was_ever_led:
            continue
        if partitions is None or len(partitions) == len(now.partitions):
            yield whole_topic(now, live), len(now.partitions)
        else:
            yield _topic_state(now, sorted(partitions), live), len(partitions)


def update_metadata(
    image: Image,
    target: Broker,
    states: list[TopicState],
    *,
    complete: bool = False,
    configs: bool = False,
    entities: Sequence[str] | None = (),
    update_number: int | None = None,
    recalled: Collection[str] = (),
) -> UpdateMetadataRequest:
    """Make UpdateMetadata of all brokers, which replace those that the target knows, and these
    topics. With `complete`, topics that are not named do not exist.

    With `configs`, the target rereads the configs of brokers before it responds, and these
    `entities`, given by path, or all that new notifications name (None). `update_number` is the
    update that the target has reached with this request. The target tells what it remembers of the
    topics in `recalled`.
    """
    tags = {**({COMPLETE_TAG: b""} if complete else {}), **({CONFIGS_TAG: _paths(entities)} if configs else {})}
    if update_number is not None:
        tags[UPDATE_NUMBER_TAG] = update_number.to_bytes(8, signed=True)
    if recalled:
        tags[RECALL_TAG] = msgspec.json.encode(list(recalled))
    return UpdateMetadataRequest(
        controller_id=image.controller_id,
        controller_epoch=image.controller_epoch,
        broker_epoch=target.epoch,
        topic_states=states,  # type: ignore[arg-type] # elements may be encoded already
        live_brokers=[_live_broker(broker) for _, broker in sorted(image.brokers.items())],
        unknown_tags=tags or None,
    )


def _paths(entities: Sequence[str] | None) -> bytes:
    return msgspec.json.encode(entities)


def reread_entities(tag: bytes) -> Sequence[str] | None:
    """Return the paths that the value of CONFIGS_TAG names, or None for all that new notifications
    name, as a controller of another version may mean.
    """
    try:
        return PATHS_READER.decode(tag)
    except msgspec.DecodeError:
        return None


def encode_topic_state(topic: Topic, live: frozenset[int], version: int) -> bytes:
    encode = encoder(UpdateMetadataTopicState, version)
    return encode(whole_topic_state(topic, live))


def whole_topic_state(topic: Topic, live: frozenset[int]) -> UpdateMetadataTopicState:
    return _topic_state(topic, range(len(topic.partitions)), live)


def _topic_state(topic: Topic, partitions: Iterable[int], live: frozenset[int]) -> UpdateMetadataTopicState:
    return UpdateMetadataTopicState(
        topic_name=topic.name,
        topic_id=topic.topic_id,
        partition_states=[
            UpdateMetadataPartitionState(
                partition_index=index,
                controller_epoch=partition.controller_epoch,
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                isr=list(partition.isr),
                zk_version=partition.partition_epoch,
                replicas=list(partition.replicas),
                offline_replicas=list(partition.offline(live)),
            )
            for index in partitions
            if (partition := topic.partitions[index]).has_state
        ],
        unknown_tags=None if topic.czxid < 0 else {CZXID_TAG: topic.czxid.to_bytes(8, signed=True)},
    )


def _forgotten_state(topic: Topic, live: frozenset[int]) -> UpdateMetadataTopicState:
    """Return the state of a deleted topic: its leader says so, and its epochs are those of a new
    partition (Kafka: LeaderAndIsr.duringDelete).
    """
    return UpdateMetadataTopicState(
        topic_name=topic.name,
        topic_id=topic.topic_id,
        partition_states=[
            UpdateMetadataPartitionState(
                partition_index=index,
                controller_epoch=partition.controller_epoch,
                leader=LEADER_DURING_DELETE,
                isr=list(partition.isr),
                replicas=list(partition.replicas),
                offline_replicas=list(partition.offline(live)),
            )
            for index, partition in enumerate(topic.partitions)
            if partition.has_state
        ],
    )


def _live_broker(broker: Broker) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(
        id=broker.broker_id,
        endpoints=[
            UpdateMetadataEndpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.listener,
                security_protocol=SECURITY_PROTOCOLS[endpoint.security_protocol],
            )
            for endpoint in broker.endpoints
        ],
        rack=broker.rack,
        unknown_tags=None if broker.holds_replicas else {NO_REPLICAS_TAG: b""},
    )


def replicas_on(broker_id: int, topics: Iterable[Topic]) -> dict[str, tuple[Topic, set[int]]]:
    return {
        topic.name: (topic, {i for i, partition in enumerate(topic.partitions) if broker_id in partition.replicas})
        for topic in topics
    }


def still_removed(
    image: Image, broker_id: int, removals: Mapping[str, tuple[Topic, set[int]]]
) -> dict[str, tuple[Topic, set[int]]]:
    """Return the replicas to be removed from a broker, without those that it has got again."""
    left = {}
    for name, (topic, partitions) in removals.items():
        now = image.topics.get(name)
        known = () if now is None else now.partitions
        gone = {i for i in partitions if i >= len(known) or broker_id not in known[i].replicas}
        if gone:
            left[name] = topic, gone
    return left


def stop_replica(
    image: Image, target: Broker, replicas: Mapping[str, tuple[Topic, set[int]]], *, delete: bool
) -> StopReplicaRequest:
    """Make StopReplica of these replicas, which deletes their data too if `delete`."""
    return StopReplicaRequest(
        controller_id=image.controller_id,
        controller_epoch=image.controller_epoch,
        broker_epoch=target.epoch,
        topic_states=[
            StopReplicaTopicState(
                topic_name=name,
                partition_states=[
                    StopReplicaPartitionState(
                        partition_index=index,
                        leader_epoch=EPOCH_DURING_DELETE
                        if topic.marked_for_deletion
                        else topic.partitions[index].leader_epoch,
                        delete_partition=delete,
                    )
                    for index in sorted(partitions)
                ],
            )
            for name, (topic, partitions) in replicas.items()
        ],
    )
