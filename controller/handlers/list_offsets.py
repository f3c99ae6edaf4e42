"""ListOffsets (2) returns the offsets of partitions: the first and the next one, or that of a time.

The leader of a partition answers, or for debugging any replica. The order of the checks is Kafka's
(KafkaApis.handleListOffsetRequestV1AndAbove).
"""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cached_property
from typing import cast

from ...admin.permissions import Permission
from ...admin.spec import Fields, InnerRows, Rows, copied
from ...cluster.entities import Partition, Topic
from ...cluster.image import Image
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...network.serving.kept_rows import Joined, LatestAnswers
from ...process.steps import Steps
from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.compiler import encoder
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
from ..broker.logs import Logs
from ..broker.view import BrokerView

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
DEBUGGING_REPLICA_ID = -2
"""Stands for a client that any replica may answer (Kafka: DEBUGGING_CONSUMER_ID)."""
READ_UNCOMMITTED, READ_COMMITTED = ISOLATION_LEVELS = (0, 1)
"""All records, and committed ones only."""
LEADER_EPOCH_SINCE = 4
"""The first version with leader epochs."""
NO_EPOCH = -1
VERSIONS_KEPT = 2
"""For so many versions the answers about each topic are kept."""

Row = ListOffsetsPartitionResponse


def handle(
    view: BrokerView, logs: Logs, kept: LatestAnswers, context: RequestContext, request: ListOffsetsRequest
) -> Steps[ListOffsetsResponse]:
    reading = Reading(view, logs, kept, context, request)
    denied = yield from context.denied(DESCRIBE_TOPIC, [topic.name for topic in request.topics])
    allowed_first = sorted(request.topics, key=lambda topic: topic.name in denied) if denied else request.topics
    rows = yield from reading.topics(allowed_first, denied)
    return ListOffsetsResponse(topics=cast("list[ListOffsetsTopicResponse]", Joined(rows)))


class Reading:
    """Answers one request from the image at its beginning."""

    def __init__(
        self, view: BrokerView, logs: Logs, kept: LatestAnswers, context: RequestContext, request: ListOffsetsRequest
    ) -> None:
        """`kept` has encoded topics, by version and name."""
        self._image: Image = view.cache.image
        self._logs = logs
        self._kept = kept
        self._broker_id = view.broker_id
        self._context = context
        self._version = context.header.api_version
        self._encode = encoder(ListOffsetsTopicResponse, self._version)
        self._is_debugging = request.replica_id == DEBUGGING_REPLICA_ID
        self._is_isolation_known = request.isolation_level in ISOLATION_LEVELS
        self._reads_committed = request.isolation_level == READ_COMMITTED
        self._is_usual = self._is_isolation_known and not self._is_debugging
        self._topics = request.topics

    def topics(self, asked: Sequence[ListOffsetsTopic], denied: Container[str]) -> Steps[list[bytes]]:
        """Return the encoded topics. Those of which no partition is named twice are kept until the
        topic or a log changes.
        """
        is_kept = self._is_usual and len({each.name for each in asked}) == len(asked)
        topics, version, rows = self._image.topics, self._version, []
        for each in asked:
            topic = topics.get(each.name)
            if topic is None or not is_kept or each.name in denied:
                row, code = yield from self._topic(each, is_denied=each.name in denied)
            else:
                kept = self._kept.get((version, each.name), topic, self._question(each))
                row, code = kept or (yield from self._kept_topic(each, topic))
            self._context.note(code)
            rows.append(row)
            yield
        return rows

    def _kept_topic(self, asked: ListOffsetsTopic, topic: Topic) -> Steps[tuple[bytes, int]]:
        question = self._question(asked)
        answer = yield from self._topic(asked, is_denied=False)
        has_tags = asked.unknown_tags is not None or any(row.unknown_tags is not None for row in asked.partitions)
        is_plain = not has_tags and not self._repeated
        if is_plain and len(asked.partitions) <= len(topic.partitions):  # what is kept is bounded by the cluster
            most = VERSIONS_KEPT * len(self._image.topics)
            self._kept.keep((self._version, topic.name), topic, question, answer, most)
        return answer

    def _question(self, asked: ListOffsetsTopic) -> object:
        """Return what an answer depends on, beside the topic and the version."""
        return self._logs.state, self._reads_committed, asked

    def _topic(self, topic: ListOffsetsTopic, *, is_denied: bool) -> Steps[tuple[bytes, int]]:
        """Return a topic encoded, and its first error."""
        rows, first_error = [], 0
        for asked in topic.partitions:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED if is_denied else self._error(topic.name, asked)
            first_error = first_error or code
            index = asked.partition_index
            row = Row(partition_index=index, error_code=code) if code else (yield from self._answer(topic.name, asked))
            rows.append(row)
            yield
        return self._encode(ListOffsetsTopicResponse(name=topic.name, partitions=rows)), first_error

    @cached_property
    def _repeated(self) -> frozenset[tuple[str, int]]:
        """The partitions that are named twice, which nobody needs if every answer is kept."""
        return _repeated_partitions(self._topics) if self._version > 0 else frozenset()

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
        if NO_EPOCH != asked.current_leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        is_readable = self._is_isolation_known and asked.max_num_offsets >= 0
        return ErrorCode.NONE if is_readable else ErrorCode.UNKNOWN_SERVER_ERROR

    def _answers_for(self, partition: Partition) -> bool:
        if self._is_debugging:
            return self._broker_id in partition.replicas
        return partition.leader == self._broker_id

    def _answer(self, topic: str, asked: ListOffsetsPartition) -> Steps[Row]:
        index = asked.partition_index
        if self._version == 0:
            offsets = self._logs.offsets_before(
                self._image.topics[topic], index, asked.timestamp, asked.max_num_offsets
            )
            return Row(partition_index=index, old_style_offsets=list(offsets))
        known = self._image.topics[topic]
        found = yield from self._logs.find(known, index, asked.timestamp, committed=self._reads_committed)
        if found is None:
            return Row(partition_index=index)
        epoch = found.leader_epoch if self._version >= LEADER_EPOCH_SINCE else NO_EPOCH
        return Row(partition_index=index, timestamp=found.timestamp, offset=found.offset, leader_epoch=epoch)


def _repeated_partitions(topics: Sequence[ListOffsetsTopic]) -> frozenset[tuple[str, int]]:
    """Return the partitions that a request names more than once."""
    if len({topic.name for topic in topics}) == len(topics) and not any(map(_repeats, topics)):
        return frozenset()  # the usual request, of which no pairs have to be made
    named = Counter((topic.name, row.partition_index) for topic in topics for row in topic.partitions)
    return frozenset(name for name, times in named.items() if times > 1)


def _repeats(topic: ListOffsetsTopic) -> bool:
    rows = topic.partitions
    return len({row.partition_index for row in rows}) < len(rows)


def _partitions(topic: ListOffsetsTopic) -> Iterator[Fields]:
    return ({"partition_index": row.partition_index} for row in topic.partitions)


API = ServedApi(
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
