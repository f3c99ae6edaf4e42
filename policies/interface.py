"""The interface that the author of a policy imports (KIP-201, in Python): one class, which is asked
about every change.

    from minicontroller import policies

    class TeamPolicy(policies.TopicManagementPolicy):
        def validate_create_topic(self, request, cluster):
            if request.requested_state.replication_factor < 3:
                raise policies.PolicyViolation("Topics need replication factor 3.")

A policy judges frozen snapshots: it cannot change the request, and what it sees does not change
while it looks. A method that returns None allows the request. `PolicyViolation` refuses it, with a
message for the client. Everything else means that the policy is broken, which refuses the request,
too: another exception, a returned value, or a method that takes longer than `policy.timeout.ms`.
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
    """The request violates the policy. Its text is sent to the client as the message of the error
    POLICY_VIOLATION (44).
    """


class TopicState(msgspec.Struct, frozen=True, kw_only=True):
    """A topic as it is."""

    num_partitions: int
    replication_factor: int
    """The number of replicas of partition 0."""
    replica_assignments: Mapping[int, Sequence[int]]
    """Maps each partition to its broker ids, the preferred leader first. While a partition is being
    reassigned, they include the replicas that are added and those that will be removed.
    """
    configs: Mapping[str, str]
    """The topic's own configs, without defaults. Values have the canonical form in which Kafka
    would show them, however they were written: ` TRUE` is `true`, `+05` is `5`, and `compact,
    compact` is `compact`. Judge these values: they take effect.
    """
    raw_configs: Mapping[str, str] = NO_CONFIGS
    """The configs as they were written and are stored."""
    marked_for_deletion: bool = False
    """Whether the topic was deleted and its clean-up is not complete."""
    internal: bool = False
    """Whether the topic is one of Kafka's internal topics."""

    def __post_init__(self) -> None:
        # A dict could be changed by whoever has it; other mappings are given read-only.
        if type(self.replica_assignments) is dict:
            rows = {partition: tuple(replicas) for partition, replicas in self.replica_assignments.items()}
            force_setattr(self, "replica_assignments", MappingProxyType(rows))
        for name in ("configs", "raw_configs"):
            if type(configs := getattr(self, name)) is dict:
                force_setattr(self, name, MappingProxyType(dict(configs)))


class RequestedTopicState(TopicState, frozen=True, kw_only=True):
    """A topic as it will be if the request is allowed. Counts are resolved, and so never -1 (the
    broker's default).
    """

    generated_replica_assignments: bool = False
    """Whether the controller chose the replicas, because the request gave only counts."""
    default_configs: Mapping[str, str] = NO_CONFIGS
    """The cluster's defaults for topics that differ from Kafka's own defaults."""

    @property
    def effective_configs(self) -> Mapping[str, str]:
        """All configs of a topic with the values that will hold: `configs`, and defaults."""
        return EffectiveConfigs(self.configs, self.default_configs)


class ClusterState(Protocol):
    """The cluster before the request takes effect, but after the elements before it in the same
    request.
    """

    def topic_state(self, topic: str) -> TopicState | None: ...

    def topics(
        self, *, include_internal: bool = False, include_marked_for_deletion: bool = False
    ) -> frozenset[str]: ...

    @property
    def cluster_size(self) -> int:
        """The number of registered brokers."""


class PolicyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of every request that concerns a topic."""

    topic: str
    """The name of the topic."""
    principal: str | None
    """The client's principal as Kafka writes it, `User:alice`; None if it is not authenticated."""
    client_id: str | None = None
    """The client id that the client sent."""
    client_host: str = ""
    """The IP address of the client."""
    api: str = ""
    """Kafka's name of the API that the client called, such as `IncrementalAlterConfigs`; `Metadata`
    for an automatic creation.
    """
    validate_only: bool = False
    """Whether the client only asks if the request would be allowed."""
    time_ms: int | None = None
    """When the controller judges the request, in milliseconds since 1970. It is None only in tests
    that do not set it.
    """


class CreateTopicRequest(PolicyRequest, frozen=True, kw_only=True):
    """The creation of a topic."""

    requested_state: RequestedTopicState
    """The topic as it will be."""
    automatic: bool = False
    """Whether the topic is created automatically, because a client used it
    (`auto.create.topics.enable`), and not by CreateTopics.
    """


