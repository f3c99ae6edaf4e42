"""Asks the cluster about the parts of a request that the gateway does not see. What it has read may
be old, and the client's rights are known to the cluster alone, which tells nobody without rights
whether a topic exists.

Rule: an inquiry is answered as if the client had sent it, before the rest of its request goes on.
It changes nothing in any state of the cluster, and whatever the answer is, the part does not go on.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from uuid import UUID

import msgspec

from ...cluster.entities import NO_TOPIC_ID
from ...cluster.errors import Refusal
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from ...protocol.messages.delete_topics import DeleteTopicState
from ...protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ...protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from . import automatic
from .dissection import FORMS, ClusterAnswer
from .judged import Judged
from .parts import CLUSTER_REFUSES, Part
from .questions import NotAsked, NotSeen
from .records import KNOWN_CODES

AskForClient = Callable[[ApiKey, int, Any], Awaitable[Any]]
"""Has the cluster answer a request of the gateway itself as if the client had sent it. Raises
ProtocolError.
"""
NOT_SEEN_YET = "The gateway does not see this yet; try it again."
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
NO_PARTITION = 2**31 - 1
"""The index of a partition that no topic has."""
DELETION_HAS_STATES_SINCE = 6
"""The first version of DeleteTopics whose topics are structs."""


async def inquire(judged: Judged, version: int, ask: AskForClient) -> None:
    """Refuse what the gateway does not see as the cluster does, in this version of the API, and an
    election of everything, whose refusal would name all topics.
    """
    if isinstance(judged.request, ElectLeadersRequest):
        await _inquire_about_election(judged, version, ask)
        return
    unseen = [each for each in judged.parts if isinstance(each.outcome.refusal, NotSeen)]
    if not unseen:
        return
    if judged.form.key == ApiKey.DELETE_TOPICS:
        await _inquire_about_deletion(judged, version, unseen, ask)
        return
    request = INQUIRIES[judged.form.key](judged, unseen)
    response = await ask(judged.form.key, version, request)
    if getattr(response, "error_code", ErrorCode.NONE):
        judged.refusing = response
    answers = judged.form.answers(unseen, response)
    for each, outcomes in zip(unseen, answers, strict=True):
        for outcome in outcomes[:1]:
            _refuse(each, outcome)


async def _inquire_about_election(judged: Judged, version: int, ask: AskForClient) -> None:
    """Ask for the election of a topic that cannot be, for which the same right is needed."""
    if judged.request.topic_partitions is not None or not judged.refused:
        return
    nothing = [TopicPartitions("no topic has this name", [0])]
    request = msgspec.structs.replace(judged.request, topic_partitions=nothing)
    response = await ask(ApiKey.ELECT_LEADERS, version, request)
    codes = {each.error_code for row in response.replica_election_results for each in row.partition_result}
    if ErrorCode.CLUSTER_AUTHORIZATION_FAILED in codes:
        judged.refusing = msgspec.structs.replace(response, replica_election_results=[])


def _refuse(each: Part, outcome: ClusterAnswer) -> None:
    """Refuse a part as the cluster does. What the cluster would carry out has come to be since the
    gateway looked, and the client is to ask again.
    """
    if outcome.code == ErrorCode.NONE and isinstance(each.outcome.refusal, NotAsked):
        return  # the gateway's own reason
    if outcome.code == ErrorCode.NONE:
        each.refuse(Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_SEEN_YET))
    elif outcome.code in KNOWN_CODES:
        reason = each.refusal.reason if outcome.code == each.refusal.code else ""
        each.refuse(Refusal(ErrorCode(outcome.code), outcome.message, reason=reason))


# ------------------------------------------------------------------ requests without an effect


def _dry_run(judged: Judged, unseen: Sequence[Part]) -> Any:
    places = [place for each in unseen for place in each.places]
    return msgspec.structs.replace(FORMS[judged.form.key].only(judged.request, places), validate_only=True)


def _of_no_topics(judged: Judged, _unseen: Sequence[Part]) -> Any:
    """Return a request of which only the right to send it is checked, that to alter the cluster."""
    return msgspec.structs.replace(judged.request, topics=[])


def _of_no_partition(judged: Judged, unseen: Sequence[Part]) -> Any:
    rows = [DeleteRecordsPartition(NO_PARTITION)]
    return msgspec.structs.replace(
        judged.request, topics=[DeleteRecordsTopic(each.change.resource, rows) for each in unseen]
    )


INQUIRIES: Mapping[int, Callable[[Judged, Sequence[Part]], Any]] = MappingProxyType(
    {
        ApiKey.CREATE_PARTITIONS: _dry_run,
        ApiKey.ALTER_CONFIGS: _dry_run,
        ApiKey.INCREMENTAL_ALTER_CONFIGS: _dry_run,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: _of_no_topics,
        ApiKey.DELETE_RECORDS: _of_no_partition,
    }
)
"""Make the request of the same API that stands for the parts which are not seen."""


async def _inquire_about_deletion(judged: Judged, version: int, unseen: Sequence[Part], ask: AskForClient) -> None:
    """Ask for the deletion of topics that cannot be, each named as often as what it stands for. The
    answer is that to any topic which does not exist. That the right is missing is the answer for
    those alone which the client may not describe, because it may have rights to others.
    """
    groups: dict[tuple[bool, bool], list[Part]] = {}
    for each in unseen:
        groups.setdefault((each.topic_id != NO_TOPIC_ID, each.is_repeated), []).append(each)
    request = _deletion(judged, version, groups)
    response = await ask(ApiKey.DELETE_TOPICS, version, request)
    answers = judged.form.answers(judged.form.parts(request), response)
    for parts, outcomes in zip(groups.values(), answers, strict=False):
        for outcome in outcomes[:1]:
            is_denied = outcome.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            for each in await _hidden(parts, ask) if is_denied else parts:
                _refuse(each, outcome)


def _deletion(judged: Judged, version: int, groups: Iterable[tuple[bool, bool]]) -> Any:
    """Return a request for topics that cannot be. What no cluster carries out stands beside them,
    because Kafka on ZooKeeper refuses all for it.
    """
    topics = [NO_TOPICS[group] for group in groups for _ in range(1 + group[1])]
    refused = [each for each in judged.parts if each.outcome.unjudged is CLUSTER_REFUSES]
    others = [element for each in refused for element in each.elements(judged.request)]
    if version >= DELETION_HAS_STATES_SINCE:
        return msgspec.structs.replace(judged.request, topics=[*topics, *others])
    return msgspec.structs.replace(judged.request, topic_names=[*(each.name for each in topics), *others])


async def _hidden(named: Sequence[Part], ask: AskForClient) -> list[Part]:
    """Return those that are about topics which the client may not describe."""
    topics = [MetadataRequestTopic(name=each.change.resource) for each in named]
    request = MetadataRequest(topics, allow_auto_topic_creation=False)
    response = await ask(ApiKey.METADATA, automatic.CREATION_IS_ASKED_SINCE, request)
    names = {row.name for row in response.topics if row.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    return [each for each in named if each.change.resource in names]
