"""Encoded parts of Metadata responses, which are joined to responses.

Rule: a fragment is exactly what the encoder writes for a topic or a broker. It is used as long as
the topic is the same object and the brokers are equal, since entities never change. A change of one
topic costs the encoding of that topic in the versions that clients ask for; a change of the brokers
drops all fragments.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import itemgetter
from struct import Struct
from typing import NamedTuple

from ...cluster.entities import Broker, Endpoint, Partition, Topic
from ...cluster.image import Image
from ...cluster.partition_view import endpoints_at, known_partitions, view, view_before_v6, view_in_v0
from ...protocol.acls import NO_OPERATIONS, SUPPORTED_OPERATIONS, AclResourceType
from ...protocol.compiler import encoder
from ...protocol.messages.metadata import MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic
from .kept_rows import SLACK, Joined, KeptRows

FLEXIBLE_SINCE = 9
"""The first version of Metadata whose structs end in tags (KIP-482)."""
OPERATIONS = Struct(">i")
"""The encoded form of a topic's authorized operations."""
MAX_VARIANTS = 8
"""How many variants are kept, each with up to one fragment for each topic: the clients of a cluster
use few versions at few listeners.
"""


def with_operations(topic: bytes, operations: int, *, has_tags: bool) -> bytes:
    """Return an encoded topic with other authorized operations, which stand at its end, before its
    tags if it has any.
    """
    end = len(topic) - has_tags
    return topic[: end - OPERATIONS.size] + OPERATIONS.pack(operations) + topic[end:]


class Variant(NamedTuple):
    """The variants of a Metadata response for one image: what a request says about its form."""

    version: int
    listener: str
    with_operations: bool
    """Whether the client asked for the authorized operations of each topic."""


class VariantFragments:
    """The encoded topics of one variant, for the image that it followed last."""

    def __init__(self, variant: Variant) -> None:
        self.brokers: list[bytes] = []
        """The encoded brokers that can be reached at the listener, in the order of their ids.
        Shared by responses: not to be changed.
        """
        self.reachable: Mapping[int, Endpoint] = {}
        self._variant = variant
        self._view = view if variant.version >= 6 else view_before_v6 if variant.version else view_in_v0
        self._encode_topic = encoder(MetadataResponseTopic, variant.version)
        self._encode_broker = encoder(MetadataResponseBroker, variant.version)
        self._image: Image | None = None
        self._topics: dict[str, tuple[Topic, bytes]] = {}
        self._all: Joined | None = None
        self._kept = KeptRows[Joined]()

    @property
    def size(self) -> int:
        return len(self._topics)

    def follow(self, image: Image) -> None:
        before = self._image
        if image is before:
            return
        self._image = image
        self._all = None
        if before is None or (image.brokers is not before.brokers and image.brokers != before.brokers):
            self._topics.clear()
            self.reachable = endpoints_at(image.brokers, self._variant.listener)
            self.brokers = [self._broker(image.brokers[broker_id], at) for broker_id, at in self.reachable.items()]
        elif len(self._topics) > len(image.topics) + SLACK:
            self._topics = {name: kept for name, kept in self._topics.items() if name in image.topics}

    def topic(self, topic: Topic) -> bytes:
        kept = self._topics.get(topic.name)
        if kept is not None and kept[0] is topic:
            return kept[1]
        fragment = self._encode_topic(self._element(topic))
        self._topics[topic.name] = (topic, fragment)
        return fragment

    def topic_with_operations(self, topic: Topic, operations: int) -> bytes:
        """Return the encoded element of a topic with these authorized operations, which differ from
        client to client and stand at the end of the element, before its tags.
        """
        return with_operations(self.topic(topic), operations, has_tags=self._variant.version >= FLEXIBLE_SINCE)

    def kept(self, viewer: Hashable, make: Callable[[], Sequence[bytes]]) -> Joined:
        """Return the topics that `make` returns for a viewer, joined. They are kept until the image
        changes, or until those of other viewers need the memory.
        """
        joined = self._kept.get(self._image, viewer)
        if joined is None:
            joined = Joined(make())
            self._kept.keep(self._image, viewer, joined, joined.size)
        return joined

    def all_topics(self) -> Joined:
        """Return the encoded elements of all topics of the image, in the order of their names."""
        if self._all is None:
            topics = {} if self._image is None else self._image.topics
            kept = self._topics.get
            self._all = Joined(
                [
                    held[1] if (held := kept(name)) is not None and held[0] is topic else self.topic(topic)
                    for name, topic in sorted(topics.items(), key=itemgetter(0))
                ]
            )
        return self._all

    def _element(self, topic: Topic) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.is_internal,
            partitions=[self._partition(index, partition) for index, partition in known_partitions(topic)],
            topic_authorized_operations=SUPPORTED_OPERATIONS[AclResourceType.TOPIC]
            if self._variant.with_operations
            else NO_OPERATIONS,
        )

    def _partition(self, index: int, partition: Partition) -> MetadataResponsePartition:
        brokers = {} if self._image is None else self._image.brokers
        seen = self._view(partition, self.reachable, brokers)
        return MetadataResponsePartition(
            error_code=seen.error_code,
            partition_index=index,
            leader_id=seen.leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=seen.replicas,
            isr_nodes=seen.isr,
            offline_replicas=list(partition.offline_replicas),
        )

    def _broker(self, broker: Broker, at: Endpoint) -> bytes:
        return self._encode_broker(
            MetadataResponseBroker(node_id=broker.broker_id, host=at.host, port=at.port, rack=broker.rack)
        )


class MetadataFragments:
    """A node's encoded topics, by variant."""

    def __init__(self) -> None:
        self._variants: dict[Variant, VariantFragments] = {}

    def __len__(self) -> int:
        return len(self._variants)

    def of(self, image: Image, variant: Variant) -> VariantFragments:
        """Return the encoded topics for this image, valid until the next call."""
        fragments = self._variants.get(variant)
        if fragments is None:
            if len(self._variants) >= MAX_VARIANTS:
                del self._variants[next(iter(self._variants))]
            fragments = self._variants[variant] = VariantFragments(variant)
        fragments.follow(image)
        return fragments
