"""Metadata (3) returns the brokers, the controller, and the leaders of partitions, from this node's
image.

A read is answered at once, from encoded fragments. Only a request that creates a topic waits: for
the controller and its policy, but not for the topic, for which the client retries
(LEADER_NOT_AVAILABLE).
"""

from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress
from typing import cast

from ...admin.permissions import Permission
from ...admin.spec import Rows
from ...cluster.entities import INTERNAL_TOPICS, NO_TOPIC_ID, Topic
from ...cluster.errors import Refusal
from ...cluster.topic_names import is_valid_topic_name
from ...network.serving.api import ServedApi
from ...network.serving.context import NAMES_AT_ONCE, NO_NAMES, RequestContext
from ...network.serving.fragments import Variant, VariantFragments
from ...process.steps import Steps, one_by_one
from ...protocol.acls import NO_OPERATIONS, AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from ..broker.auto_creation import AutoCreation
from ..broker.view import BrokerView
from .authorized_operations import cluster_operations

NULL_NAMES_AND_IDS_SINCE, ASKED_BY_ID_SINCE = 10, 12
"""The first version with null names and topic ids, and the first in which clients may use them."""

Element = MetadataResponseTopic | bytes

DESCRIBE_TOPIC = Permission(
    AclOperation.DESCRIBE,
    AclResourceType.TOPIC,
    "TOPIC_AUTHORIZATION_FAILED for the topic, without its name if it was asked for by id; a list of all topics "
    "leaves it out",
)
CREATE_TOPICS = Permission(
    AclOperation.CREATE, AclResourceType.CLUSTER, "missing topics that the client may not create are not created"
)
CREATE_TOPIC = Permission(
    AclOperation.CREATE, AclResourceType.TOPIC, "TOPIC_AUTHORIZATION_FAILED for a missing topic instead of its creation"
)
DESCRIBE_CLUSTER = Permission(AclOperation.DESCRIBE, AclResourceType.CLUSTER, "no authorized operations of the cluster")


Answer = Steps[MetadataResponse | Awaitable["Answer"]]


def handle(
    view: BrokerView, creation: AutoCreation, context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Answer:
    version, wanted = context.header.api_version, request.topics
    if wanted is None or (version == 0 and not wanted):
        return _response(view, context, request, _all_topics(view, context, request))
    if version >= NULL_NAMES_AND_IDS_SINCE:
        _check_names_and_ids(version, wanted)
        if any(topic.topic_id != NO_TOPIC_ID for topic in wanted):
            return _by_id(view, context, request, wanted)
    topics = view.cache.image.topics
    if len(wanted) <= NAMES_AT_ONCE and all(topic.name in topics for topic in wanted):
        return _existing(view, context, request, wanted)
    return _by_name(view, creation, context, request, wanted)


def _existing(
    view: BrokerView, context: RequestContext, request: MetadataRequest, wanted: Iterable[MetadataRequestTopic]
) -> MetadataResponse:
    """Answer for few topics, all of which exist: the usual request, which needs no steps."""
    names = list(dict.fromkeys(cast("str", topic.name) for topic in wanted))
    denied = context.without(DESCRIBE_TOPIC, names)
    found = [name for name in names if name not in denied] if denied else names
    return _response(view, context, request, [*_found(view, context, request, found), *_unauthorized(sorted(denied))])


def _by_name(
    view: BrokerView,
    creation: AutoCreation,
    context: RequestContext,
    request: MetadataRequest,
    wanted: Iterable[MetadataRequestTopic],
) -> Answer:
    names = list(dict.fromkeys(cast("str", topic.name) for topic in wanted))
    denied = yield from context.denied(DESCRIBE_TOPIC, names)
    found, missing = _divided(view.cache.image.topics, names, denied)
    if missing and _creates_topics(view, request):
        return (yield from _creating(view, creation, context, request, names, denied=denied))
    errors = chain(_missing(context, request, missing, {}), _unauthorized(sorted(denied)))
    return (yield from _with_errors(view, context, request, found, errors))


def _with_errors(
    view: BrokerView,
    context: RequestContext,
    request: MetadataRequest,
    found: Sequence[str],
    errors: Iterable[MetadataResponseTopic],
) -> Steps[MetadataResponse]:
    """Answer with existing topics and the rows of others, in whose course some may be deleted."""
    rows = yield from one_by_one(errors)
    topics = view.cache.image.topics
    found = [name for name in found if name in topics]
    return _response(view, context, request, [*_found(view, context, request, found), *rows])


def _creating(
    view: BrokerView,
    creation: AutoCreation,
    context: RequestContext,
    request: MetadataRequest,
    names: Sequence[str],
    *,
    denied: frozenset[str],
) -> Answer:
    """Answer after the controller has been asked to create those missing topics that the client may
    create.
    """
    _, missing = _divided(view.cache.image.topics, names, denied)
    may_create_all = context.may(CREATE_TOPICS, logs_denial=False)
    uncreatable = NO_NAMES if may_create_all else (yield from context.denied(CREATE_TOPIC, missing))
    valid = yield from one_by_one(name not in uncreatable and is_valid_topic_name(name) for name in missing)
    creatable = list(compress(missing, valid))

    async def created() -> Answer:
        codes = await creation.create(context, creatable) if creatable else {}
        # A topic just created keeps its code even if the image has it by now: clients ask again.
        found, missing = _divided(view.cache.image.topics, names, denied | uncreatable, frozenset(codes))
        errors = chain(_missing(context, request, missing, codes), _unauthorized(sorted(uncreatable) + sorted(denied)))
        return _with_errors(view, context, request, found, errors)

    return created()


def _creates_topics(view: BrokerView, request: MetadataRequest) -> bool:
    return request.allow_auto_topic_creation and view.configs.static.boolean("auto.create.topics.enable")


def _divided(
    topics: Mapping[str, Topic], names: Sequence[str], denied: frozenset[str], created: frozenset[str] = NO_NAMES
) -> tuple[list[str], list[str]]:
    """Return the existing and the missing topics among those that the client may describe. Topics
    in `created` count as missing.
    """
    described = [name for name in names if name not in denied] if denied else names
    missing = [name for name in described if name not in topics or name in created]
    found = [name for name in described if name in topics and name not in created] if missing else list(described)
    return found, missing


def _all_topics(view: BrokerView, context: RequestContext, request: MetadataRequest) -> Sequence[Element]:
    """Return the topics that the client may describe, in the order of their names."""
    fragments, viewer = _fragments(view, context, request), context.viewer
    if context.dispatcher.authorization is None:
        return fragments.all_topics()

    def described() -> list[bytes]:
        names = sorted(view.cache.image.topics)
        allowed = compress(names, context.may_each(DESCRIBE_TOPIC, names, logs_denials=False))
        return _found(view, context, request, list(allowed))

    return described() if viewer is None else fragments.kept(viewer, described)


def _found(view: BrokerView, context: RequestContext, request: MetadataRequest, names: Sequence[str]) -> list[bytes]:
    """Return the encoded elements of topics of the image."""
    fragments, topics = _fragments(view, context, request), view.cache.image.topics
    if context.dispatcher.authorization is None or not request.include_topic_authorized_operations:
        return [fragments.topic(topics[name]) for name in names]
    return [
        fragments.topic_with_operations(topics[name], context.authorized_operations(AclResourceType.TOPIC, name))
        for name in names
    ]


def _fragments(view: BrokerView, context: RequestContext, request: MetadataRequest) -> VariantFragments:
    variant = Variant(context.header.api_version, context.listener, request.include_topic_authorized_operations)
    return view.encoded.of(view.cache.image, variant)


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
    view: BrokerView, context: RequestContext, request: MetadataRequest, wanted: Sequence[MetadataRequestTopic]
) -> Answer:
    """Answer for the topics that a request names by id. A single id makes it such a request, and
    Kafka then ignores names and topics without an id. Unknown ids come first, as in Kafka.
    """
    image, unknown = view.cache.image, list[MetadataResponseTopic]()
    known: dict[str, Topic] = {}
    for topic_id in dict.fromkeys(topic.topic_id for topic in wanted if topic.topic_id != NO_TOPIC_ID):
        topic = image.topic_by_id(topic_id)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
            unknown.append(MetadataResponseTopic(error_code=code, name=None, topic_id=topic_id))
        else:
            known[topic.name] = topic
        yield
    denied = yield from context.denied(DESCRIBE_TOPIC, list(known))
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    rows = [MetadataResponseTopic(error_code=code, name=None, topic_id=known[name].topic_id) for name in sorted(denied)]
    still = [name for name, topic in known.items() if view.cache.image.topic_by_id(topic.topic_id) is not None]
    found = _found(view, context, request, [name for name in still if name not in denied])
    return _response(view, context, request, [*unknown, *found, *rows])


