"""Deltas: the changes of an image, as data.

A delta says what one change makes of the cluster's metadata. The writer applies it to the image,
asks it after a doubtful commit whether a freshly loaded image shows it, and waits with the response
until a node's image does; the audit log and the gateway apply the same deltas. Kafka has records
for this (TopicRecord, PartitionChangeRecord, ConfigRecord, RemoveTopicRecord).

Rule: a delta never changes and holds values only, so that it can be compared, shown and sent.
"""

from collections.abc import Mapping

import msgspec
from immutables import Map

from .entities import NO_TOPIC_ID, EntityConfigs, Partition, Topic
from .entity_paths import Entity, entity_of, with_changes
from .image import Image


class Delta(msgspec.Struct, frozen=True):
    """A change that changes nothing, and the base of all others."""

    @property
    def changed_topic(self) -> str | None:
        return None

    @property
    def is_read_from_store(self) -> bool:
        """Whether nodes read what it changes from the store, because UpdateMetadata lacks it."""
        return False

    def apply(self, image: Image) -> Image:
        return image

    def evolve(self, topic: Topic | None) -> Topic | None:
        """Return the topic of this name after the change, given the one before it; None stands for
        no topic.
        """
        return topic

    def holds(self, _image: Image) -> bool:
        """Whether an image that was read from the store shows that the change took effect."""
        return True

    def is_complete(self, _image: Image) -> bool:
        """Whether a node's image shows the change, so that it can be answered."""
        return True

    def is_overtaken(self, _image: Image) -> bool:
        """Whether the controller's image shows that the topic has been deleted since, or marked for
        it, so that the change never completes.
        """
        return False


NO_CHANGE = Delta()


class TopicDelta(Delta, frozen=True):
    """A change of one topic."""

    name: str
    topic_id: bytes
    """The id of the topic that is meant; NO_TOPIC_ID for any topic of this name."""

    @property
    def changed_topic(self) -> str:
        return self.name

    def evolve(self, topic: Topic | None) -> Topic | None:
        return self._changed(topic) if topic is not None and self._is_about(topic) else topic

    def is_overtaken(self, image: Image) -> bool:
        now = self._meant(image)
        return now is None or now.marked_for_deletion

    def apply(self, image: Image) -> Image:
        after = self.evolve(image.topics.get(self.name))
        return image.with_topic(after) if after is not None else image.with_topics((), (self.name,))

    def _changed(self, topic: Topic) -> Topic:
        return topic

    def _is_about(self, topic: Topic) -> bool:
        return self.topic_id in (NO_TOPIC_ID, topic.topic_id)

    def _meant(self, image: Image) -> Topic | None:
        topic = image.topics.get(self.name)
        return topic if topic is not None and self._is_about(topic) else None


class TopicBecomes(TopicDelta, frozen=True):
    """A topic that is created, or that is as it was read, whatever it was before."""

    topic: Topic

    @classmethod
    def of(cls, topic: Topic) -> "TopicBecomes":
        return cls(topic.name, topic.topic_id, topic)

    @property
    def is_read_from_store(self) -> bool:
        return bool(self.topic.configs)

    def evolve(self, _topic: Topic | None) -> Topic:
        return self.topic

    def holds(self, image: Image) -> bool:
        return self._meant(image) is not None

    def is_complete(self, image: Image) -> bool:
        seen = self._meant(image)
        return seen is not None and len(seen.partitions) == len(self.topic.partitions) and seen.is_complete


class TopicRemoved(TopicDelta, frozen=True):
    def evolve(self, _topic: Topic | None) -> None:
        return None

    def holds(self, image: Image) -> bool:
        return self.name not in image.topics


class TopicMarked(TopicDelta, frozen=True):
    """A topic that is marked for deletion. Its removal is another change, which follows."""

    def _changed(self, topic: Topic) -> Topic:
        return msgspec.structs.replace(topic, marked_for_deletion=True)

    def holds(self, image: Image) -> bool:
        now = self._meant(image)
        return now is None or now.marked_for_deletion

    def is_complete(self, image: Image) -> bool:
        return self._meant(image) is None  # nodes forget a topic as soon as it is marked

    def is_overtaken(self, _image: Image) -> bool:
        return False


