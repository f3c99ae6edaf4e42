"""UpdateMetadata (6) brings the active controller's metadata to this node. Only authenticated
brokers may send it.

Brokers are replaced as a whole, partitions are merged one by one, and a leader of -2 removes the
partition. A request with COMPLETE_TAG, the first that this program's controllers send, removes
every topic that it does not name. A request with CONFIGS_TAG is answered after the changed configs
and other entities are read, one with RECALL_TAG with what this node knows of the topics that the
tag names.
"""

from collections.abc import Awaitable, Iterable
from functools import partial

from ...admin.permissions import CLUSTER_ACTION
from ...admin.spec import Sender
from ...cluster.cache import MetadataCache, first_update_number
from ...cluster.entities import (
    LEADER_DURING_DELETE,
    NO_TOPIC_ID,
    SECURITY_PROTOCOLS,
    Broker,
    Endpoint,
    Topic,
)
from ...cluster.image import Image
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from ..active import control_requests, recall
from ..broker.view import BrokerView
from .control import ElectedController

PROTOCOL_NAMES = {number: name for name, number in SECURITY_PROTOCOLS.items()}


def handle(
    view: BrokerView, elected: ElectedController, context: RequestContext, request: UpdateMetadataRequest
) -> UpdateMetadataResponse | Awaitable[UpdateMetadataResponse]:
    answer = elected.obey(
        request,
        partial(_apply, view.cache, elected.max_topic_bytes, context, request),
        lambda error: UpdateMetadataResponse(error_code=error),
    )
    return (
        _answered(elected, request, answer) if control_requests.CONFIGS_TAG in (request.unknown_tags or {}) else answer
    )


def _apply(
    cache: MetadataCache, max_topic_bytes: int, context: RequestContext, request: UpdateMetadataRequest
) -> UpdateMetadataResponse:
    topics = request.topic_states if context.header.api_version >= 5 else _grouped(request.ungrouped_partition_states)
    changed: dict[str, Topic] = {}
    removed: dict[str, None] = {}
    for state in topics:
        _merge(cache.image, max_topic_bytes, state, changed, removed)
    tags = request.unknown_tags or {}
    if control_requests.COMPLETE_TAG in tags:
        removed.update(dict.fromkeys(name for name in cache.image.topics if name not in changed))
    cache.apply(
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        brokers=_changed_brokers(cache.image, request.live_brokers, context.header.api_version),
        changed=changed.values(),
        removed=removed,
    )
    if control_requests.UPDATE_NUMBER_TAG in tags:
        number = int.from_bytes(tags[control_requests.UPDATE_NUMBER_TAG], signed=True)
        cache.updated_to(min(number, first_update_number(request.controller_epoch + 1) - 1))
    asked = tags.get(control_requests.RECALL_TAG)
    told = None if asked is None else {control_requests.RECALL_TAG: recall.remembered(cache.image, asked)}
    return UpdateMetadataResponse(unknown_tags=told)


async def _answered(
    elected: ElectedController,
    request: UpdateMetadataRequest,
    answer: UpdateMetadataResponse | Awaitable[UpdateMetadataResponse],
) -> UpdateMetadataResponse:
    """Answer a request with CONFIGS_TAG once what the tag names is read."""
    applied = answer if isinstance(answer, UpdateMetadataResponse) else await answer
    if applied.error_code != ErrorCode.NONE:
        return applied
    is_done = await elected.read_changed(
        control_requests.reread_entities((request.unknown_tags or {})[control_requests.CONFIGS_TAG])
    )
    return UpdateMetadataResponse(error_code=ErrorCode.NONE if is_done else ErrorCode.REQUEST_TIMED_OUT)


def _merge(
    image: Image,
    max_topic_bytes: int,
    state: UpdateMetadataTopicState,
    changed: dict[str, Topic],
    removed: dict[str, None],
) -> None:
    name = state.topic_name
    if state.partition_states and all(p.leader == LEADER_DURING_DELETE for p in state.partition_states):
        changed.pop(name, None)
        removed[name] = None
        return
    known = changed.get(name) or (None if name in removed else image.topics.get(name))
    if known is None or (state.topic_id != known.topic_id and NO_TOPIC_ID not in (state.topic_id, known.topic_id)):
        known = Topic(name=name)  # the topic was deleted and created again without this node seeing it
    changed[name] = recall.topic_of(state, known, max_topic_bytes)


def _changed_brokers(image: Image, live: Iterable[UpdateMetadataBroker], version: int) -> list[Broker] | None:
    """Return the brokers, or None if they have not changed, so that responses cached by brokers
    stay valid.
    """
    brokers = [
        Broker(
            broker_id=broker.id,
            endpoints=_endpoints(broker) if version >= 1 else (Endpoint("PLAINTEXT", broker.v0_host, broker.v0_port),),
            rack=broker.rack if version >= 2 else None,
            holds_replicas=control_requests.NO_REPLICAS_TAG not in (broker.unknown_tags or ()),
        )
        for broker in live
    ]
    if {broker.broker_id: broker for broker in brokers} == dict(image.brokers.items()):
        return None
    return brokers


def _endpoints(broker: UpdateMetadataBroker) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(
            listener=endpoint.listener or PROTOCOL_NAMES.get(endpoint.security_protocol, "PLAINTEXT"),
            host=endpoint.host,
            port=endpoint.port,
            security_protocol=PROTOCOL_NAMES.get(endpoint.security_protocol, "PLAINTEXT"),
        )
        for endpoint in broker.endpoints
    )


def _grouped(states: Iterable[UpdateMetadataPartitionState]) -> list[UpdateMetadataTopicState]:
    """Group partition states by topic. Versions before 5 name the topic in every partition."""
    topics: dict[str, UpdateMetadataTopicState] = {}
    for state in states:
        topics.setdefault(
            state.topic_name, UpdateMetadataTopicState(topic_name=state.topic_name)
        ).partition_states.append(state)
    return list(topics.values())


API = ServedApi(
    key=ApiKey.UPDATE_METADATA,
    handler=handle,
    sender=Sender.NODE,
    permissions=(CLUSTER_ACTION,),
)
