"""ListPartitionReassignments (46) names the partitions whose replicas are being moved, with the
replicas that they gain and lose.

The active controller answers, as in Kafka, and every other node forwards the request to it. Topics
and partitions that do not exist, or do not move, are left out.
"""

from collections.abc import Iterable

from ...admin.list_partition_reassignments import DESCRIBE_CLUSTER, SPEC
from ...cluster.entities import Topic
from ...cluster.image import Image
from ...cluster.reassignment import moving_partitions
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingReassignment,
    RequestedTopic,
    TopicReassignment,
)
from ..active.active_controller import LocalController


def handle(
    place: LocalController, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    if context.may(DESCRIBE_CLUSTER):
        return ListPartitionReassignmentsResponse(topics=_moving(place.serving().image, request.topics))
    return ListPartitionReassignmentsResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        error_message="Cluster authorization failed.",
        topics=[_named(topic) for topic in request.topics or ()],
    )


def _moving(image: Image, requested: list[RequestedTopic] | None) -> list[TopicReassignment]:
    if requested is None:
        return [_row(topic, moving_partitions(topic)) for _, topic in sorted(image.topics.items()) if topic.is_moving]
    named: dict[str, dict[int, None]] = {}
    for wanted in requested:
        named.setdefault(wanted.name, {}).update(dict.fromkeys(wanted.partition_indexes))
    rows = []
    for name, indexes in named.items():
        topic = image.topic(name)
        moving = set() if topic is None else set(moving_partitions(topic))
        if topic is not None and (found := [index for index in indexes if index in moving]):
            rows.append(_row(topic, found))
    return rows


def _row(topic: Topic, indexes: Iterable[int]) -> TopicReassignment:
    moving = [(index, topic.partitions[index]) for index in indexes]
    return TopicReassignment(
        name=topic.name,
        partitions=[
            OngoingReassignment(
                partition_index=index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding_replicas),
                removing_replicas=list(partition.removing_replicas),
            )
            for index, partition in moving
        ],
    )


def _named(topic: RequestedTopic) -> TopicReassignment:
    """Return the row of a topic as a refused request has it: Kafka repeats what was asked for."""
    partitions = [OngoingReassignment(partition_index=index) for index in topic.partition_indexes]
    return TopicReassignment(name=topic.name, partitions=partitions)


API = served(SPEC, handle)
