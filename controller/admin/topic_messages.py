"""Topics between our terms and Kafka's messages: pure, nothing is sent from here."""

from collections.abc import Collection, Mapping, Sequence

from ...protocol.error_codes import ErrorCode
from ...protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ...protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ...protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ...protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from ...protocol.schema import WireStruct
from .errors import AdminError
from .model import (
    BROKER_DEFAULT,
    BrokerDescription,
    ClusterDescription,
    CreatedTopic,
    NewTopic,
    PartitionDescription,
    Results,
    TopicDescription,
    result_of,
)

BY_ID_SINCE = 6
"""DeleteTopics: the names moved into another field when ids came."""
PASSING = frozenset({ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REPLICA_NOT_AVAILABLE})
"""Of a topic in Metadata: it is there, and what lacks the partitions tell."""


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


def deletion(names: Sequence[str], *, timeout_ms: int, version: int) -> DeleteTopicsRequest:
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


def described(answer: MetadataResponse, names: Collection[str] | None) -> Results[str, TopicDescription]:
    """Of the names that were asked for (None: all): what was not asked for is not believed."""
    wanted = None if names is None else set(names)
    return {
        topic.name: _description(topic) if topic.error_code in PASSING else AdminError(topic.error_code)
        for topic in answer.topics
        if topic.name is not None and (wanted is None or topic.name in wanted)
    }


def _description(topic: MetadataResponseTopic) -> TopicDescription:
    partitions = tuple(
        PartitionDescription(
            index=partition.partition_index,
            leader=partition.leader_id if partition.leader_id >= 0 else None,
            leader_epoch=partition.leader_epoch,
            replicas=tuple(partition.replica_nodes),
            isr=tuple(partition.isr_nodes),
            offline=tuple(partition.offline_replicas),
        )
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    )
    return TopicDescription(topic.name or "", topic.topic_id, topic.is_internal, partitions)


def cluster(answer: MetadataResponse) -> ClusterDescription:
    topics = described(answer, None)
    ids = {broker.node_id for broker in answer.brokers}
    return ClusterDescription(
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id if answer.controller_id in ids else None,
        brokers=tuple(
            BrokerDescription(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in sorted(answer.brokers, key=lambda broker: broker.node_id)
        ),
        topics=tuple(topic for _, topic in sorted(topics.items()) if isinstance(topic, TopicDescription)),
    )