class TopicIdentified(TopicDelta, frozen=True):
    """A topic whose znode gets the id that it is known by, or its first one."""

    new_id: bytes
    version: int
    """The version of the topic znode with the id."""

    def _changed(self, topic: Topic) -> Topic:
        return msgspec.structs.replace(topic, topic_id=self.new_id, lacks_id=False, version=self.version)

    def holds(self, image: Image) -> bool:
        return image.topic_by_id(self.new_id) is not None


class TopicConfigured(TopicDelta, frozen=True):
    """A topic that has exactly these configs, in this version of their znode."""

    configs: EntityConfigs

    @property
    def is_read_from_store(self) -> bool:
        return True

    def _changed(self, topic: Topic) -> Topic:
        return topic.with_configs(self.configs.configs, self.configs.version)

    def holds(self, image: Image) -> bool:
        topic = image.topics.get(self.name)
        return topic is not None and topic.has_configs(self.configs.configs, self.configs.version)


class PartitionsChanged(TopicDelta, frozen=True):
    """A topic of which some partitions have these states and replicas, or are added with them."""

    partitions: Mapping[int, Partition]
    version: int | None = None
    """The version of the topic znode, if the change writes it."""
    count: int | None = None
    """The number of partitions after the change, if it adds some."""
    has_parent: bool = False
    """Whether the change creates the znode above the states, or knows that it exists."""

    def _changed(self, topic: Topic) -> Topic:
        after = topic.with_partitions(self.partitions, version=self.version)
        if self.has_parent and not after.has_partitions_znode:
            return msgspec.structs.replace(after, has_partitions_znode=True)
        return after

    def holds(self, image: Image) -> bool:
        now = self._meant(image)
        return (
            now is not None
            and (self.version is None or now.version >= self.version)
            and all(
                index < len(now.partitions) and now.partitions[index].partition_epoch >= state.partition_epoch
                for index, state in self.partitions.items()
            )
        )

    def is_complete(self, image: Image) -> bool:
        """Whether the node shows these elections or later ones, and a topic that has grown with a
        leader of each partition.
        """
        now = self._meant(image)
        if now is None:
            return False
        if self.count is not None:
            return len(now.partitions) >= self.count and now.is_complete
        return all(
            index < len(now.partitions) and now.partitions[index].leader_epoch >= state.leader_epoch
            for index, state in self.partitions.items()
        )


class ReplicasLost(TopicDelta, frozen=True):
    """A topic of which exactly these replicas of some partitions are lost, by partition: live
    brokers have lost their directories. The store does not hold this.
    """

    lost: Mapping[int, tuple[int, ...]]

    def _changed(self, topic: Topic) -> Topic:
        return topic.with_partitions(
            {
                index: msgspec.structs.replace(partition, lost_replicas=self.lost[index])
                for index, partition in enumerate(topic.partitions)
                if index in self.lost
            }
        )


class EntitiesChanged(Delta, frozen=True):
    """Entities that have a znode each, as they are after the change, by path; None if one is no
    more.
    """

    entities: Mapping[str, Entity | None]

    @property
    def is_read_from_store(self) -> bool:
        return True

    def apply(self, image: Image) -> Image:
        return with_changes(image, self.entities)

    def holds(self, image: Image) -> bool:
        return all(entity_of(image, path) == entity for path, entity in self.entities.items())


class ConfigsLeft(Delta, frozen=True):
    """The configs that a deleted topic has left behind, by the version of their znode; -1 if there
    are none.
    """

    name: str
    version: int

    def apply(self, image: Image) -> Image:
        return image.with_leftover_configs(self.name, self.version)


class OutsideOfTheImage(Delta, frozen=True):  # nobody knows the outcome of a doubtful commit
    def holds(self, _image: Image) -> bool:
        return False


def broker_configs(path: str, configs: EntityConfigs) -> EntitiesChanged:
    """Return the change of the configs of a broker, or of all brokers. `path` is theirs below
    `/config`.
    """
    return EntitiesChanged(Map({f"/config/{path}": configs}))
