"""The metadata image: the cluster's metadata at one moment.

Rule: an image never changes, so it can be read at any time without a lock. A change makes a new
image that shares everything else with the one before (`immutables.Map`, a hash array mapped trie),
so it costs the same in a small cluster and in a large one. The controller's image is what ZooKeeper
holds; a node's image is what the controller has sent it of topics and brokers, and what ZooKeeper
holds of all else.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec
from immutables import Map

from ..policies.topic_counts import TopicCounts
from ..protocol.acls import ResourcePattern
from .entities import (
    NO_FEATURES,
    NO_TOPIC_ID,
    AclEntries,
    Broker,
    EntityConfigs,
    FinalizedFeatures,
    Partition,
    TokenInformation,
    Topic,
)
from .group_rooms import NO_ROOM, GroupRoom
from .groups import Group
from .topic_names import NameIndex

NO_CONTROLLER = -1

Key = TypeVar("Key", bound=Hashable)
Stored = TypeVar("Stored", EntityConfigs, AclEntries, TokenInformation, Group)
"""The kinds of objects that have a version in the store."""


class Image(msgspec.Struct, frozen=True):
    """The metadata of the cluster at one moment."""

    topics: Map[str, Topic] = Map()
    topic_names: Map[bytes, str] = Map()
    """Names of topics by topic id."""
    name_index: NameIndex = NameIndex()
    """The index that tells which names collide with a new one."""
    brokers: Map[int, Broker] = Map()
    controller_id: int = NO_CONTROLLER
    controller_epoch: int = 0
    counts: TopicCounts | None = None
    """The counts that policies ask for; None unless this image, or one that it was made of, was
    asked for them (`with_counts`).
    """
    configs: Map[str, EntityConfigs] = Map()
    """The configs of brokers, users, clients and addresses by path below `/config`: `brokers/1`,
    `users/<default>`, `users/alice/clients/app`. A user's znode `users/alice/clients` is here, too.
    The configs of a topic are in `Topic`.
    """
    leftover_configs: Map[str, int] = Map()
    """The version of the config znode that a deleted topic of this name left behind, if a creation
    has found one.
    """
    acls: Map[ResourcePattern, AclEntries] = Map()
    tokens: Map[str, TokenInformation] = Map()
    """The delegation tokens by id, those that have expired included."""
    features: FinalizedFeatures = NO_FEATURES
    groups: Map[str, Group] = Map()
    rooms: Map[str, GroupRoom] = Map()
    """The room that groups take in the store, by the principal that owns them, for those that own
    any.
    """

    def topic(self, name: str) -> Topic | None:
        return self.topics.get(name)

    def partition(self, name: str, index: int) -> Partition | None:
        topic = self.topics.get(name)
        return None if topic is None else topic.partition(index)

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics.get(name)

    def live_brokers(self) -> Iterator[Broker]:
        return (broker for _, broker in sorted(self.brokers.items()) if broker.is_electable)

    def live_ids(self) -> frozenset[int]:
        return frozenset(broker_id for broker_id, broker in self.brokers.items() if broker.is_electable)

    def is_live(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_electable

    def replica_brokers(self) -> list[int]:
        """Return the ids of the registered brokers that can hold replicas, in order."""
        return sorted(broker_id for broker_id, broker in self.brokers.items() if broker.holds_replicas)

    def with_topic(self, topic: Topic) -> "Image":
        """Return the image with one topic added or replaced: most changes are of one topic."""
        before = self.topics.get(topic.name)
        if before is not None and before.topic_id != topic.topic_id:
            return self.with_topics((topic,))
        if before is None and topic.name in self.leftover_configs:
            return self.with_topics((topic,))
        names, index = self.topic_names, self.name_index
        if before is None:
            index = index.changed((topic.name,))
            if topic.topic_id != NO_TOPIC_ID:
                names = names.set(topic.topic_id, topic.name)
        topics = self.topics.set(topic.name, topic)
        counts = None if self.counts is None else _counting(self.counts, before, topic)
        return Image(
            topics, names, index, self.brokers, self.controller_id, self.controller_epoch, counts, self.configs,
            self.leftover_configs, self.acls, self.tokens, self.features, self.groups, self.rooms,
        )  # fmt: skip

    def with_topics(self, changed: Iterable[Topic] = (), removed: Iterable[str] = ()) -> "Image":
        """Return the image with some topics added or replaced, and others left out."""
        topics, names, leftovers = self.topics.mutate(), self.topic_names.mutate(), self.leftover_configs
        born, gone_names = [], []
        counts = self.counts
        for name in removed:
            gone = topics.pop(name, None)
            if gone is not None:
                counts = None if counts is None else counts.without(name)
                if names.get(gone.topic_id) == name:  # and not another topic of this id
                    del names[gone.topic_id]
                gone_names.append(name)
        for topic in changed:
            before = topics.get(topic.name)
            if before is None:
                born.append(topic.name)
                if topic.name in leftovers:
                    leftovers = leftovers.delete(topic.name)
            if before is None or before.topic_id != topic.topic_id:
                if before is not None and names.get(before.topic_id) == before.name:
                    del names[before.topic_id]
                if topic.topic_id != NO_TOPIC_ID:
                    names[topic.topic_id] = topic.name
            topics[topic.name] = topic
            counts = None if counts is None else _counting(counts, before, topic)
        index = self.name_index.changed(born, gone_names) if born or gone_names else self.name_index
        return Image(
            topics.finish(), names.finish(), index, self.brokers, self.controller_id, self.controller_epoch, counts,
            self.configs, leftovers, self.acls, self.tokens, self.features, self.groups, self.rooms,
        )  # fmt: skip

    def with_changed_topics(self, changed: Sequence[Topic], removed: Collection[str]) -> "Image":
        """Return the image with some topics added or replaced, and others left out; mostly it is
        one, or none.
        """
        if len(changed) == 1 and not removed:
            return self.with_topic(changed[0])
        return self.with_topics(changed, removed) if changed or removed else self

    def with_czxid(self, created: Iterable[Topic], czxid: int) -> "Image":
        changed = [
            msgspec.structs.replace(topic, czxid=czxid)
            for each in created
            if (topic := self.topics.get(each.name)) is not None and topic.topic_id == each.topic_id
        ]
        return self.with_topics(changed) if changed else self

    def with_configs(self, entity: str, configs: EntityConfigs) -> "Image":
        return msgspec.structs.replace(self, configs=_with(self.configs, entity, configs))

    def with_acls(self, pattern: ResourcePattern, acls: AclEntries) -> "Image":
        return msgspec.structs.replace(self, acls=_with(self.acls, pattern, acls))

    def with_token(self, token_id: str, token: TokenInformation | None) -> "Image":
        return msgspec.structs.replace(self, tokens=_with(self.tokens, token_id, token))

    def with_features(self, features: FinalizedFeatures) -> "Image":
        return msgspec.structs.replace(self, features=features)

    def with_group(self, name: str, group: Group | None) -> "Image":
        rooms = self.rooms
        for each, sign in ((self.groups.get(name), -1), (group, 1)):
            if each is not None:
                owner = each.header.owner
                room = rooms.get(owner, NO_ROOM).plus(each, sign)
                rooms = rooms.set(owner, room) if room.groups else rooms.delete(owner)
        return msgspec.structs.replace(self, groups=_with(self.groups, name, group), rooms=rooms)

    def with_leftover_configs(self, topic: str, version: int) -> "Image":
        """Return the image with this version of the configs that a missing topic left behind; -1
        for none.
        """
        known = self.leftover_configs
        left = known.set(topic, version) if version >= 0 else (known.delete(topic) if topic in known else known)
        return msgspec.structs.replace(self, leftover_configs=left)

    def with_counts(self) -> "Image":
        """Return the image with counts of its topics, which all images that are made of it keep."""
        seen = ((name, len(topic.partitions)) for name, topic in self.topics.items() if topic.is_seen_by_policies)
        return msgspec.structs.replace(self, counts=TopicCounts.of(seen))

    def with_brokers(self, brokers: Iterable[Broker]) -> "Image":
        return msgspec.structs.replace(self, brokers=Map({broker.broker_id: broker for broker in brokers}))


def _with(known: Map[Key, Stored], key: Key, value: Stored | None) -> Map[Key, Stored]:
    if value is None or value.version == -1:
        return known.delete(key) if key in known else known
    return known.set(key, value)


def _counting(counts: TopicCounts, before: Topic | None, now: Topic) -> TopicCounts:
    """Return the counts with the topic as it is now. Most changes are of leaders and change no
    count.
    """
    if not now.is_seen_by_policies:
        return counts.without(now.name)
    if before is not None and before.is_seen_by_policies and len(before.partitions) == len(now.partitions):
        return counts
    return counts.with_topic(now.name, len(now.partitions))