def operation_kinds(operands: Mapping[str, str | None]) -> dict[str, str]:
    """Derive the kinds of operations from their operands: `delete` for None, otherwise `set`."""
    return {key: "delete" if operand is None else "set" for key, operand in operands.items()}


def _read_only_rows(rows: Mapping[int, Sequence[int] | None]) -> Mapping[int, Sequence[int] | None]:
    return MappingProxyType({each: None if row is None else tuple(row) for each, row in rows.items()})


class AlterTopicRequest(PolicyRequest, frozen=True, kw_only=True):
    """A change of a topic's configs or number of partitions, or a reassignment of its partitions to
    other brokers.
    """

    requested_state: RequestedTopicState
    """The whole topic after the change. Before it, it is `cluster.topic_state(request.topic)`."""
    config_operations: Mapping[str, str | None] | None = None
    """For a change of configs: the keys that the request names, and those that AlterConfigs deletes
    by leaving them out, with their operands in canonical form; None deletes a key. For other
    changes this is None.
    """
    config_operation_kinds: Mapping[str, str] | None = None
    """The operation on each of these keys: `set`, `delete`, `append` or `subtract`."""
    reassignments: Mapping[int, Sequence[int] | None] | None = None
    """For AlterPartitionReassignments: maps each partition that the request names to the broker ids
    that it is to have, the preferred leader first; None cancels its reassignment. For other changes
    this is None.
    """
    state_may_be_old: bool = False
    """Whether the state before the change was read from a cluster that others change, too, as at a
    gateway. What the request names may then be a change although it looks as if the topic had it
    already.
    """

    def __post_init__(self) -> None:
        if type(self.reassignments) is dict:
            force_setattr(self, "reassignments", _read_only_rows(self.reassignments))
        operands = self.config_operations
        if operands is not None:
            kinds = operation_kinds(operands) if self.config_operation_kinds is None else self.config_operation_kinds
            force_setattr(self, "config_operations", MappingProxyType(canonical_operands(operands)))
            force_setattr(self, "config_operation_kinds", MappingProxyType(dict(kinds)))


class EntityRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of every request that changes the configs of a broker or the levels of loggers.
    Fields of the same names mean the same as in requests that concern topics.
    """

    broker: str
    """The id of the broker; empty for the default of all brokers."""
    principal: str | None
    """The client's principal as Kafka writes it, `User:alice`; None if it is not authenticated."""
    config_operations: Mapping[str, str | None]
    """The keys that the request names, and those that AlterConfigs deletes by leaving them out,
    with their operands in canonical form; None deletes a key.
    """
    config_operation_kinds: Mapping[str, str] | None = None
    """The operation on each of these keys: `set`, `delete`, `append` or `subtract`."""
    before: Mapping[str, str] = NO_CONFIGS
    """The configs or levels as they are, in canonical form."""
    after: Mapping[str, str] = NO_CONFIGS
    """The configs or levels as they will be if the request is allowed, in canonical form."""
    raw_before: Mapping[str, str] | None = None
    """The configs or levels before the request as they are written."""
    raw_after: Mapping[str, str] | None = None
    """The configs or levels after the request as they will be written."""
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
    """A change of the dynamic configs of a broker or, if `broker` is empty, of the default of all
    brokers. `before` and `after` have the configs that the cluster stores, without those of a
    node's file.
    """

    default_configs_before: Mapping[str, str] = NO_CONFIGS
    """The defaults for topics before the change that differ from Kafka's own defaults, with the
    file of the controller's node taken into account.
    """
    default_configs: Mapping[str, str] = NO_CONFIGS
    """The default configs after the change."""
    state_may_be_old: bool = False
    """As for a topic: whether `before` may be old."""

    @property
    def effective_configs(self) -> Mapping[str, str]:
        """All configs of a topic with the defaults that will hold after the change."""
        return EffectiveConfigs(NO_CONFIGS, self.default_configs)


class AlterLoggersRequest(EntityRequest, frozen=True, kw_only=True):
    """A change of the levels of a node's loggers. `before` and `after` map the loggers that the
    request names to the levels that hold; a logger whose level is deleted inherits one.
    """


class DeleteTopicRequest(PolicyRequest, frozen=True, kw_only=True):
    """The deletion of a topic."""

    created_ms: int | None = None
    """When the topic was created, in milliseconds since 1970, by the store's clock. It has to be
    read from the store, so it is None unless a rule uses it.
    """


