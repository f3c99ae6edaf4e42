"""Policies in the shape of Kafka's older interfaces, as one `TopicManagementPolicy` (K201-9).

Rule: an old policy sees here what it sees in Kafka, and nothing else; but of a value the form that
takes effect, as every policy does: what refuses `true` refuses ` TRUE` too.

- `create.topic.policy.class.name`: a class with `validate(request_metadata)`, asked for created
  topics. Either the counts are given or the replicas: what the request left to the controller shows
  as counts, and the replicas are None; for replicas named by the request the counts are None. The
  configs are the request's.
- `alter.config.policy.class.name`: a class with `validate(request_metadata)`, asked for changed
  configs of topics and of brokers. It sees only the keys that the request names, not those that
  AlterConfigs deletes by leaving them out, with their operands: None for DELETE, the operand of
  APPEND and SUBTRACT and not what comes of it. It is not asked where nothing but partitions or
  replicas change, nor where the configs stay as they are.

`configure(configs)` and `close()` are called where the class has them. `PolicyViolation` refuses,
as everywhere.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import Protocol

import msgspec

from ..protocol.config_resources import ResourceType
from .configs.canonical import canonical_operands
from .interface import (
    AlterBrokerConfigsRequest,
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    TopicManagementPolicy,
)

ALTER_CONFIGS = "AlterConfigs"


class ConfigResource(msgspec.Struct, frozen=True):
    type: ResourceType
    name: str
    """The topic, or the broker's id; empty for the default of all brokers."""


class CreateTopicMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What an old policy is told of a new topic."""

    topic: str
    num_partitions: int | None
    replication_factor: int | None
    replicas_assignments: Mapping[int, Sequence[int]] | None
    configs: Mapping[str, str]


class AlterConfigMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What an old policy is told of changed configs."""

    resource: ConfigResource
    configs: Mapping[str, str | None]


class CreateTopicPolicy(Protocol):
    """The shape of `create.topic.policy.class.name`; nothing needs to be derived from it."""

    def validate(self, request_metadata: CreateTopicMetadata, /) -> None: ...


class AlterConfigPolicy(Protocol):
    """The shape of `alter.config.policy.class.name`; nothing needs to be derived from it."""

    def validate(self, request_metadata: AlterConfigMetadata, /) -> None: ...


class LegacyPolicies(TopicManagementPolicy):
    """One or two policies of Kafka's older kinds as one policy. What they do not know (deletions,
    partitions, replicas, records) is allowed.
    """

    def __init__(self, create: CreateTopicPolicy | None = None, alter: AlterConfigPolicy | None = None) -> None:
        self.create = create
        self.alter = alter

    @property
    def policy_name(self) -> str:
        return " and ".join(type(policy).__qualname__ for policy in (self.create, self.alter) if policy is not None)

    def configure(self, configs: Mapping[str, str]) -> None:
        for policy in (self.create, self.alter):
            configure = getattr(policy, "configure", None)
            if configure is not None:
                configure(configs)

    # What the old policy returns is handed on: whoever calls a policy takes anything but None for a
    # broken one.

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        return None if self.create is None else self.create.validate(creation(request))

    def validate_alter_topic(self, request: AlterTopicRequest, cluster: ClusterState) -> None:
        operations = request.config_operations
        if self.alter is None or operations is None or not _configs_change(request, cluster):
            return None
        return self.alter.validate(_alteration(ResourceType.TOPIC, request.topic, _named(operations, request.api)))

    def validate_alter_broker_configs(self, request: AlterBrokerConfigsRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        if self.alter is None:
            return None
        operations = _named(canonical_operands(request.config_operations), request.api)
        return self.alter.validate(_alteration(ResourceType.BROKER, request.broker, operations))

    def close(self) -> None:
        with ExitStack() as both:  # the second is closed even where the first one fails
            for policy in (self.alter, self.create):
                close = getattr(policy, "close", None)
                if close is not None:
                    both.callback(close)


def creation(request: CreateTopicRequest) -> CreateTopicMetadata:
    """Return a request to create a topic as an old policy knows it."""
    state, generated = request.requested_state, request.requested_state.generated_replica_assignments
    return CreateTopicMetadata(
        topic=request.topic,
        num_partitions=state.num_partitions if generated else None,
        replication_factor=state.replication_factor if generated else None,
        replicas_assignments=None if generated else state.replica_assignments,
        configs=state.configs,
    )


def _alteration(kind: ResourceType, name: str, operations: Mapping[str, str | None]) -> AlterConfigMetadata:
    return AlterConfigMetadata(resource=ConfigResource(kind, name), configs=MappingProxyType(dict(operations)))


def _named(operations: Mapping[str, str | None], api: str) -> Mapping[str, str | None]:
    """Return the configs that a request names. AlterConfigs deletes by leaving out, and names
    nothing that it deletes.
    """
    if api != ALTER_CONFIGS:
        return operations
    return {key: operand for key, operand in operations.items() if operand is not None}


def _configs_change(request: AlterTopicRequest, cluster: ClusterState) -> bool:
    before = cluster.topic_state(request.topic)
    # As dicts, because read-only mappings of different kinds are never equal.
    return before is None or dict(before.raw_configs) != dict(request.requested_state.raw_configs)
