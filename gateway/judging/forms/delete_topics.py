"""DeleteTopics at the gateway."""

from collections.abc import Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

import msgspec

from ....admin.delete_topics import KNOWS_POLICIES
from ....cluster.delta import TopicMarked
from ....cluster.entities import NO_TOPIC_ID
from ....cluster.image import Image
from ....protocol.api_keys import ApiKey
from ....protocol.error_codes import ErrorCode
from ....protocol.messages.delete_topics import DeleteTopicState
from .. import automatic
from ..judged import CLUSTER_REFUSES, AskForClient, Effect, Judged, Part
from ..questions import QuestionContext
from .parted import PartedForm, refuse_by, seen_topic

NO_TOPICS: Mapping[tuple[bool, bool], DeleteTopicState] = MappingProxyType(
    {
        (False, False): DeleteTopicState("no topic has this name"),
        (False, True): DeleteTopicState("no topic has this name twice"),
        (True, False): DeleteTopicState(None, UUID(int=1).bytes),
        (True, True): DeleteTopicState(None, UUID(int=2).bytes),
    }
)
"""Topics that cannot be, by id or not and for what is named twice or not: Kafka allows no spaces in
names, and the ids that it gives are random (UUIDs of version 4).
"""
HAS_STATES_SINCE = 6
"""The first version whose topics are structs."""


def _plan(context: QuestionContext, part: Part, _wanted: Any, image: Image) -> None:
    with seen_topic(part, image, has_text=False) as topic:  # Kafka 3.9 has no text here
        request = context.asked.delete_topic(topic.name, created_ms=context.created_ms(topic.name))
        part.plan(request, TopicMarked(topic.name, topic.topic_id))


def _is_both(thing: str | DeleteTopicState) -> bool:
    """Whether a topic is given by its name and its id, which every Kafka refuses."""
    return isinstance(thing, DeleteTopicState) and thing.name is not None and thing.topic_id != NO_TOPIC_ID


def _identity(thing: str | DeleteTopicState) -> Hashable:
    if isinstance(thing, str):
        return ("name", thing)
    if _is_both(thing):  # not the topic of either alone
        return ("both", thing.name, thing.topic_id)
    return ("id", thing.topic_id) if thing.name is None else ("name", thing.name)


def _row_identities(row: Any) -> Iterable[Hashable]:
    return (("id", row.topic_id), ("name", row.name), ("both", row.name, row.topic_id))


async def _inquire(judged: Judged, version: int, ask: AskForClient) -> None:
    """Ask for the deletion of topics that cannot be, each named as often as what it stands for. The
    answer is that to any topic which does not exist. That the right is missing is the answer for
    those alone which the client may not describe, because it may have rights to others.
    """
    groups: dict[tuple[bool, bool], list[Part]] = {}
    for each in judged.parts:
        if each.reveals_topic:
            groups.setdefault((each.topic_id != NO_TOPIC_ID, each.is_repeated), []).append(each)
    if not groups:
        return
    request = _deletion(judged, version, groups)
    response = await ask(ApiKey.DELETE_TOPICS, version, request)
    answers = FORM.outcomes(FORM.parts(request), response)
    for parts, outcomes in zip(groups.values(), answers, strict=False):
        for outcome in outcomes[:1]:
            is_denied = outcome.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            hidden = await automatic.hidden([each.change.resource for each in parts], ask) if is_denied else ()
            for each in parts:
                if not is_denied or each.change.resource in hidden:
                    refuse_by(each, outcome)


def _deletion(judged: Judged, version: int, groups: Iterable[tuple[bool, bool]]) -> Any:
    """Return a request for topics that cannot be. What no cluster carries out stands beside them,
    because Kafka on ZooKeeper refuses all for it.
    """
    topics = [NO_TOPICS[group] for group in groups for _ in range(1 + group[1])]
    refused = [each for each in judged.parts if each.outcome.unjudged is CLUSTER_REFUSES]
    others = [element for each in refused for element in each.elements(judged.request)]
    if version >= HAS_STATES_SINCE:
        return msgspec.structs.replace(judged.request, topics=[*topics, *others])
    return msgspec.structs.replace(judged.request, topic_names=[*(each.name for each in topics), *others])


FORM = PartedForm(
    key=ApiKey.DELETE_TOPICS,
    fields=("topic_names", "topics"),
    ask=_plan,
    impossible=_is_both,
    identity=_identity,
    row_identities=_row_identities,
    effect=Effect.REMOVAL,
    told_once={ErrorCode.INVALID_REQUEST},
    knows_policies=KNOWS_POLICIES,
    inquire=_inquire,
)
