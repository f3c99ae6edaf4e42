"""Requests that do not name what they change: DeleteAcls names filters, and an election may be one
of everything.

Rule: what such a request means is read from the cluster and judged, and a gateway that enforces has
exactly that go on, by name. So what has come to be since then is left alone, because nobody has
judged it.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any
from uuid import uuid4

import msgspec

from ...admin.acl_filters import entry_text, pattern_text
from ...admin.changes import Change, Outcome
from ...admin.requested_changes import election_type
from ...cluster.image import Image
from ...protocol.acls import AccessControlEntry, ResourcePattern
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ...protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
    TopicPartitions,
)
from .mirror import Mirror
from .parts import Part

MOST_FILTERS = 200
"""How many filters a DeleteAcls may have that is judged: the cluster is asked what each matches."""
MOST_ACLS = 1_000
"""How many ACLs the filters of a request may match that is judged: each goes on as a filter, which
the cluster compares with all ACLs that it has.
"""
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


class Resolution(msgspec.Struct, frozen=True):
    """The ACLs or topics that a request stands for, and the request that names them."""

    parts: list[Part]
    request: Any
    """The request that names it."""
    answer: Callable[[Any], Any]
    """Returns the response to the client's request, given the response to this one."""
    excess: str | None = None
    """Why the request is not judged, if it stands for too much; `request` then changes nothing."""


async def resolution(request: Any, mirror: Mirror) -> Resolution | None:
    """Return what a request means; None if it says so itself. Raises NotKnownError."""
    if isinstance(request, DeleteAclsRequest) and not any(map(_has_an_unknown_code, request.filters)):
        return await _deletion(request, mirror)
    if isinstance(request, ElectLeadersRequest) and request.topic_partitions is None:
        await mirror.read()
        return _election(request, mirror.image)
    return None


def _has_an_unknown_code(wanted: DeleteAclsFilter) -> bool:
    """Whether a filter says that its sender did not know what to seek: 0 means unknown for ever.
    Every Kafka ends such a connection, also that of a gateway that asks.
    """
    return 0 in (wanted.resource_type_filter, wanted.pattern_type_filter, wanted.operation, wanted.permission_type)


async def _deletion(request: DeleteAclsRequest, mirror: Mirror) -> Resolution:
    if len(request.filters) > MOST_FILTERS:
        return _too_much(request, f"The gateway judges at most {MOST_FILTERS} filters in one request.")
    matched: dict[str, dict[str, str | None]] = {}
    named: list[list[DeleteAclsFilter]] = []
    for each in request.filters:
        found = await mirror.acls_matching(each)
        acls = [_only(pattern, entry) for pattern, entries in found.items() for entry in entries]
        named.append(acls or [_of_nobody(each)])
        for pattern, entries in found.items():
            matched.setdefault(pattern_text(pattern), {}).update(dict.fromkeys(map(entry_text, entries)))
    if sum(map(len, named)) > MOST_ACLS:
        return _too_much(request, f"The gateway judges at most {MOST_ACLS} matching ACLs in one request.")
    parts = [
        Part(("acl", name), [], Outcome(Change(name, "acl", entries, dict.fromkeys(entries, "delete"))))
        for name, entries in sorted(matched.items())
    ]
    exact = msgspec.structs.replace(request, filters=[each for filters in named for each in filters])
    return Resolution(parts, exact, partial(_by_filter, [len(filters) for filters in named]))


def _of_nobody(wanted: DeleteAclsFilter) -> DeleteAclsFilter:
    """Return a filter that matches nothing in any state, and that the cluster refuses as it refuses
    this one.
    """
    return msgspec.structs.replace(wanted, principal_filter=f"User:{uuid4()}")


def _too_much(request: DeleteAclsRequest, text: str) -> Resolution:
    """Return a request that deletes nothing, so that the cluster says first whether the client may
    delete ACLs: how many there are is told to nobody else.
    """

    def answer(response: DeleteAclsResponse) -> DeleteAclsResponse:
        rows = [
            row if row.error_code else DeleteAclsFilterResult(ErrorCode.INVALID_REQUEST, text)
            for row in response.filter_results
        ]
        return msgspec.structs.replace(response, filter_results=rows)

    nothing = msgspec.structs.replace(request, filters=list(map(_of_nobody, request.filters)))
    return Resolution([], nothing, answer, excess=text)


def _only(pattern: ResourcePattern, entry: AccessControlEntry) -> DeleteAclsFilter:
    """Return the filter that matches one ACL."""
    return DeleteAclsFilter(
        resource_type_filter=pattern.resource_type,
        resource_name_filter=pattern.name,
        pattern_type_filter=pattern.pattern_type,
        principal_filter=entry.principal,
        host_filter=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )


def _by_filter(counts: Sequence[int], response: DeleteAclsResponse) -> DeleteAclsResponse:
    """Return a row for each filter of the client, which stands for so many rows of the response."""
    left = iter(response.filter_results)
    rows = [_together(list(islice(left, count))) for count in counts]
    return msgspec.structs.replace(response, filter_results=rows)


def _together(rows: Sequence[DeleteAclsFilterResult]) -> DeleteAclsFilterResult:
    failed = next((row for row in rows if row.error_code), None)
    if failed is not None and not any(row.matching_acls for row in rows):
        return failed
    return DeleteAclsFilterResult(error_message=None, matching_acls=[acl for row in rows for acl in row.matching_acls])


def _election(request: ElectLeadersRequest, image: Image) -> Resolution:
    kind = election_type(request)
    topics = sorted(image.topics.values(), key=lambda topic: topic.name)
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
