"""DescribeConfigs (32) returns the configs of topics, of this node and of all nodes, and the levels
of this node's loggers.

Rows stand in the order of the request. A resource that is named twice
gets its encoded row twice, within the bounds of `AnswerSize`.
"""

import logging
from collections.abc import Awaitable, Hashable, Iterator, Mapping, Sequence
from typing import cast

from ...admin.bounds import AnswerSize
from ...admin.configs.description import DescribedConfig, broker_entries, default_broker_entries, topic_entries
from ...admin.permissions import Permission
from ...admin.spec import Rows, copied
from ...cluster.entities import Topic
from ...cluster.errors import Refusal
from ...cluster.topic_names import validate_topic_name
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...policies.configs.values import InvalidValueError, java_int
from ...process.settings import log_levels
from ...process.settings.node_config import NodeConfig, kept_in_config
from ...process.steps import Steps, one_by_one
from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.compiler import encoder
from ...protocol.config_resources import ResourceType
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ...store.base import SessionExpired, StoreUnavailable
from ..broker.topic_overrides import TopicOverrides
from ..broker.view import BrokerView

log = logging.getLogger("minicontroller.config")

LOGGER_SOURCE = 6
"""The source of logger levels (Kafka: DYNAMIC_BROKER_LOGGER_CONFIG)."""
STORE_IS_AWAY = (
    "The configs of topics are in ZooKeeper, which this node cannot reach now: try again, or ask another node."
)
SUCCESS_TEXT = ""
"""Kafka's message in a row without an error, and in that of a missing topic."""


DESCRIBE_CONFIGS_OF_TOPIC = Permission(
    AclOperation.DESCRIBE_CONFIGS, AclResourceType.TOPIC, "TOPIC_AUTHORIZATION_FAILED for the topic, after the others"
)
DESCRIBE_CONFIGS_OF_CLUSTER = Permission(
    AclOperation.DESCRIBE_CONFIGS,
    AclResourceType.CLUSTER,
    "CLUSTER_AUTHORIZATION_FAILED for brokers and loggers, after the others",
)

_TYPES = frozenset(ResourceType) - {ResourceType.GROUP}
"""The types that Kafka 3.9 describes; it has no configs of groups."""

Overrides = Mapping[str, Mapping[str, str]]
"""The overridden configs of topics, by topic name."""
Row = DescribeConfigsResult | bytes
"""A row of the response: an error as a struct, or an encoded result."""


Answer = Steps[DescribeConfigsResponse | Awaitable["Answer"]]


def handle(
    view: BrokerView, overrides: TopicOverrides, context: RequestContext, request: DescribeConfigsRequest
) -> Answer:
    unknown = next((each for each in request.resources if each.resource_type not in _TYPES), None)
    if unknown is not None:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"Resource {unknown.resource_name!r} is of type {unknown.resource_type}, of which nothing can be described.",
        )
    known = overrides.known(_topics(view, request))
    if known is None:
        return _with_overrides(view, overrides, context, request)
    return (yield from _response(view, context, request, known))


def _topics(view: BrokerView, request: DescribeConfigsRequest) -> list[Topic]:
    """Return the topics of the request that this node knows, each once."""
    names = [each.resource_name for each in request.resources if each.resource_type == ResourceType.TOPIC]
    topics = view.cache.image.topics
    return [topics[name] for name in dict.fromkeys(names) if name in topics]


async def _with_overrides(
    view: BrokerView, overrides: TopicOverrides, context: RequestContext, request: DescribeConfigsRequest
) -> Answer:
    read: Overrides | None = None
    try:
        read = await overrides.read(_topics(view, request))
    except (StoreUnavailable, SessionExpired) as error:
        log.debug("the configs of topics cannot be read now: %s", error)
    return _response(view, context, request, read)


def _response(
    view: BrokerView, context: RequestContext, request: DescribeConfigsRequest, overrides: Overrides | None
) -> Steps[DescribeConfigsResponse]:
    rows = yield from one_by_one(_rows(view, context, request, overrides))
    return DescribeConfigsResponse(results=cast("list[DescribeConfigsResult]", rows))


def _rows(
    view: BrokerView, context: RequestContext, request: DescribeConfigsRequest, overrides: Overrides | None
) -> Iterator[Row]:
    encode = encoder(DescribeConfigsResult, context.header.api_version)
    made: dict[Hashable, Row] = {}
    size = AnswerSize()
    denied: list[DescribeConfigsResource] = []
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        if not _may_describe(context, resource):
            denied.append(resource)
            continue
        asked = (kind, name, frozenset(resource.configuration_keys or ()))
        row = made.get(asked)
        if row is None:
            result = _result(view, request, resource, overrides, context.header.api_version)
            row = made[asked] = result if result.error_code else encode(result)
        if isinstance(row, bytes):
            thing = (kind, name if kind == ResourceType.TOPIC else java_int(name))
            if not size.takes(thing, row):
                row = made[asked] = _too_often(kind, name)
        yield row
    yield from map(_unauthorized, denied)


