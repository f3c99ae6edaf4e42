"""Makes requests that change topics, and results of their responses; pure."""

from collections.abc import Mapping, Sequence

from ..protocol.dry_runs import packed
from ..protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ..protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ..protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ..protocol.schema import WireStruct
from .model import BROKER_DEFAULT, CreatedTopic, NewTopic, Results, result_of

BY_ID_SINCE = 6
"""The version of DeleteTopics that names topics in another field, beside ids (KIP-516)."""


def creation(topics: Sequence[NewTopic], *, timeout_ms: int, validate_only: bool) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics], timeout_ms=timeout_ms, validate_only=validate_only
    )


def _creatable(topic: NewTopic) -> CreatableTopic:
    by_hand = bool(topic.replica_assignments)
    return CreatableTopic(
        name=topic.name,
        num_partitions=BROKER_DEFAULT if by_hand else topic.num_partitions,
        replication_factor=BROKER_DEFAULT if by_hand else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(topic.replica_assignments)
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def created(answer: WireStruct) -> Results[str, CreatedTopic]:
    assert isinstance(answer, CreateTopicsResponse)
    return {
        topic.name: result_of(
            topic.error_code,
            topic.error_message,
            CreatedTopic(topic.topic_id, topic.num_partitions, topic.replication_factor),
        )
        for topic in answer.topics
    }


def deletion(
    names: Sequence[str], *, timeout_ms: int, version: int, validate_only: bool = False
) -> DeleteTopicsRequest:
    if validate_only:
        named = [DeleteTopicState(name=name) for name in names]
        return packed(DeleteTopicsRequest(topics=named, timeout_ms=timeout_ms))
    if version >= BY_ID_SINCE:
        return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=timeout_ms)
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)


def deleted(answer: WireStruct) -> Results[str, None]:
    assert isinstance(answer, DeleteTopicsResponse)
    return {
        topic.name: result_of(topic.error_code, topic.error_message, None)
        for topic in answer.responses
        if topic.name is not None
    }


def growth(
    counts: Mapping[str, int], names: Sequence[str], *, timeout_ms: int, validate_only: bool
) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=counts[name], assignments=None) for name in names],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def grown(answer: WireStruct) -> Results[str, None]:
    assert isinstance(answer, CreatePartitionsResponse)
    return {topic.name: result_of(topic.error_code, topic.error_message, None) for topic in answer.results}
