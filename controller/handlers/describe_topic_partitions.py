"""DescribeTopicPartitions (75) returns topics in the order of their names, page by page.

A page ends at the limit of partitions. Its cursor names the topic and the partition with which the
next page begins.
"""

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from itertools import chain
from typing import cast

from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.compiler import encoder
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
from ..metadata.fragments import with_operations
from ..metadata.image import Image
from ..metadata.kept_rows import Joined
from ..metadata.partition_view import endpoints_at, known_partitions, view
from ..metadata.topic_names import is_valid_topic_name
from ..requests.context import RequestContext
from ..requests.long_answers import noted, rows_in_time_slices
from ..requests.permissions import Permission
from ..requests.spec import Rows, Spec, copied
from ..requests.time_slices import in_time_slices
from .node import Node

MANY = 2_000
"""The number of topics in a request above which it is answered in time slices."""

MAX_LISTENERS = 4
"""For so many listeners topics are kept encoded; with more they may be encoded anew."""

DESCRIBE_TOPIC = Permission(
    AclOperation.DESCRIBE,
    AclResourceType.TOPIC,
    "TOPIC_AUTHORIZATION_FAILED for the topic, after the other topics; a list of all topics leaves it out",
)

Row = DescribeTopicPartitionsResponseTopic

START = Cursor()
"""A cursor before every topic."""


def handle(
    node: Node, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse | Awaitable[DescribeTopicPartitionsResponse]:
    if not request.topics:
        return _page_of_everything(node, context, request)
    names = _names(node.cache.image, request)
    if len(request.topics) > MANY:
        return _in_time_slices(node, context, request, names)
    denied = context.without(DESCRIBE_TOPIC, names)
    response = DescribeTopicPartitionsResponse(topics=[])
    page = _page(node, context, request, [name for name in names if name not in denied], response)
    response.topics = cast("list[Row]", list(noted(chain(page, _unauthorized(denied)), context)))
    return response


def _page_of_everything(
    node: Node, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Return a page of all topics that the client may describe, which is kept until the image
    changes.
    """
    image, viewer = node.cache.image, context.viewer
    cursor = request.cursor or START
    limit = request.response_partition_limit
    question = (viewer, context.api_version, context.listener, cursor.topic_name, cursor.partition_index, limit)
    made = None if viewer is None else node.described_partitions.get(image, question)
    if made is None:
        names = _names(image, request)
        denied = context.without(DESCRIBE_TOPIC, names, logs_denials=False)
        response = DescribeTopicPartitionsResponse(topics=[])
        page = _page(node, context, request, [name for name in names if name not in denied], response)
        encode = encoder(Row, context.api_version)
        made = Joined([row if isinstance(row, bytes) else encode(row) for row in page]), response.next_cursor
        if viewer is not None:
            node.described_partitions.keep(image, question, made, made[0].size + len(cursor.topic_name))
    return DescribeTopicPartitionsResponse(topics=cast("list[Row]", made[0]), next_cursor=made[1])


async def _in_time_slices(
    node: Node, context: RequestContext, request: DescribeTopicPartitionsRequest, names: Sequence[str]
) -> DescribeTopicPartitionsResponse:
    allowed = await in_time_slices(context.may(DESCRIBE_TOPIC, name) for name in names)
    denied = frozenset(name for name, may in zip(names, allowed, strict=True) if not may)
    response = DescribeTopicPartitionsResponse(topics=[])
    page = _page(node, context, request, [name for name in names if name not in denied], response)
    rows = await rows_in_time_slices(chain(page, _unauthorized(denied)), context)
    response.topics = cast("list[Row]", rows)
    return response


def _unauthorized(denied: frozenset[str]) -> Iterator[Row]:
    """Yield rows of the topics that the request names and the client may not describe."""
    for name in sorted(denied):
        yield Row(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name, partitions=[])


def _page(
    node: Node,
    context: RequestContext,
    request: DescribeTopicPartitionsRequest,
    names: Sequence[str],
    response: DescribeTopicPartitionsResponse,
) -> Iterator[Row | bytes]:
    """Yield the rows of one page, and put the cursor of the next page into the response. Topics
    that are on it as a whole are encoded already.
    """
    image, cursor = node.cache.image, request.cursor or START
    left = min(max(request.response_partition_limit, 1), node.config.integer("max.request.partition.size.limit"))
    reachable = endpoints_at(image.brokers, context.listener)
    encode, fragments = encoder(Row, context.api_version), node.described_topics
    fragments.follow(image.brokers, MAX_LISTENERS * len(image.topics))

    def whole(topic: Topic) -> tuple[bytes, int]:
        described, _ = _describe(image, topic, reachable, 0, len(topic.partitions))
        return encode(described), len(described.partitions)

    for name in names:
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            return
        topic = image.topics.get(name)
        if topic is None:
            if request.topics:
                yield _missing(context, name)
            continue
        start = cursor.partition_index if name == cursor.topic_name else 0
        operations = context.authorized_operations(AclResourceType.TOPIC, name)
        if start == 0 and len(topic.partitions) <= left:
            fragment, count = fragments.of(image.brokers, (context.listener, name), topic, whole)
            yield with_operations(fragment, operations, has_tags=True)
            left -= count
            continue
        described, following = _describe(image, topic, reachable, start, left)
        described.topic_authorized_operations = operations
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


def _missing(context: RequestContext, name: str) -> DescribeTopicPartitionsResponseTopic:
    legal = is_valid_topic_name(name)
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if legal else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=context.authorized_operations(AclResourceType.TOPIC, name),
    )


API = Spec(
    key=ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_TOPIC,),
    rows=Rows("topics", DescribeTopicPartitionsResponseTopic, {"topics": copied("name")}),
)
