"""Asks all nodes, at an election, for the topics that the new controller lacks.

Another program may have damaged the znode of a topic, and the node of the new controller may have
started since: then neither the store nor that node describes the topic in full, and others do.

Rule: the question is an UpdateMetadata with RECALL_TAG, which only the elected controller may send,
and the response tells the topics in the form in which UpdateMetadata sent them. Kafka's brokers
ignore the tag and tell nothing. A node that does not answer holds the election up for
RECALL_SECONDS at most.
"""

import logging
from collections.abc import Collection, Iterable

import msgspec
import trio

from ...cluster.entities import NO_TOPIC_ID, Broker, Partition, Topic
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.znodes.topics import least_topic_bytes
from ...protocol.compiler import decoder, encoder
from ...protocol.error_codes import ErrorCode
from ...protocol.errors import ProtocolError
from ...protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from .channel import LinkFactory, Unreachable
from .control_requests import CZXID_TAG, RECALL_TAG, update_metadata, whole_topic_state

log = logging.getLogger("minicontroller.controller")

RECALL_SECONDS = 5.0
ALWAYS_STORABLE = 1_000
"""The number of partitions that fit into a topic's znode in any store."""
FORM_VERSION = 8
"""The version of UpdateMetadata in whose form topics are told."""
NAMES_READER = msgspec.json.Decoder(list[str])


def is_lacking(topic: Topic) -> bool:
    """Whether the znodes of a topic leave open what nodes may remember: its id, its partitions or
    the state of one.
    """
    has_states = all(partition.leader_epoch >= 0 for partition in topic.partitions)
    return topic.topic_id == NO_TOPIC_ID or not topic.is_readable or not has_states


async def recall(names: Collection[str], image: Image, link: LinkFactory, *, max_topic_bytes: int) -> dict[str, Topic]:
    """Ask all registered brokers but the controller's own for these topics. Return by name those
    that one remembers: of several answers the one with the latest topic.
    """
    told: dict[str, Topic] = {}

    async def ask(broker: Broker) -> None:
        for topic in await _ask(broker, names, image, link, max_topic_bytes):
            if topic.name in names and (topic.name not in told or _age(topic) > _age(told[topic.name])):
                told[topic.name] = topic

    with trio.move_on_after(RECALL_SECONDS):
        async with trio.open_nursery() as nursery:
            for broker_id, broker in image.brokers.items():
                if broker_id != image.controller_id:
                    nursery.start_soon(ask, broker)
    return told


def _age(topic: Topic) -> tuple[int, int, int]:
    return topic.czxid, len(topic.partitions), sum(partition.leader_epoch for partition in topic.partitions)


async def _ask(
    broker: Broker, names: Collection[str], image: Image, link: LinkFactory, max_topic_bytes: int
) -> list[Topic]:
    connection = link(broker)
    try:
        answer = await connection.request(update_metadata(image, broker, [], recalled=names))
        assert isinstance(answer, UpdateMetadataResponse)
        return topics_told(answer, max_topic_bytes)
    except (Unreachable, ProtocolError, Refusal) as error:
        log.warning("broker %d does not tell what it remembers of damaged topics: %s", broker.broker_id, error)
        return []
    finally:
        with trio.move_on_after(0.5, shield=True):
            await connection.aclose()


def topics_told(answer: UpdateMetadataResponse, max_topic_bytes: int) -> list[Topic]:
    """Return the topics in a node's answer. Raises ProtocolError or Refusal."""
    told = (answer.unknown_tags or {}).get(RECALL_TAG)
    if told is None:
        return []
    message, _ = decoder(UpdateMetadataRequest, FORM_VERSION)(told, 0)
    return [topic_of(state, Topic(state.topic_name), max_topic_bytes) for state in message.topic_states]


def remembered(image: Image, tag: bytes) -> bytes:
    """Return the value of RECALL_TAG in the answer to a request with this value of the tag: what
    the image of a node has of the topics that it names. Raises INVALID_REQUEST.
    """
    try:
        names = NAMES_READER.decode(tag)
    except msgspec.DecodeError:
        raise Refusal(ErrorCode.INVALID_REQUEST) from None
    live = image.live_ids()
    known = [whole_topic_state(image.topics[name], live) for name in dict.fromkeys(names) if name in image.topics]
    return encoder(UpdateMetadataRequest, FORM_VERSION)(UpdateMetadataRequest(topic_states=known))


def topic_of(state: UpdateMetadataTopicState, known: Topic, max_topic_bytes: int) -> Topic:
    """Return a topic as UpdateMetadata tells it, merged into what was known of it. Raises
    INVALID_REQUEST.
    """
    partitions = {partition.partition_index: _partition(partition) for partition in state.partition_states}
    _check(partitions, max_topic_bytes)
    merged = known.with_partitions(partitions).partitions
    return Topic(state.topic_name, state.topic_id, merged, czxid=_czxid(state, known.czxid))


def _check(partitions: Iterable[int], max_topic_bytes: int) -> None:
    """Refuse partition indexes that would make the topic too large for its znode, since a topic is
    as long as its last index says. Raises INVALID_REQUEST.
    """
    indexes = list(partitions)
    if not indexes:
        return
    count = max(indexes) + 1
    if min(indexes) < 0 or (count > ALWAYS_STORABLE and least_topic_bytes(count, 1) > max_topic_bytes):
        raise Refusal(ErrorCode.INVALID_REQUEST)


def _czxid(state: UpdateMetadataTopicState, known: int) -> int:
    """Return the transaction that the topic was created in, which only controllers of this program
    tell.
    """
    tag = (state.unknown_tags or {}).get(CZXID_TAG, b"")
    return int.from_bytes(tag, signed=True) if len(tag) == 8 else known


def _partition(state: UpdateMetadataPartitionState) -> Partition:
    replicas = tuple(state.replicas)
    isr = tuple(state.isr)
    return Partition(
        replicas=replicas,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=replicas if isr == replicas else isr,  # most ISRs are complete and share one object with the replicas
        controller_epoch=state.controller_epoch,
        partition_epoch=state.zk_version,
        offline_replicas=tuple(state.offline_replicas),
    )
