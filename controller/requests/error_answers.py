"""The error form of every API: one code for a whole request, copied to every entity that the
request names.

Rule: a table by API; an API that has a handler and no row here is a bug that a test finds. What a
version lacks is left at its default, because a message cannot be encoded with a value in a field
that its version does not have.
"""

from collections.abc import Callable, Iterator
from typing import Any

from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages import (
    alter_configs,
    alter_partition,
    api_versions,
    controlled_shutdown,
    create_partitions,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_topic_partitions,
    envelope,
    find_coordinator,
    incremental_alter_configs,
    leader_and_isr,
    list_groups,
    metadata,
    sasl_authenticate,
    sasl_handshake,
    stop_replica,
    update_metadata,
)
from .bounds import MAX_REPEATED_BYTES

ELEMENTS = ("topics", "topic_names", "resources", "coordinator_keys")
"""Where requests have what is answered one by one, each with the message."""
ErrorForm = Callable[[Any, int, ErrorCode, str | None], Any]
"""(request, version, code, message) -> response"""


def error_answer(api_key: int, request: Any, version: int, *, code: ErrorCode, message: str | None = None) -> Any:
    """Return the response that refuses the whole of `request`. -1 never carries a message, which
    might tell what it should not.

    Where there are very many elements none has the message.
    """
    if code == ErrorCode.UNKNOWN_SERVER_ERROR:
        message = None
    elif message:
        elements = sum(len(getattr(request, field, None) or ()) for field in ELEMENTS)
        message = message if elements * len(message) <= MAX_REPEATED_BYTES else None
    return ERROR_FORMS[api_key](request, version, code, message)


def refuses_everything(api_key: int, response: Any, code: ErrorCode) -> bool:
    """Whether the response has entities and all carry this code: nothing of the
    request was done.
    """
    codes = list(error_codes(api_key, response))
    return bool(codes) and all(found == code for found in codes)


def error_codes(api_key: int, response: Any) -> Iterator[int]:
    """Yield the code of the response and those of its entities (one level deep, as far as the
    controller's APIs go).
    """
    own = getattr(response, "error_code", None)
    if own is not None:
        yield own
    for entity in getattr(response, ENTITIES.get(api_key, ""), ()):
        yield entity.error_code


# ------------------------------------------------------------------ the forms


def _create_topics(
    request: create_topics.CreateTopicsRequest, version: int, code: ErrorCode, message: str | None
) -> Any:
    if code == ErrorCode.NOT_CONTROLLER and message is None and version >= 1:
        message = ""  # the one place where Kafka says it with an empty text
    return create_topics.CreateTopicsResponse(
        topics=[
            create_topics.CreatableTopicResult(name=topic.name, error_code=code, error_message=message)
            for topic in request.topics
        ]
    )


def _delete_topics(
    request: delete_topics.DeleteTopicsRequest, _version: int, code: ErrorCode, message: str | None
) -> Any:
    by_name = [
        delete_topics.DeletableTopicResult(name=name, error_code=code, error_message=message)
        for name in request.topic_names
    ]
    by_either = [
        delete_topics.DeletableTopicResult(
            name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=message
        )
        for topic in request.topics
    ]
    return delete_topics.DeleteTopicsResponse(responses=by_name + by_either)


def _create_partitions(
    request: create_partitions.CreatePartitionsRequest, _version: int, code: ErrorCode, message: str | None
) -> Any:
    return create_partitions.CreatePartitionsResponse(
        results=[
            create_partitions.CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=message)
            for topic in request.topics
        ]
    )


