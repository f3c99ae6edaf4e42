"""Makes requests that move replicas, and results of their responses; pure."""

from collections.abc import Mapping, Sequence

from ..protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ..protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    RequestedTopic,
)
from ..protocol.schema import WireStruct
from .errors import AdminError
from .model import PartitionReassignment, Results, TopicPartition, result_of


def alteration(
    wanted: Mapping[TopicPartition, Sequence[int] | None], part: Sequence[TopicPartition], *, timeout_ms: int
) -> AlterPartitionReassignmentsRequest:
    topics: dict[str, list[ReassignablePartition]] = {}
    for partition in part:
        replicas = wanted[partition]
        row = ReassignablePartition(
            partition_index=partition.partition, replicas=None if replicas is None else list(replicas)
        )
        topics.setdefault(partition.topic, []).append(row)
    return AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms, topics=[ReassignableTopic(name=name, partitions=rows) for name, rows in topics.items()]
    )


def altered(part: Sequence[TopicPartition], answer: WireStruct) -> Results[TopicPartition, None]:
    """Return the results by partition; the error of a whole request is that of each partition."""
    assert isinstance(answer, AlterPartitionReassignmentsResponse)
    if answer.error_code:
        return dict.fromkeys(part, AdminError(answer.error_code, answer.error_message))
    return {
        TopicPartition(topic.name, row.partition_index): result_of(row.error_code, row.error_message, None)
        for topic in answer.responses
        for row in topic.partitions
    }


def question(partitions: Sequence[TopicPartition] | None, *, timeout_ms: int) -> ListPartitionReassignmentsRequest:
    topics: dict[str, list[int]] = {}
    for partition in partitions or ():
        topics.setdefault(partition.topic, []).append(partition.partition)
    named = [RequestedTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
    return ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=None if partitions is None else named)


def listed(answer: WireStruct) -> dict[TopicPartition, PartitionReassignment] | AdminError:
    assert isinstance(answer, ListPartitionReassignmentsResponse)
    if answer.error_code:
        return AdminError(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, row.partition_index): PartitionReassignment(
            tuple(row.replicas), tuple(row.adding_replicas), tuple(row.removing_replicas)
        )
        for topic in answer.topics
        for row in topic.partitions
    }
