"""The requests of the benchmarks as frames, and the reading of their answers: an error code in one is an exception.

Every request is in the newest version that all measured systems speak.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kafka.protocol.admin import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

CLIENT_ID: Final = "benchmarks"
TIMEOUT_MS: Final = 60_000
TOPIC: Final = 2  # Kafka's code of the config resource
CREATE_TOPICS, DELETE_TOPICS, INCREMENTAL_ALTER_CONFIGS, METADATA = 7, 6, 1, 12  # versions


class RequestError(Exception):
    """An answer carried an error."""

    def __init__(self, what: str, code: int, message: str | None) -> None:
        super().__init__(f"{what}: error {code}{f' ({message})' if message else ''}")
        self.code = code


def _frame(request: Any, correlation_id: int) -> bytes:
    request.with_header(correlation_id=correlation_id, client_id=CLIENT_ID)
    return bytes(request.encode(header=True, framed=True))


def create_topics(
    names: Iterable[str],
    *,
    partitions: int = 1,
    replication_factor: int = 1,
    validate_only: bool = False,
    timeout_ms: int = TIMEOUT_MS,
    correlation_id: int = 1,
) -> bytes:
    topics = [
        CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            assignments=[],
            configs=[],
        )
        for name in names
    ]
    return _frame(
        CreateTopicsRequest(version=CREATE_TOPICS, topics=topics, timeout_ms=timeout_ms, validate_only=validate_only),
        correlation_id,
    )


def delete_topics(names: Iterable[str], *, correlation_id: int = 1) -> bytes:
    topics = [DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=None) for name in names]
    return _frame(DeleteTopicsRequest(version=DELETE_TOPICS, topics=topics, timeout_ms=TIMEOUT_MS), correlation_id)


def alter_topic_config(topic: str, key: str, value: str, *, correlation_id: int = 1) -> bytes:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = resource.AlterableConfig(name=key, config_operation=0, value=value)
    resources = [resource(resource_type=TOPIC, resource_name=topic, configs=[config])]
    request = IncrementalAlterConfigsRequest(
        version=INCREMENTAL_ALTER_CONFIGS, resources=resources, validate_only=False
    )
    return _frame(request, correlation_id)


def metadata(names: Sequence[str] | None, *, correlation_id: int = 1) -> bytes:
    """Metadata of these topics; of all for None."""
    topics = (
        None
        if names is None
        else [
            MetadataRequest.MetadataRequestTopic(name=name, topic_id="00000000-0000-0000-0000-000000000000")
            for name in names
        ]
    )
    request = MetadataRequest(
        version=METADATA,
        topics=topics,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    return _frame(request, correlation_id)


def created_codes(answer: bytes) -> list[int]:
    """The error code of every topic, in order."""
    decoded = CreateTopicsResponse.decode(answer, version=CREATE_TOPICS, header=True)
    return [topic.error_code for topic in decoded.topics]


def check_created(answer: bytes) -> None:
    for topic in CreateTopicsResponse.decode(answer, version=CREATE_TOPICS, header=True).topics:
        if topic.error_code:
            raise RequestError(f"CreateTopics of {topic.name}", topic.error_code, topic.error_message)


def check_deleted(answer: bytes) -> None:
    for topic in DeleteTopicsResponse.decode(answer, version=DELETE_TOPICS, header=True).responses:
        if topic.error_code:
            raise RequestError(f"DeleteTopics of {topic.name}", topic.error_code, topic.error_message)


def check_altered(answer: bytes) -> None:
    decoded = IncrementalAlterConfigsResponse.decode(answer, version=INCREMENTAL_ALTER_CONFIGS, header=True)
    for resource in decoded.responses:
        if resource.error_code:
            raise RequestError(
                f"IncrementalAlterConfigs of {resource.resource_name}", resource.error_code, resource.error_message
            )


def read_metadata(answer: bytes) -> Any:
    return MetadataResponse.decode(answer, version=METADATA, header=True)


def all_led(answer: bytes, topics: int, partitions: int) -> bool:
    """Whether the answer shows that many topics of that many partitions, each with a leader, and no error."""
    found = read_metadata(answer).topics
    return len(found) == topics and all(
        not topic.error_code
        and len(topic.partitions) == partitions
        and all(partition.leader_id >= 0 and not partition.error_code for partition in topic.partitions)
        for topic in found
    )


def check_led(answer: bytes, topics: int, partitions: int) -> None:
    if not all_led(answer, topics, partitions):
        raise RequestError(f"Metadata of {topics} topics of {partitions} led partitions", -1, "not what it shows")
