"""Metadata (3) returns the brokers, the controller, and the leaders of partitions, from this node's
image.

A read is answered at once, from encoded fragments. Only a request that creates a topic waits: for
the controller and its policy, but not for the topic, for which the client retries
(LEADER_NOT_AVAILABLE).
"""

from collections.abc import Awaitable, Iterable, Iterator, Sequence
from typing import cast

from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from ..errors import Refusal
from ..metadata.entities import INTERNAL_TOPICS, NO_TOPIC_ID
from ..metadata.fragments import Dialect, DialectFragments
from ..metadata.image import Image
from ..metadata.operations import cluster_operations, topic_operations
from ..metadata.topic_names import is_valid_topic_name
from ..requests.context import RequestContext
from ..requests.long_answers import noted, rows_in_time_slices
from ..requests.spec import Rows, Spec
from ..requests.time_slices import in_time_slices
from .auto_creation import create_missing_topics
from .node import Node

NULL_NAMES_AND_IDS_SINCE, ASKED_BY_ID_SINCE = 10, 12
"""The first version with null names and topic ids, and the first in which clients may use them."""

MANY = 2_000
"""The number of topics in a request above which it is answered in time slices."""

Element = MetadataResponseTopic | bytes


def handle(
    node: Node, context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Awaitable[MetadataResponse]:
    version, image, wanted = context.api_version, node.cache.image, request.topics
    fragments = _fragments(node, context, request)
    if wanted is None or (version == 0 and not wanted):
        return _response(node, fragments, request, fragments.all_topics())
    if version >= NULL_NAMES_AND_IDS_SINCE:
        _check_names_and_ids(version, wanted)
        if any(topic.topic_id != NO_TOPIC_ID for topic in wanted):
            unknown, found = _by_id(image, fragments, wanted)
            if len(wanted) > MANY:
                return _unknown_in_time_slices(node, context, request, unknown, found)
            return _response(node, fragments, request, [*unknown, *found])

    if len(wanted) > MANY:
        return _in_time_slices(node, context, request, wanted)
    found = []
    missing: list[str] = []
    for name in dict.fromkeys(cast("str", topic.name) for topic in wanted):
        known = image.topics.get(name)
        if known is None:
            missing.append(name)
        else:
            found.append(fragments.topic(known))
    if not missing:
        return _response(node, fragments, request, found)
    creatable = [name for name in missing if is_valid_topic_name(name)]
    if creatable and request.allow_auto_topic_creation and node.config.boolean("auto.create.topics.enable"):
        return _after_creation(node, context, request, wanted, creatable)
    codes = dict.fromkeys(creatable, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return _response(node, fragments, request, [*found, *noted(_missing(request, missing, codes), context)])


async def _in_time_slices(
    node: Node, context: RequestContext, request: MetadataRequest, wanted: Sequence[MetadataRequestTopic]
) -> MetadataResponse:
    """Answer a request for very many topics, most of which cannot exist."""
    names = dict.fromkeys(await in_time_slices(cast("str", topic.name) for topic in wanted))
    image = node.cache.image
    legal = await in_time_slices(
        name if name not in image.topics and is_valid_topic_name(name) else None for name in names
    )
    creatable = [name for name in legal if name is not None]
    if creatable and request.allow_auto_topic_creation and node.config.boolean("auto.create.topics.enable"):
        return await _after_creation(node, context, request, wanted, creatable)
    codes = dict.fromkeys(creatable, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    missing = [name for name in names if name not in image.topics]
    rows = await rows_in_time_slices(_missing(request, missing, codes), context)
    fragments = _fragments(node, context, request)
    found = [fragments.topic(image.topics[name]) for name in names if name in image.topics]
    return _response(node, fragments, request, [*found, *rows])


async def _after_creation(
    node: Node,
    context: RequestContext,
    request: MetadataRequest,
    wanted: Sequence[MetadataRequestTopic],
    creatable: Sequence[str],
) -> MetadataResponse:
    """Answer after the controller has been asked to create the missing topics."""
    codes = await create_missing_topics(node, context, creatable)
    # A topic just created keeps its code even if the image has it by now: the client asks again.
    names = dict.fromkeys(cast("str", topic.name) for topic in wanted)
    topics = node.cache.image.topics
    missing = [name for name in names if name in codes or name not in topics]
    rows = await rows_in_time_slices(_missing(request, missing, codes), context)
    fragments = _fragments(node, context, request)
    found = [fragments.topic(topics[name]) for name in names if name in topics and name not in codes]
    return _response(node, fragments, request, [*found, *rows])


def _fragments(node: Node, context: RequestContext, request: MetadataRequest) -> DialectFragments:
    dialect = Dialect(context.api_version, context.listener, request.include_topic_authorized_operations)
    return node.metadata_fragments.of(node.cache.image, dialect)


def _check_names_and_ids(version: int, wanted: Iterable[MetadataRequestTopic]) -> None:
    """Raise INVALID_REQUEST for names and ids that the version does not allow. In version 12 a
    topic without both gets UNKNOWN_SERVER_ERROR, as from Kafka.
    """
    if version < ASKED_BY_ID_SINCE:
        if any(topic.name is None or topic.topic_id != NO_TOPIC_ID for topic in wanted):
            raise Refusal(ErrorCode.INVALID_REQUEST)
    elif any(topic.name is None for topic in wanted) and all(topic.topic_id == NO_TOPIC_ID for topic in wanted):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)


def _by_id(
    image: Image, fragments: DialectFragments, wanted: Iterable[MetadataRequestTopic]
) -> tuple[Iterator[MetadataResponseTopic], list[Element]]:
    """Return the topics that a request names by id. A single id makes it such a request, and Kafka
    then ignores names and topics without an id. Unknown ids come first, as in Kafka.
    """
    unknown: list[bytes] = []
    found: list[Element] = []
    for topic_id in dict.fromkeys(topic.topic_id for topic in wanted if topic.topic_id != NO_TOPIC_ID):
        topic = image.topic_by_id(topic_id)
        if topic is None:
            unknown.append(topic_id)
        else:
            found.append(fragments.topic(topic))
    code = ErrorCode.UNKNOWN_TOPIC_ID
    return (MetadataResponseTopic(error_code=code, name=None, topic_id=topic_id) for topic_id in unknown), found


async def _unknown_in_time_slices(
    node: Node,
    context: RequestContext,
    request: MetadataRequest,
    unknown: Iterator[MetadataResponseTopic],
    found: Sequence[Element],
) -> MetadataResponse:
    rows = await rows_in_time_slices(unknown, context)
    return _response(node, _fragments(node, context, request), request, [*rows, *found])


def _missing(
    request: MetadataRequest, names: Iterable[str], codes: dict[str, ErrorCode]
) -> Iterator[MetadataResponseTopic]:
    """Return rows of topics that do not exist. A name that is not in `codes` gets
    INVALID_TOPIC_EXCEPTION.
    """
    operations = topic_operations(asked=request.include_topic_authorized_operations)
    return (
        MetadataResponseTopic(
            error_code=codes.get(name, ErrorCode.INVALID_TOPIC_EXCEPTION),
            name=name,
            is_internal=name in INTERNAL_TOPICS,
            topic_authorized_operations=operations,
        )
        for name in names
    )


def _response(
    node: Node, fragments: DialectFragments, request: MetadataRequest, topics: Sequence[Element]
) -> MetadataResponse:
    controller_id = node.cache.image.controller_id
    return MetadataResponse(
        brokers=cast("list[MetadataResponseBroker]", fragments.brokers),
        cluster_id=node.cluster_id,
        # A client would wait in vain for a controller that is not in the list.
        controller_id=controller_id if controller_id in fragments.reachable else -1,
        topics=cast("list[MetadataResponseTopic]", topics),
        cluster_authorized_operations=cluster_operations(asked=request.include_cluster_authorized_operations),
    )


def _error_fields(topic: MetadataRequestTopic) -> dict[str, str | bytes]:
    """Return the fields that identify a requested topic in its row. A missing name becomes empty,
    as in Kafka, although version 12 allows null.
    """
    return {"name": topic.name or "", "topic_id": topic.topic_id}


API = Spec(
    key=ApiKey.METADATA,
    handler=handle,
    waits_for_update=True,
    rows=Rows("topics", MetadataResponseTopic, {"topics": _error_fields}),
)
