"""The values that the administrative client takes and returns, named as in Kafka's AdminClient."""

from collections.abc import Mapping
from enum import IntEnum
from typing import TypeVar

import msgspec

from ..protocol.acls import (
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from ..protocol.config_resources import ConfigOperation, ResourceType
from ..protocol.error_codes import ErrorCode
from .errors import AdminError

T = TypeVar("T")
K = TypeVar("K")

Results = dict[K, T | AdminError]
"""The value or the error of each element of a batch (K117-2)."""

BROKER_DEFAULT = -1
"""A count of partitions or replicas that the broker's configuration decides (KIP-464)."""


class NewTopic(msgspec.Struct, frozen=True):
    """A topic to be created, with counts or with the broker ids of each partition's replicas, the
    preferred leader first.
    """

    name: str
    num_partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    replica_assignments: tuple[tuple[int, ...], ...] = ()
    configs: Mapping[str, str | None] = {}


class CreatedTopic(msgspec.Struct, frozen=True):
    """A created or validated topic as the broker reports it. Brokers before version 5 of
    CreateTopics (KIP-525) report no counts (-1) and no id (16 zero bytes).
    """

    topic_id: bytes
    num_partitions: int
    replication_factor: int


class TopicPartition(msgspec.Struct, frozen=True, order=True):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Replica(msgspec.Struct, frozen=True, order=True):
    """The replica of a partition on a broker."""

    broker_id: int
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on broker {self.broker_id}"


class OffsetSpec(IntEnum):
    """The offsets of a partition that have no timestamp."""

    LATEST = -1
    """The offset behind the last record."""
    EARLIEST = -2
    """The offset of the first record."""
    MAX_TIMESTAMP = -3
    """The offset of the record with the highest timestamp (KIP-734)."""


class ListedOffset(msgspec.Struct, frozen=True):
    """An offset of a partition."""

    offset: int
    """-1 if there is no such record."""
    timestamp_ms: int
    """The record's timestamp in milliseconds since 1970; -1 if no record was looked for."""
    leader_epoch: int
    """The epoch of the leader that wrote the record; -1 if it is unknown."""


class ReplicaLog(msgspec.Struct, frozen=True):
    """What a broker has of a replica in one of its directories."""

    size_bytes: int
    offset_lag: int
    """How many records it is behind; for a replica that moves, behind the one it replaces."""
    is_future: bool
    """Whether it will take the place of the replica in another directory."""


class LogDirDescription(msgspec.Struct, frozen=True):
    """A directory of a broker."""

    path: str
    error: AdminError | None
    replicas: Mapping[TopicPartition, ReplicaLog]
    total_bytes: int | None
    """The size of its volume, None if unknown (KIP-827)."""
    usable_bytes: int | None


class OffsetAndMetadata(msgspec.Struct, frozen=True):
    """The offset of a group in a partition."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class GroupListing(msgspec.Struct, frozen=True, order=True):
    """A group as its coordinator lists it."""

    group_id: str
    protocol_type: str
    """`consumer` if it has or had consumers as members."""
    state: str
    """Such as `Empty` or `Stable`; empty from brokers before Kafka 2.6."""


class GroupDescription(msgspec.Struct, frozen=True):
    """A group as its coordinator describes it."""

    group_id: str
    state: str
    """`Dead` if there is no such group."""
    protocol_type: str
    members: int
    """How many members it has."""
    coordinator: int
    """The id of the broker that coordinates it."""


class PartitionReassignment(msgspec.Struct, frozen=True):
    """A partition whose replicas are being moved (KIP-455)."""

    replicas: tuple[int, ...]
    """The broker ids that it is to have, then those that it is not to keep."""
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The broker ids that the partition is to have."""
        return tuple(each for each in self.replicas if each not in self.removing_replicas)


class ScramCredentialInfo(msgspec.Struct, frozen=True):
    """A user's credential as a cluster shows it; the keys are never shown."""

    mechanism: str
    """`SCRAM-SHA-256` or `SCRAM-SHA-512`."""
    iterations: int


class ScramUpsertion(msgspec.Struct, frozen=True):
    """A password that a user is to have for a mechanism."""

    mechanism: str
    password: str
    iterations: int = 4096

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.mechanism!r}, iterations={self.iterations})"


class ScramDeletion(msgspec.Struct, frozen=True):
    """A mechanism by which a user is no longer to log in."""

    mechanism: str


class DelegationToken(msgspec.Struct, frozen=True):
    """A delegation token (KIP-48). Times are in milliseconds since 1970, principals of the form
    `User:alice`.
    """

    token_id: str
    """The user name for a login by the token."""
    hmac: bytes
    """The password for a login by the token is this secret in base64."""
    owner: str
    requester: str
    """The principal that asked for the token; empty from brokers before Kafka 3.3."""
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    """The time beyond which the token cannot be renewed."""

    def __repr__(self) -> str:
        return f"DelegationToken({self.token_id!r}, owner={self.owner!r}, expires_ms={self.expires_ms})"


