"""The requests of clients as messages, and the meaning of the answers for their operations."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from minicontroller.protocol.acls import AclOperation, AclResourceType, PatternType, PermissionType
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages import (
    alter_configs,
    alter_partition_reassignments,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    describe_acls,
    describe_configs,
    elect_leaders,
    incremental_alter_configs,
    metadata,
)
from tests.faults.detector.connection import Request
from tests.faults.detector.history import ACLS, ELECT, OK, REASSIGN, REFUSED, UNKNOWN, Operation

TOPIC, BROKER = 2, 4
SOURCES = {"topic": 1, "broker": 2, "default": 3}
"""Kafka's numbers of where a config was set: what counts for each kind of entity."""

NAMES_OF_ROWS = ("replica_election_results", "filter_results")
"""The fields of answers that have rows, besides those that everybody has."""
ANY_HOST = "*"
PERMITTED = "allow"
"""The value of a principal that may read a resource."""
DOUBTFUL = {
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.BROKER_NOT_AVAILABLE,
}
"""Answers that leave it open whether it was done."""


class Asked(msgspec.Struct):
    """A request with the operation that it is."""

    request: Request
    operation: Operation


def asked(operation: Operation, dice: random.Random, timeout_ms: int) -> Asked:
    return Asked(MAKERS[operation.kind](operation, dice, timeout_ms), operation)


def take(answer: Any, operation: Operation) -> None:
    """Note in the operation what it was answered."""
    row, code = _row(answer, operation)
    operation.code = code
    operation.message = getattr(row, "error_message", None) or None if code else None
    if code in DOUBTFUL:
        operation.outcome = UNKNOWN
    else:
        operation.outcome = REFUSED if code else OK
    if operation.outcome == OK:
        READERS[operation.kind](row, operation)


def _row(answer: Any, operation: Operation) -> tuple[Any, int]:
    if operation.kind == ACLS or (operation.kind in (REASSIGN, ELECT) and answer.error_code):
        return answer, answer.error_code
    rows = next(
        value
        for value in (getattr(answer, name, None) for name in ("topics", "responses", "results", *NAMES_OF_ROWS))
        if value is not None
    )
    if operation.kind == ELECT:
        rows = rows[0].partition_result
    (row,) = rows[0].partitions if operation.kind == REASSIGN else rows
    return row, row.error_code


def name_of(entity: str) -> str:
    name = entity.partition("/")[2]
    return "" if name == "<default>" else name


def kind_of(entity: str) -> str:
    return "topic" if entity.startswith("topics/") else "default" if entity.endswith(">") else "broker"


def resource_type(entity: str) -> int:
    return TOPIC if entity.startswith("topics/") else BROKER


# --- from an operation to its request ---


def _create(operation: Operation, _dice: random.Random, timeout_ms: int) -> Request:
    topic = create_topics.CreatableTopic(
        name=name_of(operation.entity),
        num_partitions=operation.partitions,
        replication_factor=1,
        configs=[create_topics.CreatableTopicConfig(name=key, value=value) for key, value in operation.configs.items()],
    )
    only_validated = operation.only_validated
    return Request(
        ApiKey.CREATE_TOPICS,
        7,
        create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms, validate_only=only_validated),
    )


def _delete(operation: Operation, _dice: random.Random, timeout_ms: int) -> Request:
    names = [name_of(operation.entity)]
    return Request(ApiKey.DELETE_TOPICS, 5, delete_topics.DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms))


def _grow(operation: Operation, _dice: random.Random, timeout_ms: int) -> Request:
    topic = create_partitions.CreatePartitionsTopic(
        name=name_of(operation.entity), count=operation.partitions, assignments=None
    )
    return Request(
        ApiKey.CREATE_PARTITIONS,
        3,
        create_partitions.CreatePartitionsRequest(
            topics=[topic], timeout_ms=timeout_ms, validate_only=operation.only_validated
        ),
    )


def _alter(operation: Operation, _dice: random.Random, _timeout_ms: int) -> Request:
    resource = incremental_alter_configs.IncrementalAlterConfigsResource(
        resource_type=resource_type(operation.entity),
        resource_name=name_of(operation.entity),
        configs=[
            incremental_alter_configs.IncrementalAlterableConfig(name=key, config_operation=verb, value=value)
            for key, verb, value in operation.steps
        ],
    )
    return Request(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[resource], validate_only=operation.only_validated
        ),
    )


def _replace(operation: Operation, _dice: random.Random, _timeout_ms: int) -> Request:
    resource = alter_configs.AlterConfigsResource(
        resource_type=resource_type(operation.entity),
        resource_name=name_of(operation.entity),
        configs=[alter_configs.AlterableConfig(name=key, value=value) for key, value in operation.configs.items()],
    )
    return Request(
        ApiKey.ALTER_CONFIGS,
        2,
        alter_configs.AlterConfigsRequest(resources=[resource], validate_only=operation.only_validated),
    )


