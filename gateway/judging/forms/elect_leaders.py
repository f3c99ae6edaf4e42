"""ElectLeaders at the gateway, which may ask for an election of everything.

Rule: the topics of such an election are read from the cluster and judged, and a gateway that
enforces has exactly those go on, by name.
"""

from collections.abc import Iterator, Sequence

import msgspec

from ....admin.changes import Change, Outcome
from ....admin.requested_changes import election_type
from ....protocol.api_keys import ApiKey
from ....protocol.error_codes import ErrorCode
from ....protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
    TopicPartitions,
)
from ..judged import AskForClient, Judged, Part, Resolution
from ..mirror import Mirror
from .whole import Named, WholeForm

UNTOLD = frozenset(
    {
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.NOT_CONTROLLER,
    }
)
"""The answers to named partitions of which an election of everything does not tell. The last two
refuse it as a whole, which version 0 tells by its rows alone.
"""


async def _resolve(request: ElectLeadersRequest, mirror: Mirror) -> Resolution | None:
    if request.topic_partitions is not None:
        return None
    await mirror.read()
    kind = election_type(request)
    topics = sorted(mirror.image.topics.values(), key=lambda topic: topic.name)
    named = [TopicPartitions(topic.name, list(range(len(topic.partitions)))) for topic in topics]
    parts = [Part(("topic", each.name), [], Outcome(Change(each.name, election_type=kind))) for each in topics]
    return Resolution(parts, msgspec.structs.replace(request, topic_partitions=named), _of_everything)


def _of_everything(response: ElectLeadersResponse) -> ElectLeadersResponse:
    """Return the response of an election of everything, which has rows for elections alone, and
    none if it is refused as a whole.
    """
    rows = [] if response.error_code else list(_elections(response.replica_election_results))
    return msgspec.structs.replace(response, replica_election_results=rows)


def _elections(rows: Sequence[ReplicaElectionResult]) -> Iterator[ReplicaElectionResult]:
    for row in rows:
        told = [each for each in row.partition_result if each.error_code not in UNTOLD]
        if told:
            yield msgspec.structs.replace(row, partition_result=told)


def _refused_row(request: ElectLeadersRequest, refused: Sequence[Part]) -> ElectLeadersRequest:
    """Return the election of the first partitions of refused topics, so that there are rows to
    refuse.
    """
    if request.topic_partitions is not None:
        return request
    named = [TopicPartitions(topic=part.change.resource, partitions=[0]) for part in refused]
    return msgspec.structs.replace(request, topic_partitions=named)


async def _inquire(judged: Judged, version: int, ask: AskForClient) -> None:
    """Ask for the election of a topic that cannot be, for which the same right is needed as for one
    of everything, whose refusal would name all topics.
    """
    if judged.request.topic_partitions is not None or not judged.refused:
        return
    nothing = [TopicPartitions("no topic has this name", [0])]
    request = msgspec.structs.replace(judged.request, topic_partitions=nothing)
    response = await ask(ApiKey.ELECT_LEADERS, version, request)
    codes = {each.error_code for row in response.replica_election_results for each in row.partition_result}
    if ErrorCode.CLUSTER_AUTHORIZATION_FAILED in codes:
        judged.refusing = msgspec.structs.replace(response, replica_election_results=[])


FORM = WholeForm(
    key=ApiKey.ELECT_LEADERS,
    # An election of everything answers for the partitions that needed one.
    named=Named(lambda row: row.topic, without_row=ErrorCode.ELECTION_NOT_NEEDED),
    named_request=_refused_row,
    inquire=_inquire,
    resolve=_resolve,
)
