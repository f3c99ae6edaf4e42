"""The names and types that authors of policies use. A failure here means that existing policies
break.
"""

import inspect

import msgspec
import pytest

from minicontroller import policies
from minicontroller.policies import TopicManagementPolicy

ENTITY = [
    *("broker", "principal", "client_id", "client_host", "api", "validate_only", "time_ms"),
    *("before", "after", "raw_before", "raw_after", "config_operations", "config_operation_kinds"),
]
FIELDS = {
    "TopicState": [
        "num_partitions",
        "replication_factor",
        "replica_assignments",
        "configs",
        "raw_configs",
        "marked_for_deletion",
        "internal",
    ],
    "RequestedTopicState": [
        "num_partitions",
        "replication_factor",
        "replica_assignments",
        "configs",
        "raw_configs",
        "marked_for_deletion",
        "internal",
        "generated_replica_assignments",
        "default_configs",
    ],
    "PolicyRequest": ["topic", "principal", "client_id", "client_host", "api", "validate_only", "time_ms"],
    "CreateTopicRequest": ["requested_state", "automatic"],
    "AlterTopicRequest": [
        *("requested_state", "config_operations", "config_operation_kinds", "reassignments", "state_may_be_old"),
    ],
    "DeleteTopicRequest": ["created_ms"],
    "AlterBrokerConfigsRequest": [*ENTITY, "default_configs_before", "default_configs", "state_may_be_old"],
    "AlterLoggersRequest": ENTITY,
    "DeleteRecordsRequest": ["delete_records_offsets"],
    "AdminRequest": [
        *("api", "kind", "name", "principal", "client_id", "client_host", "validate_only", "time_ms"),
        *("config_operations", "config_operation_kinds", "election_type"),
    ],
}

OF_AUTHORIZERS = {
    "AclOperation",
    "AclResourceType",
    "Action",
    "Authorizer",
    "AuthorizerError",
    "ClusterAuthorizationError",
    "GroupAuthorizationError",
    "Requester",
    "SecurityDisabledError",
    "TopicAuthorizationError",
    "UndecidedError",
}

METHODS = {
    "configure": ["self", "configs"],
    "validate_create_topic": ["self", "request", "cluster"],
    "validate_alter_topic": ["self", "request", "cluster"],
    "validate_delete_topic": ["self", "request", "cluster"],
    "validate_delete_records": ["self", "request", "cluster"],
    "validate_alter_broker_configs": ["self", "request", "cluster"],
    "validate_alter_loggers": ["self", "request", "cluster"],
    "validate_admin": ["self", "request", "cluster"],
    "close": ["self"],
}


def public(kind: type) -> dict[str, object]:
    return {name: value for name, value in vars(kind).items() if not name.startswith("_")}


def test_names() -> None:
    """Everything that a policy or an authorizer needs is imported from one module."""
    of_policies = {*FIELDS, "TopicManagementPolicy", "PolicyViolation", "ClusterState"}
    assert set(policies.__all__) == of_policies | OF_AUTHORIZERS


@pytest.mark.parametrize("name", FIELDS)
def test_fields(name: str) -> None:
    """States and requests carry what KIP-201 names, and who asks from where (K201-2, K201-4)."""
    kind = getattr(policies, name)
    is_about_a_topic = issubclass(kind, policies.PolicyRequest) and name != "PolicyRequest"
    inherited = FIELDS["PolicyRequest"] if is_about_a_topic else []
    assert sorted(kind.__struct_fields__) == sorted(inherited + FIELDS[name])
    assert issubclass(kind, msgspec.Struct)
    assert kind.__struct_config__.frozen


def test_the_policy_has_the_methods_of_the_kip() -> None:
    """A policy overrides these methods, and each of them has a default (K201-1a)."""
    assert {
        name: list(inspect.signature(getattr(TopicManagementPolicy, name)).parameters) for name in METHODS
    } == METHODS
    assert public(TopicManagementPolicy).keys() == METHODS.keys()
    TopicManagementPolicy()  # nothing is abstract


def test_the_cluster_has_the_methods_of_the_kip() -> None:
    """A policy may look at any topic, at all names and at the number of brokers (K201-3)."""
    assert public(policies.ClusterState).keys() == {"topic_state", "topics", "cluster_size"}
    topics = inspect.signature(policies.ClusterState.topics).parameters
    assert {name: parameter.default for name, parameter in topics.items() if name != "self"} == {
        "include_internal": False,
        "include_marked_for_deletion": False,
    }