def _alter_configs(
    request: alter_configs.AlterConfigsRequest, _version: int, code: ErrorCode, message: str | None
) -> Any:
    return alter_configs.AlterConfigsResponse(
        responses=[
            alter_configs.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _incremental_alter_configs(
    request: incremental_alter_configs.IncrementalAlterConfigsRequest,
    _version: int,
    code: ErrorCode,
    message: str | None,
) -> Any:
    return incremental_alter_configs.IncrementalAlterConfigsResponse(
        responses=[
            incremental_alter_configs.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _describe_configs(
    request: describe_configs.DescribeConfigsRequest, _version: int, code: ErrorCode, message: str | None
) -> Any:
    return describe_configs.DescribeConfigsResponse(
        results=[
            describe_configs.DescribeConfigsResult(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _metadata(request: metadata.MetadataRequest, _version: int, code: ErrorCode, _message: str | None) -> Any:
    """Refuse a Metadata request. A topic without a name gets an empty one, also in v12, which could
    say null: as Kafka has it.
    """
    return metadata.MetadataResponse(
        topics=[
            metadata.MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ]
    )


def _find_coordinator(
    request: find_coordinator.FindCoordinatorRequest, version: int, code: ErrorCode, message: str | None
) -> Any:
    if version < 4:
        return find_coordinator.FindCoordinatorResponse(
            error_code=code, error_message=message if version >= 1 else "", node_id=-1, host="", port=-1
        )
    return find_coordinator.FindCoordinatorResponse(
        coordinators=[
            find_coordinator.Coordinator(
                key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message or ""
            )
            for key in request.coordinator_keys
        ]
    )


def _describe_groups(
    request: describe_groups.DescribeGroupsRequest, _version: int, code: ErrorCode, _message: str | None
) -> Any:
    return describe_groups.DescribeGroupsResponse(
        groups=[describe_groups.DescribedGroup(group_id=group, error_code=code) for group in request.groups]
    )


def _describe_topic_partitions(
    request: describe_topic_partitions.DescribeTopicPartitionsRequest,
    _version: int,
    code: ErrorCode,
    _message: str | None,
) -> Any:
    return describe_topic_partitions.DescribeTopicPartitionsResponse(
        topics=[
            describe_topic_partitions.DescribeTopicPartitionsResponseTopic(name=topic.name, error_code=code)
            for topic in request.topics
        ]
    )


def _with_code(response: Callable[..., Any], *, message_field: bool = False) -> ErrorForm:
    """Make a function that refuses a request whose response has one code, at the top."""

    def form(_request: Any, _version: int, code: ErrorCode, message: str | None) -> Any:
        return response(error_code=code, error_message=message) if message_field else response(error_code=code)

    return form


ERROR_FORMS: dict[int, ErrorForm] = {
    ApiKey.METADATA: _metadata,
    ApiKey.LEADER_AND_ISR: _with_code(leader_and_isr.LeaderAndIsrResponse),
    ApiKey.STOP_REPLICA: _with_code(stop_replica.StopReplicaResponse),
    ApiKey.UPDATE_METADATA: _with_code(update_metadata.UpdateMetadataResponse),
    ApiKey.CONTROLLED_SHUTDOWN: _with_code(controlled_shutdown.ControlledShutdownResponse),
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.DESCRIBE_GROUPS: _describe_groups,
    ApiKey.LIST_GROUPS: _with_code(list_groups.ListGroupsResponse),
    ApiKey.SASL_HANDSHAKE: _with_code(sasl_handshake.SaslHandshakeResponse),
    ApiKey.API_VERSIONS: _with_code(api_versions.ApiVersionsResponse),
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.DESCRIBE_CONFIGS: _describe_configs,
    ApiKey.ALTER_CONFIGS: _alter_configs,
    ApiKey.SASL_AUTHENTICATE: _with_code(sasl_authenticate.SaslAuthenticateResponse, message_field=True),
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _incremental_alter_configs,
    ApiKey.ALTER_PARTITION: _with_code(alter_partition.AlterPartitionResponse),
    ApiKey.ENVELOPE: _with_code(envelope.EnvelopeResponse),
    ApiKey.DESCRIBE_CLUSTER: _with_code(describe_cluster.DescribeClusterResponse, message_field=True),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
}

ENTITIES: dict[int, str] = {
    ApiKey.CREATE_TOPICS: "topics",
    ApiKey.DELETE_TOPICS: "responses",
    ApiKey.CREATE_PARTITIONS: "results",
    ApiKey.ALTER_CONFIGS: "responses",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "responses",
}
"""Where the controller's APIs keep their entities."""