QUOTA_TYPES = ("user", "client-id", "ip")
"""The types of the entities that have quotas, in the order in which they are named."""


class ClientQuotaEntity(msgspec.Struct, frozen=True):
    """A user, a client id, both together, or an address; the name None stands for the default."""

    entries: tuple[tuple[str, str | None], ...]
    """Types and names, in the order of `QUOTA_TYPES`."""

    @classmethod
    def of(cls, names: Mapping[str, str | None]) -> "ClientQuotaEntity":
        """Make an entity of names by type, such as `{"user": "alice", "client-id": None}`."""
        return cls(tuple(sorted(names.items(), key=lambda entry: _place(entry[0]))))

    def __str__(self) -> str:
        return ", ".join(f"default {kind}" if name is None else f"{kind} {name}" for kind, name in self.entries)


def _place(entity_type: str) -> tuple[int, str]:
    return QUOTA_TYPES.index(entity_type) if entity_type in QUOTA_TYPES else len(QUOTA_TYPES), entity_type


class ClientQuotaFilterComponent(msgspec.Struct, frozen=True):
    """The entities of a type that a question is about: the one of this name, the default (None), or
    any.
    """

    entity_type: str
    name: str | None = None
    matches_any: bool = False


class TopicListing(msgspec.Struct, frozen=True):
    name: str
    num_partitions: int
    replication_factor: int
    is_internal: bool


class PartitionDescription(msgspec.Struct, frozen=True):
    """A partition as a node describes it; `leader` is None where there is none."""

    index: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)


class TopicDescription(msgspec.Struct, frozen=True):
    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]

    @property
    def replication_factor(self) -> int:
        """How many replicas partition 0 has, as Kafka's tools count."""
        return len(self.partitions[0].replicas) if self.partitions else 0

    @property
    def listing(self) -> TopicListing:
        return TopicListing(self.name, len(self.partitions), self.replication_factor, self.is_internal)


class BrokerDescription(msgspec.Struct, frozen=True):
    broker_id: int
    host: str
    port: int
    rack: str | None


class ClusterDescription(msgspec.Struct, frozen=True):
    """A cluster as a node describes it; `controller_id` is None while there is none."""

    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[BrokerDescription, ...]
    topics: tuple[TopicDescription, ...]


class Resource(msgspec.Struct, frozen=True):
    """A topic or a broker, which have configs; a broker without a name is the default of all."""

    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> "Resource":
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, broker_id: int) -> "Resource":
        return cls(ResourceType.BROKER, str(broker_id))

    @classmethod
    def all_brokers(cls) -> "Resource":
        return cls(ResourceType.BROKER, "")

    @property
    def broker_id(self) -> int | None:
        """The id of the node that alone can answer for this resource; None if any can."""
        return int(self.name) if self.type is ResourceType.BROKER and self.name else None

    def __str__(self) -> str:
        if self.type is ResourceType.TOPIC:
            return f"topic {self.name}"
        return f"broker {self.name}" if self.name else "the cluster's default"


SOURCES = ("unknown", "topic", "broker", "cluster default", "static", "default", "broker logger")
"""The sources of a config's value in words; the index is Kafka's ConfigSource."""
SET_HERE = {ResourceType.TOPIC: ("topic",), ResourceType.BROKER: ("broker", "cluster default")}
"""The sources of values that were set on the resource itself, and can be unset there."""


class ConfigEntry(msgspec.Struct, frozen=True):
    """A config as a broker describes it; `value` is None if it is secret or not set."""

    name: str
    value: str | None
    source: str
    is_read_only: bool
    is_sensitive: bool


class AlterConfigOp(msgspec.Struct, frozen=True):
    """One change of a config; DELETE has no value."""

    operation: ConfigOperation
    name: str
    value: str | None = None


class AclBinding(msgspec.Struct, frozen=True, order=True):
    """One ACL: an entry for the resources of a pattern."""

    pattern: ResourcePattern
    entry: AccessControlEntry


class AclBindingFilter(msgspec.Struct, frozen=True):
    """The ACLs that a question is about. None, and the members ANY, match everything. The pattern
    type MATCH finds each ACL that applies to the resource of this name.
    """

    resource_type: AclResourceType = AclResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: PermissionType = PermissionType.ANY


def result_of(code: int, message: str | None, value: T) -> T | AdminError:
    """Return the value, or an AdminError if the code says no."""
    return value if code == ErrorCode.NONE else AdminError(code, message)
