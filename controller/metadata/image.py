"""The metadata image: what a node knows of the cluster at one moment.

Rule: an image never changes. Whoever holds one may read it for as long as they like; a change makes
a new image that shares everything else with the old one (`immutables.Map`, a hash array mapped
trie), so that it costs the same in a small cluster and in a large one. The controller's image is
what ZooKeeper holds; a node's image is what the controller told it.
"""

from collections.abc import Container, Iterable, Iterator, Mapping

import msgspec
from immutables import Map

from ...policies.topic_counts import TopicCounts
from .topic_names import NameIndex

NO_LEADER = -1
NO_CONTROLLER = -1
LEADER_DURING_DELETE = -2
"""In UpdateMetadata: forget this partition (Kafka: LeaderAndIsr.LEADER_DURING_DELETE)."""

SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""With the numbers that the requests of a controller have for them."""

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
NO_TOPIC_ID = bytes(16)

NO_CONFIGS: Mapping[str, str] = Map[str, str]()
UNREADABLE = -2
"""In the place of a version of configs: their znode is there, and says nothing that can be read."""


class Partition(msgspec.Struct, frozen=True, gc=False):
    """One partition: its assignment (topic znode) and its state (state znode)."""

    replicas: tuple[int, ...]
    """Broker ids; the first is the preferred leader."""
    leader: int = NO_LEADER
    leader_epoch: int = -1
    """-1 until the partition has a state."""
    isr: tuple[int, ...] = ()
    controller_epoch: int = 0
    """Of the controller that wrote the state."""
    partition_epoch: int = -1
    """The version of the state znode; -1 until it exists."""
    leader_recovery_state: int = 0
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
    """Known to a node's image only, from UpdateMetadata."""
    lost_replicas: tuple[int, ...] = ()
    """On brokers that live and have lost the directory. Known to the controller's image only, from
    LeaderAndIsr.
    """

    @property
    def has_state(self) -> bool:
        return self.partition_epoch >= 0

    def is_online(self, replica: int, live: Container[int]) -> bool:
        """Whether the replica's broker lives and has not lost it."""
        return replica in live and replica not in self.lost_replicas

    def is_whole(self, live: frozenset[int]) -> bool:
        """Whether every replica is online."""
        return not self.lost_replicas and live.issuperset(self.replicas)

    def offline(self, live: frozenset[int]) -> tuple[int, ...]:
        """Return the replicas that are not online when these brokers live."""
        return () if self.is_whole(live) else tuple(r for r in self.replicas if not self.is_online(r, live))


UNKNOWN_PARTITION = Partition(replicas=())
"""In a node's image: the controller has not told of it (it never had a leader), so nobody is told
of it.
"""


