"""Policies of Kafka's older interfaces, as one `TopicManagementPolicy` (K201-9).

Rule: an older policy sees here what it sees in Kafka, and nothing else, except that values are in
canonical form, as for every policy: a policy that refuses `true` refuses ` TRUE`, too.

- `create.topic.policy.class.name` names a class with `validate(request_metadata)`, which is asked
  about new topics. If the request gave counts, the metadata has counts and no replicas; if it named
  replicas, the metadata has replicas and no counts. The configs are those of the request.
- `alter.config.policy.class.name` names a class with `validate(request_metadata)`, which is asked
  about every valid change of the configs of a topic or a broker, also if it leaves them as they
  are. The metadata has the keys that the request names, without those that AlterConfigs deletes by
  leaving them out, and their operands: None for DELETE, whatever value a client sends with it, and
  for APPEND and SUBTRACT the operand, not the result. With
  `alter.config.policy.kraft.compatibility.enable` it has the values that result, and of a topic no
  key that is deleted. It is not asked about partitions and replicas.

`configure(configs)` and `close()` are called if the class has them. `PolicyViolation` refuses.
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
    """A resource whose configs change (Kafka's ConfigResource)."""

    type: ResourceType
    name: str
    """The topic's name, or the broker's id; empty for the default of all brokers."""


class CreateTopicMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """A new topic, as an older policy sees it (Kafka's CreateTopicPolicy.RequestMetadata)."""

    topic: str
    num_partitions: int | None
    replication_factor: int | None
    replicas_assignments: Mapping[int, Sequence[int]] | None
    configs: Mapping[str, str]


class AlterConfigMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Changed configs, as an older policy sees them (Kafka's AlterConfigPolicy.RequestMetadata)."""

    resource: ConfigResource
    configs: Mapping[str, str | None]


class CreateTopicPolicy(Protocol):
    """The interface of the class that `create.topic.policy.class.name` names."""

    def validate(self, request_metadata: CreateTopicMetadata, /) -> None: ...


class AlterConfigPolicy(Protocol):
    """The interface of the class that `alter.config.policy.class.name` names."""

    def validate(self, request_metadata: AlterConfigMetadata, /) -> None: ...


class LegacyPolicies(TopicManagementPolicy):
    """One or two policies of Kafka's older kinds as one policy. Requests that they do not judge
    (deletions, partitions, replicas, records) are allowed.
    """

    def __init__(
        self,
        create: CreateTopicPolicy | None = None,
        alter: AlterConfigPolicy | None = None,
        *,
        shows_results: bool = False,
    ) -> None:
        """`shows_results` is for a policy about configs that sees the values that result instead of
        the operands.
        """
        self.create = create
        self.alter = alter
        self.shows_results = shows_results

    @property
    def policy_name(self) -> str:
        return " and ".join(type(policy).__qualname__ for policy in (self.create, self.alter) if policy is not None)

    def configure(self, configs: Mapping[str, str]) -> None:
        for policy in (self.create, self.alter):
            configure = getattr(policy, "configure", None)
            if configure is not None:
                configure(configs)

    # The result of the older policy is returned, because a result other than None means that the
    # policy is broken.

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        return None if self.create is None else self.create.validate(creation(request))

    def validate_alter_topic(self, request: AlterTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        operations = request.config_operations
        if self.alter is None or operations is None:
            return None
        shown = _named(operations, request.api)
        if self.shows_results:
            configs = request.requested_state.configs
            shown = {name: configs[name] for name in shown if name in configs}
        return self.alter.validate(_alteration(ResourceType.TOPIC, request.topic, shown))

    def validate_alter_broker_configs(self, request: AlterBrokerConfigsRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        if self.alter is None:
            return None
        operations = _named(canonical_operands(request.config_operations), request.api)
        if self.shows_results:
            operations = {name: request.after.get(name) for name in operations}
        return self.alter.validate(_alteration(ResourceType.BROKER, request.broker, operations))

    def close(self) -> None:
        with ExitStack() as both:  # the second is closed even if closing the first one fails
            for policy in (self.alter, self.create):
                close = getattr(policy, "close", None)
                if close is not None:
                    both.callback(close)


def creation(request: CreateTopicRequest) -> CreateTopicMetadata:
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
    """Return the operations that a request names. AlterConfigs does not name what it deletes."""
    if api != ALTER_CONFIGS:
        return operations
    return {key: operand for key, operand in operations.items() if operand is not None}
