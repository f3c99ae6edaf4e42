"""The requests of the benchmarks as frames, and the reading of their answers: an error code in one
is an exception.

Every request is in the newest version that all measured systems speak.
"""

from collections.abc import Iterable
from typing import Final, TypeVar

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from minicontroller.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from minicontroller.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct

CLIENT_ID: Final = "benchmarks"
TIMEOUT_MS: Final = 60_000
TOPIC: Final = 2  # Kafka's code of the config resource
VERSIONS: Final = {
    ApiKey.METADATA: 12,
    ApiKey.CREATE_TOPICS: 7,
    ApiKey.DELETE_TOPICS: 6,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 1,
    ApiKey.DESCRIBE_CONFIGS: 4,
}

Response = TypeVar("Response", bound=WireStruct)


class RequestError(Exception):
    """An answer carried an error."""

    def __init__(self, what: str, code: int, message: str | None) -> None:
        super().__init__(f"{what}: error {code}{f' ({message})' if message else ''}")
        self.code = code


def create_topics(
    names: Iterable[str],
    *,
    partitions: int = 1,
    replication_factor: int = 1,
    validate_only: bool = False,
    correlation_id: int = 1,
) -> bytes:
    topics = [
        CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication_factor) for name in names
    ]
    request = CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS, validate_only=validate_only)
    return _frame(ApiKey.CREATE_TOPICS, request, correlation_id)


def delete_topics(names: Iterable[str], *, correlation_id: int = 1) -> bytes:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=TIMEOUT_MS)
    return _frame(ApiKey.DELETE_TOPICS, request, correlation_id)


def alter_topic_config(topic: str, key: str, value: str, *, correlation_id: int = 1) -> bytes:
    """Sets one config of one topic."""
    configs = [IncrementalAlterableConfig(name=key, config_operation=0, value=value)]
    resource = IncrementalAlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=configs)
    return _frame(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=[resource]), correlation_id
    )


def metadata(names: Iterable[str] | None) -> bytes:
    """Metadata of these topics; of all for None."""
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    return _frame(ApiKey.METADATA, MetadataRequest(topics=topics, allow_auto_topic_creation=False), 1)


def describe_configs(topic: str) -> bytes:
    """DescribeConfigs of all configs of one topic."""
    resource = DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=None)
    return _frame(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[resource]), 1)


def created_codes(answer: bytes) -> list[int]:
    """The error code of every topic, in order."""
    return [topic.error_code for topic in _read(answer, ApiKey.CREATE_TOPICS, CreateTopicsResponse).topics]


def check_created(answer: bytes) -> None:
    for topic in _read(answer, ApiKey.CREATE_TOPICS, CreateTopicsResponse).topics:
        if topic.error_code:
            raise RequestError(f"CreateTopics of {topic.name}", topic.error_code, topic.error_message)


def check_deleted(answer: bytes) -> None:
    for topic in _read(answer, ApiKey.DELETE_TOPICS, DeleteTopicsResponse).responses:
        if topic.error_code:
            raise RequestError(f"DeleteTopics of {topic.name}", topic.error_code, topic.error_message)


def check_altered(answer: bytes) -> None:
    for resource in _read(answer, ApiKey.INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsResponse).responses:
        if resource.error_code:
            what = f"IncrementalAlterConfigs of {resource.resource_name}"
            raise RequestError(what, resource.error_code, resource.error_message)


def check_described(answer: bytes, topic: str) -> None:
    """Return whether the answer has the configs of this topic and of no other."""
    (result,) = _read(answer, ApiKey.DESCRIBE_CONFIGS, DescribeConfigsResponse).results
    if result.error_code or result.resource_name != topic or not result.configs:
        raise RequestError(f"DescribeConfigs of {topic}", result.error_code, result.error_message)


def read_metadata(answer: bytes) -> MetadataResponse:
    return _read(answer, ApiKey.METADATA, MetadataResponse)


def all_led(answer: bytes, topics: int, partitions: int) -> bool:
    """Whether the answer shows that many topics of that many partitions, each with a leader, and no
    error.
    """
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


def _frame(key: ApiKey, request: WireStruct, correlation_id: int) -> bytes:
    header = RequestHeader(api_key=key, api_version=VERSIONS[key], correlation_id=correlation_id, client_id=CLIENT_ID)
    return KAFKA.encode_request(header, request)


def _read(answer: bytes, key: ApiKey, expected: type[Response]) -> Response:
    _, message = KAFKA.decode_response(key, VERSIONS[key], answer)
    assert isinstance(message, expected)
    return message
