"""The entities of the metadata: topics, partitions, brokers, and the configs of brokers.

Rule: an entity never changes; a change makes a new one.
"""

from collections.abc import Container, Mapping

import msgspec
from immutables import Map

NO_LEADER = -1
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