class Topic(msgspec.Struct, frozen=True, gc=False):
    """One topic. Partition i is `partitions[i]`; ids are consecutive from 0."""

    name: str
    topic_id: bytes = NO_TOPIC_ID
    """16 bytes."""
    partitions: tuple[Partition, ...] = ()
    configs: Mapping[str, str] = NO_CONFIGS
    """The overrides; empty in a node's image, which is not told of them."""
    marked_for_deletion: bool = False
    version: int = -1
    """Of the topic znode; -1 where it is not known, as in a node's image."""
    config_version: int = -1
    """Of the znode of its configs; -1 as long as there is none."""
    has_partitions_znode: bool = False
    """Whether there is one, above the states: others than this controller create topics without.
    False in a node's image.
    """

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    @property
    def is_seen_by_policies(self) -> bool:
        """Whether policies see the topic that ask for no others (KIP-201: ClusterState.topics)."""
        return not (self.marked_for_deletion or self.is_internal)

    @property
    def replication_factor(self) -> int:
        """How many replicas partition 0 has, as everywhere in Kafka; 0 without partitions."""
        return len(self.partitions[0].replicas) if self.partitions else 0

    def with_partitions(self, changed: Mapping[int, Partition], *, version: int | None = None) -> "Topic":
        """Return the topic with some partitions changed or added. Unknown ids below a new one are
        there without a state.

        `version` is that of the topic znode, if it was written.
        """
        partitions = list(self.partitions)
        for index, partition in changed.items():
            if index >= len(partitions):
                partitions += [UNKNOWN_PARTITION] * (index + 1 - len(partitions))
            partitions[index] = partition
        return msgspec.structs.replace(
            self, partitions=tuple(partitions), version=self.version if version is None else version
        )

    def with_configs(self, configs: Mapping[str, str], version: int) -> "Topic":
        """Return the topic with these overrides, in this version of their znode."""
        return msgspec.structs.replace(self, configs=configs, config_version=version)

    def has_configs(self, configs: Mapping[str, str], version: int) -> bool:
        """Whether these overrides were written in this version: a later one tells nothing of what
        it replaced.
        """
        return self.config_version == version and self.configs == configs

    @property
    def was_ever_led(self) -> bool:
        """Whether some partition has a state, so that nodes are told of the topic."""
        return any(partition.has_state for partition in self.partitions)

    def as_told(self, live: frozenset[int]) -> "Topic":
        """Return the topic as nodes know it: without the partitions that were never led, and with
        the replicas that are offline. Mostly itself.
        """
        if all(each.has_state and each.is_whole(live) for each in self.partitions):
            return self
        last = max((index for index, each in enumerate(self.partitions) if each.has_state), default=-1)
        told = [
            msgspec.structs.replace(each, offline_replicas=each.offline(live), lost_replicas=())
            if each.has_state
            else UNKNOWN_PARTITION
            for each in self.partitions[: last + 1]
        ]
        return msgspec.structs.replace(self, partitions=tuple(told))

    @property
    def is_complete(self) -> bool:
        """Whether every partition has a leader."""
        return bool(self.partitions) and all(partition.leader >= 0 for partition in self.partitions)


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """Where a broker listens under one listener name."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"
    """One of SECURITY_PROTOCOLS."""

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Broker(msgspec.Struct, frozen=True, gc=False):
    """A registered broker."""

    broker_id: int
    endpoints: tuple[Endpoint, ...] = ()
    rack: str | None = None
    epoch: int = -1
    """The czxid of its registration."""
    shutting_down: bool = False
    """In controlled shutdown: still registered, no longer electable."""
    proves_itself: bool = False
    """A node of ours, which proves itself to whoever connects to it. Known to the controller's
    image only, from the registration.
    """

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


class EntityConfigs(msgspec.Struct, frozen=True, gc=False):
    """The configs of a broker, or of all brokers, as the store has them."""

    configs: Mapping[str, str] = NO_CONFIGS
    version: int = -1
    """Of their znode; -1 as long as there is none."""


NO_ENTITY_CONFIGS = EntityConfigs()


class Image(msgspec.Struct, frozen=True):
    """The metadata of the cluster at one moment."""

    topics: Map[str, Topic] = Map()
    topic_names: Map[bytes, str] = Map()
    """By topic id."""
    name_index: NameIndex = NameIndex()
    """Which names collide with a new one."""
    brokers: Map[int, Broker] = Map()
    controller_id: int = NO_CONTROLLER
    controller_epoch: int = 0
    counts: TopicCounts | None = None
    """What a policy counts, in this image and all that are made of it; only where somebody asked
    for them (`with_counts`).
    """
    configs: Map[str, EntityConfigs] = Map()
    """By path below `/config`: `brokers/1`, `brokers/<default>`. The configs of a topic are with
    the topic. The controller's only.
    """
    leftover_configs: Map[str, int] = Map()
    """Versions of the configs that a deleted topic of this name left in the store, where a creation
    has met them.
    """

    def topic(self, name: str) -> Topic | None:
        return self.topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics.get(name)

    def live_brokers(self) -> Iterator[Broker]:
        """The brokers that can be elected, in the order of their ids."""
        return (broker for _, broker in sorted(self.brokers.items()) if not broker.shutting_down)

    def live_ids(self) -> frozenset[int]:
        """The ids of the brokers that can be elected."""
        return frozenset(broker_id for broker_id, broker in self.brokers.items() if not broker.shutting_down)

    def is_live(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.shutting_down

    def with_topic(self, topic: Topic) -> "Image":
        """Return the image with one topic changed, which is how most changes come."""
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
            self.leftover_configs,
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
                names.pop(gone.topic_id, None)
                gone_names.append(name)
        for topic in changed:
            before = topics.get(topic.name)
            if before is None:
                born.append(topic.name)
                if topic.name in leftovers:
                    leftovers = leftovers.delete(topic.name)
            if before is None or before.topic_id != topic.topic_id:
                if before is not None:
                    names.pop(before.topic_id, None)
                if topic.topic_id != NO_TOPIC_ID:
                    names[topic.topic_id] = topic.name
            topics[topic.name] = topic
            counts = None if counts is None else _counting(counts, before, topic)
        index = self.name_index.changed(born, gone_names) if born or gone_names else self.name_index
        return Image(
            topics.finish(), names.finish(), index, self.brokers, self.controller_id, self.controller_epoch, counts,
            self.configs, leftovers,
        )  # fmt: skip

    def with_configs(self, entity: str, configs: EntityConfigs) -> "Image":
        """Return the image with these configs of one entity."""
        return msgspec.structs.replace(self, configs=self.configs.set(entity, configs))

    def with_leftover_configs(self, topic: str, version: int) -> "Image":
        """Return the image in which the configs of a topic that does not exist have this version,
        -1 for none.
        """
        known = self.leftover_configs
        left = known.set(topic, version) if version >= 0 else (known.delete(topic) if topic in known else known)
        return msgspec.structs.replace(self, leftover_configs=left)

    def with_counts(self) -> "Image":
        """Return the image so that it keeps count of its topics from now on."""
        seen = ((name, len(topic.partitions)) for name, topic in self.topics.items() if topic.is_seen_by_policies)
        return msgspec.structs.replace(self, counts=TopicCounts.of(seen))

    def with_brokers(self, brokers: Iterable[Broker]) -> "Image":
        """Return the image with exactly these brokers."""
        return msgspec.structs.replace(self, brokers=Map({broker.broker_id: broker for broker in brokers}))


def _counting(counts: TopicCounts, before: Topic | None, now: Topic) -> TopicCounts:
    """Return the counts with the topic as it is now. Most changes are of leaders, and change no
    count.
    """
    if not now.is_seen_by_policies:
        return counts.without(now.name)
    if before is not None and before.is_seen_by_policies and len(before.partitions) == len(now.partitions):
        return counts
    return counts.with_topic(now.name, len(now.partitions))
