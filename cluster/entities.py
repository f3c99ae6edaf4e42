"""The entities of the metadata: topics, partitions, brokers, configs, ACLs and delegation tokens.

Rule: an entity never changes; a change makes a new one.
"""

from collections.abc import Container, Mapping

import msgspec
from immutables import Map

from ..protocol.acls import AccessControlEntry
from ..protocol.error_codes import ErrorCode
from .errors import Refusal

NO_LEADER = -1
LEADER_DURING_DELETE = -2
"""In UpdateMetadata: forget this partition (Kafka: LeaderAndIsr.LEADER_DURING_DELETE)."""

SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Security protocols with their numbers in control requests."""

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
NO_TOPIC_ID = bytes(16)

NO_CONFIGS: Mapping[str, str] = Map[str, str]()
UNREADABLE = -2
"""The version of what has a znode that cannot be read."""
STATE_IS_LOST = -1
"""The controller epoch of a state that was known, and whose znode is gone or cannot be read."""


class Partition(msgspec.Struct, frozen=True, gc=False):
    """One partition: its assignment (topic znode) and its state (state znode)."""

    replicas: tuple[int, ...]
    """Broker ids; the first is the preferred leader."""
    leader: int = NO_LEADER
    leader_epoch: int = -1
    """-1 until the partition has a state."""
    isr: tuple[int, ...] = ()
    controller_epoch: int = 0
    """The epoch of the controller that wrote the state; STATE_IS_LOST if it must be written again.
    """
    partition_epoch: int = -1
    """The version of the state znode; -1 until it exists."""
    leader_recovery_state: int = 0
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
    """Replicas that are not online. Known to a node's image only, from UpdateMetadata."""
    lost_replicas: tuple[int, ...] = ()
    """Replicas whose directory their live broker has lost. Known to the controller's image only,
    from answers to LeaderAndIsr.
    """

    @property
    def has_state(self) -> bool:
        return self.partition_epoch >= 0 or self.is_state_lost

    @property
    def is_state_lost(self) -> bool:
        """Whether its state is known and has to be written again, because another program has
        damaged or removed it.
        """
        return self.controller_epoch == STATE_IS_LOST

    @property
    def is_moving(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def is_led_as_preferred(self) -> bool:
        """Whether the preferred leader leads: the first replica of the assignment."""
        return self.leader == self.replicas[0]

    def is_online(self, replica: int, live: Container[int]) -> bool:
        """Whether the replica's broker is live and has not lost the replica's directory."""
        return replica in live and replica not in self.lost_replicas

    def is_whole(self, live: frozenset[int]) -> bool:
        return not self.lost_replicas and live.issuperset(self.replicas)

    def offline(self, live: frozenset[int]) -> tuple[int, ...]:
        return () if self.is_whole(live) else tuple(r for r in self.replicas if not self.is_online(r, live))


UNKNOWN_PARTITION = Partition(replicas=())
"""A partition that never had a leader, in a node's image: the controller sends nothing about it,
and responses to clients leave it out.
"""


class Topic(msgspec.Struct, frozen=True, gc=False):
    """One topic. Partition i is `partitions[i]`: the ids are consecutive from 0."""

    name: str
    topic_id: bytes = NO_TOPIC_ID
    """16 bytes."""
    partitions: tuple[Partition, ...] = ()
    configs: Mapping[str, str] = NO_CONFIGS
    """The configs that were set for the topic; empty in a node's image."""
    marked_for_deletion: bool = False
    version: int = -1
    """The version of the topic znode; -1 if it is not known, as in a node's image; UNREADABLE if
    the znode is not what the topic is known to be, so that it must not be overwritten.
    """
    czxid: int = -1
    """The transaction that created the topic znode; -1 if it is not known. Another program may
    write another id into the znode; only a topic that was deleted and created again has another
    transaction.
    """
    lacks_id: bool = False
    """Whether the topic znode has not the id that the topic is known to have."""
    config_version: int = -1
    """The version of the config znode; -1 if there is none."""
    has_partitions_znode: bool = False
    """Whether the znode above the partitions' states exists: other programs create topics without
    it. False in a node's image.
    """

    @property
    def is_readable(self) -> bool:
        """Whether its znode can be read, and may be written over."""
        return self.version != UNREADABLE

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    @property
    def is_seen_by_policies(self) -> bool:
        """Whether `ClusterState.topics` of KIP-201 has the topic if a policy asks for no others."""
        return not (self.marked_for_deletion or self.is_internal)

    @property
    def replication_factor(self) -> int:
        """The number of replicas of partition 0, as everywhere in Kafka; 0 without partitions."""
        return len(self.partitions[0].replicas) if self.partitions else 0

    def partition(self, index: int) -> Partition | None:
        """Return a partition by an id that somebody else gave; None if there is no such one."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None

    def with_partitions(self, changed: Mapping[int, Partition], *, version: int | None = None) -> "Topic":
        """Return the topic with some partitions changed or added. If ids below a new one are
        missing, their partitions are unknown. `version` is that of the topic znode, if it was
        written.
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
        return msgspec.structs.replace(self, configs=configs, config_version=version)

    def has_configs(self, configs: Mapping[str, str], version: int) -> bool:
        return self.config_version == version and self.configs == configs

    @property
    def was_ever_led(self) -> bool:
        """Whether some partition has a state; only then nodes are sent the topic."""
        return any(partition.has_state for partition in self.partitions)

    def for_nodes(self, live: frozenset[int]) -> "Topic":
        """Return the topic as it is sent to nodes: without partitions that were never led, and with
        the replicas that are offline. If neither exist, that is the same object.
        """
        if all(each.has_state and each.is_whole(live) for each in self.partitions):
            return self
        last = max((index for index, each in enumerate(self.partitions) if each.has_state), default=-1)
        partitions = [
            msgspec.structs.replace(each, offline_replicas=each.offline(live), lost_replicas=())
            if each.has_state
            else UNKNOWN_PARTITION
            for each in self.partitions[: last + 1]
        ]
        return msgspec.structs.replace(self, partitions=tuple(partitions))

    @property
    def is_moving(self) -> bool:
        """Whether the replicas of some partition are being moved."""
        return any(partition.is_moving for partition in self.partitions)

    @property
    def is_complete(self) -> bool:
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
    """The broker epoch: the transaction that created its registration."""
    shutting_down: bool = False
    """In controlled shutdown: still registered, no longer electable."""
    holds_replicas: bool = True
    """False for a controller that registers only to be found, and that is no broker otherwise."""
    proves_itself: bool = False
    """Whether the broker is a minicontroller node, which proves the cluster's secret to nodes that
    connect to it. Known to the controller's image only, from the registration.
    """

    @property
    def is_electable(self) -> bool:
        return self.holds_replicas and not self.shutting_down

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


class EntityConfigs(msgspec.Struct, frozen=True, gc=False):
    """The configs of a broker, a user, a client or an address, or of a default, as the store has
    them. Values may be secrets.
    """

    configs: Mapping[str, str] = NO_CONFIGS
    version: int = -1
    """The version of their znode; -1 if there is none."""

    def __repr__(self) -> str:
        return f"EntityConfigs(keys={sorted(self.configs)}, version={self.version})"


NO_ENTITY_CONFIGS = EntityConfigs()


class AclEntries(msgspec.Struct, frozen=True):
    """The ACLs of one resource pattern, as the store has them."""

    entries: frozenset[AccessControlEntry] = frozenset()
    version: int = -1
    """The version of their znode; -1 if there is none, UNREADABLE if nobody knows what it says."""


NO_ACL_ENTRIES = AclEntries()


class FinalizedFeatures(msgspec.Struct, frozen=True):
    """The finalized features of the cluster. This program finalizes none and understands none."""

    version: int = -1
    """The version of `/feature`, which is the epoch of the features; -1 if there is no znode."""
    levels: tuple[tuple[str, int], ...] = ()


NO_FEATURES = FinalizedFeatures()


class TokenInformation(msgspec.Struct, frozen=True):
    """A delegation token, without its HMAC. Times are in milliseconds since 1970, principals of the
    form `User:alice`.
    """

    token_id: str
    owner: str
    requester: str
    """The principal that created the token, for itself or for the owner."""
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    """The time beyond which the token cannot be renewed."""
    version: int = -1
    """The version of its znode; -1 if there is none."""

    def has_expired(self, now_ms: int) -> bool:
        return min(self.expires_ms, self.max_ms) < now_ms


def refuse_unreadable(path: str, version: int) -> None:
    """Refuse to change what cannot be read, because that would erase what others wrote. Raises
    INVALID_CONFIG.
    """
    if version == UNREADABLE:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"{path} in ZooKeeper cannot be read: mend or delete it first.")