def _missing(
    context: RequestContext, request: MetadataRequest, names: Iterable[str], codes: Mapping[str, ErrorCode]
) -> Iterator[MetadataResponseTopic]:
    """Return rows of topics that do not exist, with their codes, or else whether their names are
    valid.
    """
    asked = request.include_topic_authorized_operations
    for name in names:
        code = codes.get(name)
        if code is None:
            is_valid = is_valid_topic_name(name)
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid else ErrorCode.INVALID_TOPIC_EXCEPTION
        yield MetadataResponseTopic(
            error_code=code,
            name=name,
            is_internal=name in INTERNAL_TOPICS,
            topic_authorized_operations=context.authorized_operations(AclResourceType.TOPIC, name)
            if asked
            else NO_OPERATIONS,
        )


def _unauthorized(names: Iterable[str]) -> Iterator[MetadataResponseTopic]:
    return (MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name) for name in names)


def _response(
    view: BrokerView, context: RequestContext, request: MetadataRequest, topics: Sequence[Element]
) -> MetadataResponse:
    controller_id, fragments = view.cache.image.controller_id, _fragments(view, context, request)
    return MetadataResponse(
        brokers=cast("list[MetadataResponseBroker]", fragments.brokers),
        cluster_id=view.cluster_id,
        # A client would wait in vain for a controller that is not in the list.
        controller_id=controller_id if controller_id in fragments.reachable else -1,
        topics=cast("list[MetadataResponseTopic]", topics),
        cluster_authorized_operations=cluster_operations(
            context, DESCRIBE_CLUSTER, asked=request.include_cluster_authorized_operations
        ),
    )


def _error_fields(topic: MetadataRequestTopic) -> dict[str, str | bytes]:
    """Return the fields that identify a requested topic in its row. A missing name becomes empty,
    as in Kafka, although version 12 allows null.
    """
    return {"name": topic.name or "", "topic_id": topic.topic_id}


API = ServedApi(
    key=ApiKey.METADATA,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_TOPIC, CREATE_TOPICS, CREATE_TOPIC, DESCRIBE_CLUSTER),
    rows=Rows("topics", MetadataResponseTopic, {"topics": _error_fields}),
)
