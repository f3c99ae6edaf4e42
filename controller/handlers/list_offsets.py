"""ListOffsets (2) returns the offsets of partitions, which have no records here: the first and the
next offset are 0, and no record has a time.

The leader of a partition answers, or for debugging any replica. The order of the checks is Kafka's
(KafkaApis.handleListOffsetRequestV1AndAbove).
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.list_offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from ..metadata.entities import Partition
from ..metadata.image import Image
from ..requests.context import RequestContext
from ..requests.long_answers import note
from ..requests.permissions import Permission
from ..requests.spec import Fields, InnerRows, Rows, Spec, copied
from ..requests.time_slices import TimeSlice
from .node import Node

DESCRIBE_TOPIC = Permission(
    AclOperation.DESCRIBE, AclResourceType.TOPIC, "TOPIC_AUTHORIZATION_FAILED for the topic, after the other topics"
)
SUPPORTED_SINCE: Mapping[int, int] = {
    LATEST_TIMESTAMP: 0,
    EARLIEST_TIMESTAMP: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
}
"""The first version in which each negative timestamp may be asked for."""
AT_AN_END = frozenset({LATEST_TIMESTAMP, EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP})
"""The timestamps for which an empty log has an offset."""
DEBUGGING_REPLICA_ID = -2
"""Stands for a client that any replica may answer (Kafka: DEBUGGING_CONSUMER_ID)."""
ISOLATION_LEVELS = (0, 1)
"""All records, and committed ones only."""
LEADER_EPOCH_SINCE = 4
"""The first version with leader epochs."""
NO_EPOCH = -1

Row = ListOffsetsPartitionResponse


async def handle(node: Node, context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    reading = Reading(node, context, request)
    denied = context.without(DESCRIBE_TOPIC, [topic.name for topic in request.topics])
    allowed_first = sorted(request.topics, key=lambda topic: topic.name in denied)
    rows = [await reading.topic(topic, is_denied=topic.name in denied) for topic in allowed_first]
    return ListOffsetsResponse(topics=rows)


class Reading:
    """Answers one request from the image at its beginning."""

    def __init__(self, node: Node, context: RequestContext, request: ListOffsetsRequest) -> None:
        self._image: Image = node.cache.image
        self._broker_id = node.broker_id
        self._context = context
        self._version = context.api_version
        self._is_debugging = request.replica_id == DEBUGGING_REPLICA_ID
        self._is_isolation_known = request.isolation_level in ISOLATION_LEVELS
        named = Counter((topic.name, row.partition_index) for topic in request.topics for row in topic.partitions)
        self._repeated = frozenset(name for name, times in named.items() if times > 1 and self._version > 0)
        self._time_slice = TimeSlice()

    async def topic(self, topic: ListOffsetsTopic, *, is_denied: bool) -> ListOffsetsTopicResponse:
        rows = []
        for asked in topic.partitions:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED if is_denied else self._error(topic.name, asked)
            note(code, self._context)
            index = asked.partition_index
            rows.append(Row(partition_index=index, error_code=code) if code else self._answer(topic.name, asked))
            await self._time_slice.pause()
        return ListOffsetsTopicResponse(name=topic.name, partitions=rows)

    def _error(self, topic: str, asked: ListOffsetsPartition) -> ErrorCode:
        if (topic, asked.partition_index) in self._repeated:
            return ErrorCode.INVALID_REQUEST
        if asked.timestamp < 0 and self._version < SUPPORTED_SINCE.get(asked.timestamp, self._version + 1):
            return ErrorCode.UNSUPPORTED_VERSION
        partition = self._image.partition(topic, asked.partition_index)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not self._answers_for(partition):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if asked.current_leader_epoch > partition.leader_epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if NO_EPOCH < asked.current_leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.NONE if self._is_isolation_known else ErrorCode.UNKNOWN_SERVER_ERROR

    def _answers_for(self, partition: Partition) -> bool:
        if self._is_debugging:
            return self._broker_id in partition.replicas
        return partition.leader == self._broker_id

    def _answer(self, topic: str, asked: ListOffsetsPartition) -> Row:
        partition = self._image.partition(topic, asked.partition_index)
        if partition is None or asked.timestamp not in AT_AN_END:
            return Row(partition_index=asked.partition_index)
        if self._version == 0:
            offsets = [0] if asked.max_num_offsets > 0 else []
            return Row(partition_index=asked.partition_index, old_style_offsets=offsets)
        epoch = partition.leader_epoch if self._version >= LEADER_EPOCH_SINCE else NO_EPOCH
        return Row(partition_index=asked.partition_index, offset=0, leader_epoch=epoch)


def _partitions(topic: ListOffsetsTopic) -> Iterator[Fields]:
    return ({"partition_index": row.partition_index} for row in topic.partitions)


API = Spec(
    key=ApiKey.LIST_OFFSETS,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_TOPIC,),
    rows=Rows(
        "topics",
        ListOffsetsTopicResponse,
        {"topics": copied("name")},
        inner=InnerRows("partitions", Row, _partitions),
    ),
)