def _reassign(operation: Operation, _dice: random.Random, timeout_ms: int) -> Request:
    partition = alter_partition_reassignments.ReassignablePartition(replicas=list(operation.replicas))
    topic = alter_partition_reassignments.ReassignableTopic(name=name_of(operation.entity), partitions=[partition])
    message = alter_partition_reassignments.AlterPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=[topic])
    return Request(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, message)


def _elect(operation: Operation, _dice: random.Random, timeout_ms: int) -> Request:
    topic = elect_leaders.TopicPartitions(topic=name_of(operation.entity), partitions=[0])
    message = elect_leaders.ElectLeadersRequest(topic_partitions=[topic], timeout_ms=timeout_ms)
    return Request(ApiKey.ELECT_LEADERS, 2, message)


def _permit(operation: Operation, _dice: random.Random, _timeout_ms: int) -> Request:
    ((principal, _, _),) = operation.steps
    creation = create_acls.AclCreation(
        resource_type=AclResourceType.TOPIC,
        resource_name=name_of(operation.entity),
        principal=principal,
        host=ANY_HOST,
        operation=AclOperation.READ,
        permission_type=PermissionType.ALLOW,
    )
    return Request(ApiKey.CREATE_ACLS, 3, create_acls.CreateAclsRequest(creations=[creation]))


def _revoke(operation: Operation, _dice: random.Random, _timeout_ms: int) -> Request:
    wanted = delete_acls.DeleteAclsFilter(
        **_literal(operation), principal_filter=operation.steps[0][0] if operation.steps else None
    )
    return Request(ApiKey.DELETE_ACLS, 3, delete_acls.DeleteAclsRequest(filters=[wanted]))


def _acls(operation: Operation, _dice: random.Random, _timeout_ms: int) -> Request:
    message = describe_acls.DescribeAclsRequest(**_literal(operation), principal_filter=None)
    return Request(ApiKey.DESCRIBE_ACLS, 3, message)


def _literal(operation: Operation) -> dict[str, Any]:
    """The ACLs of this resource, in the fields of any filter."""
    return {
        "resource_type_filter": AclResourceType.TOPIC,
        "resource_name_filter": name_of(operation.entity),
        "pattern_type_filter": PatternType.LITERAL,
        "host_filter": None,
        "operation": AclOperation.ANY,
        "permission_type": PermissionType.ANY,
    }


def _describe(operation: Operation, _dice: random.Random, _timeout_ms: int) -> Request:
    wanted = [metadata.MetadataRequestTopic(name=name_of(operation.entity))]
    return Request(ApiKey.METADATA, 12, metadata.MetadataRequest(topics=wanted, allow_auto_topic_creation=False))


def _configs(operation: Operation, _dice: random.Random, _timeout_ms: int) -> Request:
    resource = describe_configs.DescribeConfigsResource(
        resource_type=resource_type(operation.entity),
        resource_name=name_of(operation.entity),
        configuration_keys=None,
    )
    return Request(ApiKey.DESCRIBE_CONFIGS, 4, describe_configs.DescribeConfigsRequest(resources=[resource]))


MAKERS: dict[str, Callable[[Operation, random.Random, int], Request]] = {
    "create": _create,
    "delete": _delete,
    "grow": _grow,
    "alter": _alter,
    "replace": _replace,
    "reassign": _reassign,
    "elect": _elect,
    "permit": _permit,
    "revoke": _revoke,
    "acls": _acls,
    "describe": _describe,
    "configs": _configs,
}

# --- from an answer to the operation ---


def _nothing(_row: Any, _operation: Operation) -> None:
    """Take nothing from an answer whose outcome says all."""


def _created(row: Any, operation: Operation) -> None:
    operation.topic_id = "" if operation.only_validated else row.topic_id.hex()


def _described(row: Any, operation: Operation) -> None:
    operation.topic_id = row.topic_id.hex()
    operation.partitions = len(row.partitions)
    for each in row.partitions:
        if each.partition_index == 0:
            operation.leader, operation.leader_epoch = each.leader_id, each.leader_epoch


def _configured(row: Any, operation: Operation) -> None:
    operation.configs = overrides(row.configs, operation.entity)


def _removed(row: Any, operation: Operation) -> None:
    operation.configs = {each.principal: PERMITTED for each in row.matching_acls if not each.error_code}
    failed = {each.error_code for each in row.matching_acls} - {0}
    if failed:
        operation.code, operation.outcome = min(failed), UNKNOWN


def _permitted(answer: Any, operation: Operation) -> None:
    operation.configs = {each.principal: PERMITTED for resource in answer.resources for each in resource.acls}


def overrides(rows: Sequence[Any], entity: str) -> dict[str, str]:
    """Return the configs that are set for this entity itself."""
    source = SOURCES[kind_of(entity)]
    return {row.name: row.value for row in rows if row.config_source == source}


READERS: dict[str, Callable[[Any, Operation], None]] = {
    "create": _created,
    "delete": _nothing,
    "grow": _nothing,
    "alter": _nothing,
    "replace": _nothing,
    "reassign": _nothing,
    "elect": _nothing,
    "permit": _nothing,
    "revoke": _removed,
    "acls": _permitted,
    "describe": _described,
    "configs": _configured,
}