def _may_describe(context: RequestContext, resource: DescribeConfigsResource) -> bool:
    if resource.resource_type == ResourceType.TOPIC:
        return context.may(DESCRIBE_CONFIGS_OF_TOPIC, resource.resource_name)
    return context.may(DESCRIBE_CONFIGS_OF_CLUSTER)


def _unauthorized(resource: DescribeConfigsResource) -> DescribeConfigsResult:
    of_topic = resource.resource_type == ResourceType.TOPIC
    return DescribeConfigsResult(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED if of_topic else ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        error_message="Topic authorization failed." if of_topic else "Cluster authorization failed.",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


def _too_often(kind: int, name: str) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message="The request names this resource too often.",
        resource_type=kind,
        resource_name=name,
    )


def _result(
    view: BrokerView,
    request: DescribeConfigsRequest,
    resource: DescribeConfigsResource,
    overrides: Overrides | None,
    version: int,
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        error_message=SUCCESS_TEXT, resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    keys = frozenset(resource.configuration_keys or ())
    try:
        if resource.resource_type == ResourceType.BROKER_LOGGER:
            result.configs = [row for row in _logger_rows(view, resource.resource_name) if not keys or row.name in keys]
            return result
        entries = _entries(view, resource, overrides)
    except Refusal as refusal:
        result.error_code, result.error_message = refusal.code, refusal.message
        return result
    synonyms, documentation = request.include_synonyms, request.include_documentation
    shared = _shared_rows(view.configs.current, resource.resource_type, version, synonyms, documentation)
    result.configs = [
        made[1] if (made := shared.get(entry.name)) and made[0] is entry else _row(entry, synonyms, documentation)
        for entry in entries
        if not keys or entry.name in keys
    ]
    return result


@kept_in_config
def _shared_rows(
    config: NodeConfig, kind: int, version: int, synonyms: bool, documentation: bool
) -> Mapping[str, tuple[DescribedConfig, DescribeConfigsResourceResult]]:
    """Return the configs of this view, or of topics without overrides, each by name with its
    encoded row.
    """
    entries = topic_entries({}, config) if kind == ResourceType.TOPIC else broker_entries(config)
    encode = encoder(DescribeConfigsResourceResult, version)
    rows = [cast("DescribeConfigsResourceResult", encode(_row(entry, synonyms, documentation))) for entry in entries]
    return {entry.name: (entry, row) for entry, row in zip(entries, rows, strict=True)}


def _entries(
    view: BrokerView, resource: DescribeConfigsResource, overrides: Overrides | None
) -> Sequence[DescribedConfig]:
    """Return all configs of one resource. Raises Refusal."""
    name, config = resource.resource_name, view.configs.current
    match resource.resource_type:
        case ResourceType.TOPIC:
            validate_topic_name(name)
            if name not in view.cache.image.topics:
                raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, SUCCESS_TEXT)
            if overrides is None:
                raise Refusal(ErrorCode.REQUEST_TIMED_OUT, STORE_IS_AWAY)
            return _topic_entries(name, overrides.get(name, {}), config)
        case ResourceType.BROKER if not name:
            return default_broker_entries(config)
        case ResourceType.BROKER:
            _check_own_id(view, name, f"{view.broker_id} or empty string,")
            return broker_entries(config)
        case _:
            raise Refusal(ErrorCode.INVALID_REQUEST, "Config type client-metrics is only supported on KRaft clusters")


def _topic_entries(name: str, overrides: Mapping[str, str], config: NodeConfig) -> Sequence[DescribedConfig]:
    """Return the configs of a topic. Raises UNKNOWN_SERVER_ERROR if another program has stored a
    value that no topic can have, as Kafka answers then, without the text.
    """
    try:
        return topic_entries(overrides, config)
    except InvalidValueError as error:
        raise Refusal(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"The configs that another program has stored for topic {name} are not in force: {error}",
        ) from None


def _check_own_id(view: BrokerView, name: str, expected: str) -> None:
    number = java_int(name)
    if number is None:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if number != view.broker_id:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {expected} but received {name}")


def _logger_rows(view: BrokerView, name: str) -> list[DescribeConfigsResourceResult]:
    if not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    _check_own_id(view, name, str(view.broker_id))
    return [
        DescribeConfigsResourceResult(name=logger, value=level, config_source=LOGGER_SOURCE, documentation="")
        for logger, level in log_levels.described_levels().items()
    ]


def _row(entry: DescribedConfig, synonyms: bool, documentation: bool) -> DescribeConfigsResourceResult:
    """Return the row of a config. `is_default` of version 0 is always false, as in Kafka."""
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in (entry.synonyms if synonyms else ())
        ],
        config_type=entry.type,
        documentation=entry.documentation if documentation else None,
    )


API = ServedApi(
    key=ApiKey.DESCRIBE_CONFIGS,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_CONFIGS_OF_TOPIC, DESCRIBE_CONFIGS_OF_CLUSTER),
    rows=Rows("results", DescribeConfigsResult, {"resources": copied("resource_type", "resource_name")}),
)
