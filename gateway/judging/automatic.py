"""Topics that a request creates without asking for it: Metadata names a missing topic, and
FindCoordinator needs the topic of a coordinator.

The creation is judged as a CreateTopics of the client would be. A name that is refused is taken out
of Metadata, and answered as nodes of this program answer it; without its topic there is no
coordinator.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from ...admin.apis import SPECS
from ...admin.automatic_creation import as_seen_by_the_client, creatable_topic
from ...admin.error_answers import error_answer
from ...cluster.errors import Refusal
from ...cluster.topic_names import is_valid_topic_name
from ...process.settings.node_config import NodeConfig
from ...process.time_slices import in_time_slices
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from ...protocol.messages.find_coordinator import FindCoordinatorRequest
from ...protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic
from ...protocol.schema import WireStruct
from .judged import AskForClient, Judged

CREATION_IS_ASKED_SINCE = 4
"""The first version of Metadata that says whether missing topics are to be created."""
EMPTY_MEANS_ALL_IN = 0
"""The version of Metadata in which no names stand for all topics."""
BESIDE_ANOTHER = "The request also names a topic that must not be created again; request this topic alone."
FINAL = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION})
"""The errors of topics in Metadata that say that they are not being created."""
TOPICS_OF_COORDINATORS: Mapping[int, str] = MappingProxyType(
    {0: "__consumer_offsets", 1: "__transaction_state", 2: "__share_group_state"}
)
"""The topics that coordinators keep their state in, by the type of the coordinator."""


def creatable(request: WireStruct, version: int) -> Iterator[str]:
    """Yield the names of the topics that a request may have created if they are missing."""
    if isinstance(request, FindCoordinatorRequest):
        topic = TOPICS_OF_COORDINATORS.get(request.key_type)
        if topic is not None:
            yield topic
        return
    assert isinstance(request, MetadataRequest)
    is_asked = version < CREATION_IS_ASKED_SINCE or request.allow_auto_topic_creation
    if is_asked:
        yield from (each.name for each in request.topics or () if each.name and is_valid_topic_name(each.name))


async def creation(names: Sequence[str], config: NodeConfig) -> CreateTopicsRequest:
    """Return the CreateTopics that stands for the creation of these topics."""
    return CreateTopicsRequest(topics=await in_time_slices(creatable_topic(config, name) for name in names))


def leave_new_topics(judged: Judged) -> bool:
    """Leave the topics in a judged creation that were not seen, and return whether the cluster may
    create any. It may not if one of the seen ones must not be created, in case that it is gone: the
    cluster creates all that are missing, or none.
    """
    if judged.too_long is None and any(each.is_there and not each.is_passed for each in judged.parts):
        for each in judged.passed:
            each.refuse(Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, BESIDE_ANOTHER))
    judged.parts = [each for each in judged.parts if not each.is_there]
    return bool(judged.passed)


def without(request: WireStruct, refused: Mapping[str, ErrorCode]) -> WireStruct | None:
    if isinstance(request, MetadataRequest):
        kept = [topic for topic in request.topics or () if topic.name not in refused]
        return msgspec.structs.replace(request, topics=kept)
    return None


def answered(request: WireStruct, version: int, response: Any | None, refused: Mapping[str, ErrorCode]) -> Any:
    if response is None:
        spec = SPECS[ApiKey.FIND_COORDINATOR]
        return error_answer(spec, request, version, code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert isinstance(request, MetadataRequest)
    assert isinstance(response, MetadataResponse)
    asked = {topic.name for topic in request.topics or ()}
    theirs = [row for row in response.topics if version != EMPTY_MEANS_ALL_IN or row.name in asked]
    codes = {code: as_seen_by_the_client(code) for code in set(refused.values())}
    own = [MetadataResponseTopic(name=name, error_code=codes[code]) for name, code in refused.items()]
    return msgspec.structs.replace(response, topics=[*theirs, *own])


async def hidden(names: Sequence[str], ask: AskForClient) -> Collection[str]:
    """Return those of these topics which the client may not describe."""
    topics = [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics, allow_auto_topic_creation=False)
    response = await ask(ApiKey.METADATA, CREATION_IS_ASKED_SINCE, request)
    return {row.name for row in response.topics if row.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def outcome(names: Sequence[str], response: Any | None) -> CreateTopicsResponse:
    """Return the response to the CreateTopics that stands for a request: a cluster that creates a
    topic answers as if it did not know it, so that the outcome is in doubt until it shows it.
    """
    codes = dict.fromkeys(names, ErrorCode.REQUEST_TIMED_OUT)
    if isinstance(response, MetadataResponse):
        codes |= {
            row.name: ErrorCode(row.error_code)
            for row in response.topics
            if row.name in codes and row.error_code in FINAL
        }
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(name=name, error_code=code) for name, code in codes.items()]
    )
