"""What the author of a policy imports (KIP-201, in Python): one class that is asked about every
change of a topic.

    from minicontroller.policies import CreateTopicRequest, ClusterState, PolicyViolation,
    TopicManagementPolicy

    class TeamPolicy(TopicManagementPolicy):
        def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:
            if request.requested_state.replication_factor < 3:
                raise PolicyViolation("Topics need replication factor 3, so that one broker can be
                restarted.")

A policy judges frozen snapshots: it cannot change the request, and what it sees does not change
while it looks. A method that returns allows; `PolicyViolation` refuses with its text, which the
caller of the request reads; anything else that is raised refuses too, and so does a method that
returns something or takes longer than `policy.timeout.ms` (the policy is broken, and a broken
policy must not let anything pass).
"""

from abc import ABC
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import msgspec
from msgspec.structs import force_setattr

from .configs.canonical import canonical_configs, canonical_operands
from .configs.effective import EffectiveConfigs

ANONYMOUS = "User:ANONYMOUS"
"""Kafka's principal of a client that has not authenticated. A policy gets None for such a client;
lists of principals and quotas name it like this, and so is a user with the name ANONYMOUS.
"""
NO_CONFIGS: Mapping[str, str] = MappingProxyType({})


class PolicyViolation(Exception):  # noqa: N818 - the name of KIP-201 and of Kafka's own exception
    """The request is against the policy. The text reaches the caller as the message of
    POLICY_VIOLATION (44).
    """


class TopicState(msgspec.Struct, frozen=True, kw_only=True):
    """A topic as it is."""

    num_partitions: int
    replication_factor: int
    """Replicas of partition 0."""
    replica_assignments: Mapping[int, Sequence[int]]
    """Partition to broker ids, the preferred leader first."""
    configs: Mapping[str, str]
    """The topic's own configs, without the broker's defaults: each value in the one form that Kafka
    would show of it, however it was written. ` TRUE` is `true`, `+05` is `5`, `compact, compact` is
    `compact`.
    """
    raw_configs: Mapping[str, str] = NO_CONFIGS
    """The same as they were written, which is what the store keeps. For a look, not for a
    judgement: what takes effect is `configs`.
    """
    marked_for_deletion: bool = False
    internal: bool = False

    def __post_init__(self) -> None:
        # Frozen all the way down: who was given a dict could change what others read later. Other
        # mappings come read-only.
        if type(self.replica_assignments) is dict:
            rows = {partition: tuple(replicas) for partition, replicas in self.replica_assignments.items()}
            force_setattr(self, "replica_assignments", MappingProxyType(rows))
        for name in ("configs", "raw_configs"):
            if type(configs := getattr(self, name)) is dict:
                force_setattr(self, name, MappingProxyType(dict(configs)))


class RequestedTopicState(TopicState, frozen=True, kw_only=True):
    """A topic as it will be if the request is allowed: counts, replicas and configs are resolved,
    never -1.
    """

    generated_replica_assignments: bool = False
    """The controller chose the replicas; the request gave counts only."""
    default_configs: Mapping[str, str] = NO_CONFIGS
    """What the cluster says for topics that say nothing, where that is otherwise than Kafka's own
    default.
    """

    @property
    def effective_configs(self) -> Mapping[str, str]:
        """What would hold: `configs`, and for every other config of a topic the default."""
        return EffectiveConfigs(self.configs, self.default_configs)


class ClusterState(Protocol):
    """The cluster before the request takes effect, earlier elements of the same batch included."""

    def topic_state(self, topic: str) -> TopicState | None:
        """The topic, or None if there is none."""

    def topics(self, *, include_internal: bool = False, include_marked_for_deletion: bool = False) -> frozenset[str]:
        """The names of the topics."""

    @property
    def cluster_size(self) -> int:
        """How many brokers are registered."""


class PolicyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What every request tells."""

    topic: str
    principal: str | None
    """As Kafka writes it, `User:alice`; None if the caller is not authenticated."""
    client_id: str | None = None
    client_host: str = ""
    api: str = ""
    """Kafka's name of the API that the caller used, such as `IncrementalAlterConfigs`; `Metadata`
    for an automatic creation.
    """
    validate_only: bool = False
    time_ms: int | None = None
    """When the controller judged it, in milliseconds since 1970; None in a test that does not care.
    """


class CreateTopicRequest(PolicyRequest, frozen=True, kw_only=True):
    requested_state: RequestedTopicState
    automatic: bool = False
    """Nobody asked for the topic by CreateTopics: somebody used it, and the cluster creates it as
    its configuration says.
    """


def operation_kinds(operands: Mapping[str, str | None]) -> dict[str, str]:
    """Return the kinds of operations of which only the operands are known."""
    return {key: "delete" if operand is None else "set" for key, operand in operands.items()}


class AlterTopicRequest(PolicyRequest, frozen=True, kw_only=True):
    """A change of configs, partitions or replicas. `requested_state` is the whole topic after the
    change; before it is `cluster.topic_state(request.topic)`.
    """

    requested_state: RequestedTopicState
    config_operations: Mapping[str, str | None] | None = None
    """For changes of configs: the keys that the request names or, by leaving them out of
    AlterConfigs, deletes, with the operand (None to delete one), in its canonical form as `configs`
    are. None for other changes.
    """
    config_operation_kinds: Mapping[str, str] | None = None
    """Of the same keys what is done with them: `set`, `delete`, `append` or `subtract`."""

    def __post_init__(self) -> None:
        operands = self.config_operations
        if operands is not None:
            kinds = operation_kinds(operands) if self.config_operation_kinds is None else self.config_operation_kinds
            force_setattr(self, "config_operations", MappingProxyType(canonical_operands(operands)))
            force_setattr(self, "config_operation_kinds", MappingProxyType(dict(kinds)))


class EntityRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A change of something that is no topic and has configs."""

    broker: str
    """Its id."""
    principal: str | None
    """As of a topic, and so are the others that have the same names."""
    config_operations: Mapping[str, str | None]
    config_operation_kinds: Mapping[str, str] | None = None
    before: Mapping[str, str] = NO_CONFIGS
    """Its configs as they are, each value in the one form that Kafka would show of it, as of a
    topic.
    """
    after: Mapping[str, str] = NO_CONFIGS
    """As they will be if the request is allowed."""
    raw_before: Mapping[str, str] | None = None
    """The same as they are written."""
    raw_after: Mapping[str, str] | None = None
    client_id: str | None = None
    client_host: str = ""
    api: str = ""
    validate_only: bool = False
    time_ms: int | None = None

    def __post_init__(self) -> None:
        if self.config_operation_kinds is None:
            force_setattr(self, "config_operation_kinds", operation_kinds(self.config_operations))
        force_setattr(self, "config_operations", canonical_operands(self.config_operations))
        for name in ("before", "after"):
            if getattr(self, f"raw_{name}") is None:
                force_setattr(self, f"raw_{name}", getattr(self, name))
            force_setattr(self, name, canonical_configs(getattr(self, name)))
        for name in ("config_operations", "config_operation_kinds", "before", "after", "raw_before", "raw_after"):
            if type(configs := getattr(self, name)) is not MappingProxyType:
                force_setattr(self, name, MappingProxyType(dict(configs)))


class AlterBrokerConfigsRequest(EntityRequest, frozen=True, kw_only=True):
    """A change of a broker's own configs, or with an empty `broker` of the default of all brokers:
    as they are written in the cluster, and not what a node's file says.
    """

    default_configs_before: Mapping[str, str] = NO_CONFIGS
    """What holds for topics that say nothing, where that is otherwise than Kafka's own default:
    with the file of the controller's node.
    """
    default_configs: Mapping[str, str] = NO_CONFIGS
    """The same after the change."""

    @property
    def effective_configs(self) -> Mapping[str, str]:
        """Every config of a topic, and what would hold for a topic that says nothing of it."""
        return EffectiveConfigs(NO_CONFIGS, self.default_configs)


class AlterLoggersRequest(EntityRequest, frozen=True, kw_only=True):
    """A change of the levels of a node's loggers, by their names. What stands in `before` and
    `after` are those that the request names, with the levels that hold: of one that is deleted,
    what it inherits.
    """


class DeleteTopicRequest(PolicyRequest, frozen=True, kw_only=True):
    created_ms: int | None = None
    """When the topic was created, in milliseconds since 1970 by ZooKeeper's clock. None unless a
    rule asks for it, because it is read from the store: the controller that creates a topic is not
    told.
    """


class DeleteRecordsRequest(PolicyRequest, frozen=True, kw_only=True):
    delete_records_offsets: Mapping[int, int]
    """Partition to the offset below which records go; -1 is the high watermark."""

    def __post_init__(self) -> None:
        if type(self.delete_records_offsets) is dict:
            force_setattr(self, "delete_records_offsets", MappingProxyType(dict(self.delete_records_offsets)))


JudgedRequest = PolicyRequest | EntityRequest
"""Every request that policies judge."""


class TopicManagementPolicy(ABC):  # noqa: B024 - every method has a default: allow
    """Derive from this and override what you want to judge; what is not overridden is allowed.

    One instance serves the whole life of the node; its methods are called one at a time.
    """

    def configure(self, configs: Mapping[str, str]) -> None:  # noqa: B027
        """Called once, before anything else, with the node's configuration as written (secrets left
        out).
        """

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: B027
        """Also asked for topics that are created automatically."""

    def validate_alter_topic(self, request: AlterTopicRequest, cluster: ClusterState) -> None:  # noqa: B027
        """Configs, number of partitions, replicas."""

    def validate_delete_topic(self, request: DeleteTopicRequest, cluster: ClusterState) -> None:  # noqa: B027
        """Asked before the topic is marked."""

    def validate_delete_records(self, request: DeleteRecordsRequest, cluster: ClusterState) -> None:  # noqa: B027
        """Once a topic, with the partitions that the request names."""

    def validate_alter_broker_configs(self, request: AlterBrokerConfigsRequest, cluster: ClusterState) -> None:  # noqa: B027
        """Configs of a broker, or of the default of all brokers."""

    def validate_alter_loggers(self, request: AlterLoggersRequest, cluster: ClusterState) -> None:  # noqa: B027
        """Levels of a node's loggers."""

    def close(self) -> None:  # noqa: B027
        """Called once, when the node stops."""
