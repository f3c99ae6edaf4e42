"""The requests that changes of the cluster put to the policy, for nodes and gateways alike.

Rule: whoever judges a change gives its state before and after; what the policy sees of both, and of
the configs that the request names, is decided here alone. Secrets are redacted.
"""

from collections.abc import Mapping, Sequence

from ..clock import now_ms
from ..cluster.entities import Topic
from ..policies.interface import (
    NO_CONFIGS,
    AdminRequest,
    AlterBrokerConfigsRequest,
    AlterLoggersRequest,
    AlterTopicRequest,
    CreateTopicRequest,
)
from ..policies.requests import RequestBuilder, kinds_with_omitted, operands_with_omitted
from ..process.observe.secrets import configs_for_policies, redact_configs_of
from .changes import Change
from .description import RequestDescription
from .policy.cluster_view import requested, requested_reassignment

Configs = Mapping[str, str]


def asked_by(
    context: RequestDescription, *, validate_only: bool = False, state_may_be_old: bool = False
) -> RequestBuilder:
    """Return the builder of the policy requests about what a client asks for now."""
    return RequestBuilder(
        principal=context.origin.principal,
        client_id=context.client_id,
        client_host=context.origin.client_host,
        api=context.policy_api,
        validate_only=validate_only,
        time_ms=now_ms(),
        state_may_be_old=state_may_be_old,
    )


def creation(
    asked: RequestBuilder, topic: Topic, defaults: Configs, *, is_placed: bool, automatic: bool
) -> CreateTopicRequest:
    """Ask about a new topic. `is_placed` tells whether the request left the choice of replicas to
    the cluster, and `defaults` are the default configs that differ from Kafka's own.
    """
    state = requested(topic, defaults=defaults, generated_replica_assignments=is_placed)
    return asked.create_topic(topic.name, state, automatic=automatic)


def growth(asked: RequestBuilder, after: Topic, defaults: Configs, *, is_placed: bool) -> AlterTopicRequest:
    """Ask about a topic that gets more partitions; the parameters are those of `creation`."""
    state = requested(after, defaults=defaults, generated_replica_assignments=is_placed)
    return asked.alter_topic(after.name, state)


def reassignment(
    asked: RequestBuilder, before: Topic, rows: Mapping[int, Sequence[int] | None], defaults: Configs
) -> AlterTopicRequest:
    """Ask about the replicas that these partitions are to have; None cancels a reassignment.
    Partitions that the topic does not have are judged as if they came after the others.
    """
    state = requested_reassignment(before, rows, defaults=defaults)
    return asked.alter_topic(before.name, state, reassignments=rows)


def topic_configs(
    asked: RequestBuilder, change: Change, before: Configs, after: Topic, defaults: Configs
) -> AlterTopicRequest:
    """Ask about a change of a topic's configs, which leads from these to the topic `after`."""
    kinds = kinds_with_omitted(change.operation_kinds or NO_CONFIGS, before, after.configs)
    return asked.alter_topic(
        after.name,
        requested(after, defaults=defaults),
        config_operations=configs_for_policies(operands_with_omitted(change.operations or NO_CONFIGS, kinds)),
        config_operation_kinds=kinds,
    )


def broker_configs(
    asked: RequestBuilder,
    change: Change,
    configs: tuple[Configs, Configs],
    defaults: tuple[Configs, Configs],
) -> AlterBrokerConfigsRequest:
    """Ask about a change of the configs of a broker, or of the default of all brokers. `configs`
    are those before and after it, and `defaults` the topics' default configs before and after it.
    """
    before, after = configs
    kinds = kinds_with_omitted(change.operation_kinds or NO_CONFIGS, before, after)
    return asked.alter_broker_configs(
        change.resource,
        configs_for_policies(before),
        configs_for_policies(after),
        config_operations=configs_for_policies(operands_with_omitted(change.operations or NO_CONFIGS, kinds)),
        config_operation_kinds=kinds,
        default_configs_before=defaults[0],
        default_configs=defaults[1],
    )


def loggers(asked: RequestBuilder, change: Change, before: Configs, after: Configs) -> AlterLoggersRequest:
    """Ask about the levels of a broker's loggers, before and after the change."""
    return asked.alter_loggers(
        change.resource,
        before,
        after,
        config_operations=redact_configs_of(change.kind, change.operations or NO_CONFIGS),
        config_operation_kinds=change.operation_kinds,
    )


def administration(asked: RequestBuilder, change: Change) -> AdminRequest:
    """Ask about a change of something whose state policies do not see."""
    return asked.admin(
        change.kind,
        change.resource,
        config_operations=redact_configs_of(change.kind, change.operations or NO_CONFIGS),
        config_operation_kinds=change.operation_kinds,
        election_type=change.election_type,
    )
