"""DescribeTopicPartitions (75) returns topics in the order of their names, page by page.

A page ends at the limit of partitions. Its cursor names the topic and the partition with which the
next page begins.
"""

from collections.abc import Awaitable, Iterator, Mapping, Sequence

from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from ..errors import Refusal
from ..metadata.entities import INTERNAL_TOPICS, Topic
from ..metadata.image import Image
from ..metadata.operations import TOPIC_OPERATIONS
from ..metadata.partition_view import endpoints_at, known_partitions, view
from ..metadata.topic_names import is_valid_topic_name
from ..requests.context import RequestContext
from ..requests.long_answers import noted, rows_in_time_slices
from ..requests.spec import Rows, Spec, copied
from .node import Node

MANY = 2_000
"""The number of topics in a request above which it is answered in time slices."""

Row = DescribeTopicPartitionsResponseTopic

START = Cursor()
"""A cursor before every topic."""


def handle(
    node: Node, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse | Awaitable[DescribeTopicPartitionsResponse]:
    response = DescribeTopicPartitionsResponse(topics=[])
    names = _names(node.cache.image, request)
    page = _page(node, context, request, names, response)
    if len(request.topics) > MANY:
        return _in_time_slices(context, page, response)
    response.topics = list(noted(page, context))
    return response


async def _in_time_slices(
    context: RequestContext, page: Iterator[Row], response: DescribeTopicPartitionsResponse
) -> DescribeTopicPartitionsResponse:
    response.topics = await rows_in_time_slices(page, context)
    return response


def _page(
    node: Node,
    context: RequestContext,
    request: DescribeTopicPartitionsRequest,
    names: Sequence[str],
    response: DescribeTopicPartitionsResponse,
) -> Iterator[Row]:
    """Yield the rows of one page, and put the cursor of the next page into the response."""
    image, cursor = node.cache.image, request.cursor or START
    left = min(max(request.response_partition_limit, 1), node.config.integer("max.request.partition.size.limit"))
    reachable = endpoints_at(image.brokers, context.listener)
    for name in names:
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            return
        topic = image.topics.get(name)
        if topic is None:
            if request.topics:
                yield _missing(name)
            continue
        start = cursor.partition_index if name == cursor.topic_name else 0
        described, following = _describe(image, topic, reachable, start, left)
        yield described
        if following is not None:
            response.next_cursor = Cursor(topic_name=name, partition_index=following)
            return
        left -= len(described.partitions)


def _names(image: Image, request: DescribeTopicPartitionsRequest) -> list[str]:
    """Return the names of the topics to describe, in order, beginning at the cursor. Raises
    INVALID_REQUEST.
    """
    asked = {topic.name for topic in request.topics}
    cursor = request.cursor
    if cursor is None:
        return sorted(asked or image.topics)
    if cursor.partition_index < 0:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"The cursor's partition is negative: {cursor.partition_index}")
    if asked and cursor.topic_name not in asked:
        raise Refusal(
            ErrorCode.INVALID_REQUEST, f"The cursor's topic {cursor.topic_name!r} is not among those asked for."
        )
    return sorted(name for name in asked or image.topics if name >= cursor.topic_name)


def _describe(
    image: Image, topic: Topic, reachable: Mapping[int, object], start: int, limit: int
) -> tuple[DescribeTopicPartitionsResponseTopic, int | None]:
    """Describe a topic with at most `limit` of its partitions, and return the partition that comes
    next if there are more.
    """
    described = DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )
    for index, partition in known_partitions(topic, start):
        if len(described.partitions) == limit:
            return described, index
        seen = view(partition, reachable, image.brokers)
        described.partitions.append(
            DescribeTopicPartitionsResponsePartition(
                error_code=seen.error_code,
                partition_index=index,
                leader_id=seen.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=seen.replicas,
                isr_nodes=seen.isr,
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=list(partition.offline_replicas),
            )
        )
    return described, None


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    legal = is_valid_topic_name(name)
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if legal else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


API = Spec(
    key=ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    handler=handle,
    waits_for_update=True,
    rows=Rows("topics", DescribeTopicPartitionsResponseTopic, {"topics": copied("name")}),
)