class DeleteRecordsRequest(PolicyRequest, frozen=True, kw_only=True):
    """The deletion of records of a topic."""

    delete_records_offsets: Mapping[int, int]
    """Maps partitions to the offset before which records are deleted; -1 is the high watermark."""

    def __post_init__(self) -> None:
        if type(self.delete_records_offsets) is dict:
            force_setattr(self, "delete_records_offsets", MappingProxyType(dict(self.delete_records_offsets)))


class AdminRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A change of something whose state a policy does not see: ACLs, the SCRAM credentials of a
    user, quotas, delegation tokens, groups with their offsets, elections of leaders, the
    directories of replicas, and the configs of groups and of client metrics. Fields of the same
    names mean the same as in requests that concern topics.
    """

    api: str
    """Kafka's name of the API that the client called, such as `CreateAcls`."""
    kind: str
    """The kind of what changes: `acl`, `user`, `client_quota`, `token`, `group`, `topic` for an
    election, `replica` for the directories of replicas at the node that is asked, `group_config`
    or, for what clients are to measure, `client_metrics`. A gateway asks about the last two.
    """
    name: str
    """The name of what changes, as the audit log has it: `Topic:PREFIXED:sales.` for the ACLs of a
    resource pattern, the name of a user, `user=alice,client-id=<default>` for quotas, the id of a
    token or a group, the topic of an election or of replicas.
    """
    principal: str | None
    """The client's principal as Kafka writes it, `User:alice`; None if it is not authenticated."""
    config_operations: Mapping[str, str | None] = NO_CONFIGS
    """The keys that the request changes, with their operands, as the audit log has them: ACLs such
    as `Allow Read to User:alice from *`, SCRAM mechanisms, keys of quotas, partitions with
    the offsets of a group or the directories of replicas such as `orders-0`. None deletes a key,
    and secrets are `[hidden]`.
    """
    config_operation_kinds: Mapping[str, str] | None = None
    """The operation on each of these keys: `set` or `delete`."""
    election_type: str | None = None
    """For ElectLeaders: `preferred` or `unclean`. For other requests this is None."""
    client_id: str | None = None
    client_host: str = ""
    validate_only: bool = False
    time_ms: int | None = None

    def __post_init__(self) -> None:
        if self.config_operation_kinds is None:
            force_setattr(self, "config_operation_kinds", operation_kinds(self.config_operations))
        for name in ("config_operations", "config_operation_kinds"):
            force_setattr(self, name, MappingProxyType(dict(getattr(self, name))))


JudgedRequest = PolicyRequest | EntityRequest | AdminRequest
"""Every request that policies judge."""


class TopicManagementPolicy(ABC):  # noqa: B024 - every method has a default: allow
    """The base class of policies. Override the methods for the requests that you want to judge;
    requests whose method is not overridden are allowed.

    A node has one instance for its whole life, and calls one method at a time.
    """

    def configure(self, configs: Mapping[str, str]) -> None:  # noqa: B027
        """Called once, before all other methods, with the node's configuration as written, without
        secrets.
        """

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: B027
        """Judge the creation of a topic, by CreateTopics or automatically."""

    def validate_alter_topic(self, request: AlterTopicRequest, cluster: ClusterState) -> None:  # noqa: B027
        """Judge a change of a topic's configs or number of partitions, or a reassignment. A request
        to reassign is judged once for each topic, with all its partitions that the request names.
        """

    def validate_delete_topic(self, request: DeleteTopicRequest, cluster: ClusterState) -> None:  # noqa: B027
        """Judge the deletion of a topic, before it is marked for deletion."""

    def validate_delete_records(self, request: DeleteRecordsRequest, cluster: ClusterState) -> None:  # noqa: B027
        """Judge the deletion of records. Called once for each topic, with all its partitions that
        the request names.
        """

    def validate_alter_broker_configs(self, request: AlterBrokerConfigsRequest, cluster: ClusterState) -> None:  # noqa: B027
        """Judge a change of the configs of a broker, or of the default of all brokers."""

    def validate_alter_loggers(self, request: AlterLoggersRequest, cluster: ClusterState) -> None:  # noqa: B027
        """Judge a change of the levels of a node's loggers."""

    def validate_admin(self, request: AdminRequest, cluster: ClusterState) -> None:  # noqa: B027
        """Judge a change of ACLs, users, quotas, delegation tokens, groups or their offsets, or an
        election of leaders. Called once for each resource that the request names.
        """

    def close(self) -> None:  # noqa: B027
        """Called once, when the node stops, within `policy.timeout.ms`."""
