"""DeleteAcls at the gateway, which names filters and not what it deletes.

Rule: the ACLs that the filters match are read from the cluster and judged, and a gateway that
enforces has exactly those go on, by name. So what has come to be since then is left alone, because
nobody has judged it.
"""

from collections.abc import Sequence
from functools import partial
from itertools import islice, starmap
from operator import attrgetter
from uuid import uuid4

import msgspec

from ....admin.changes import Outcome
from ....admin.delete_acls import removal
from ....protocol.acls import AccessControlEntry, ResourcePattern
from ....protocol.api_keys import ApiKey
from ....protocol.error_codes import ErrorCode
from ....protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ..judged import Part, Resolution
from ..mirror import Mirror
from .whole import WholeForm

MOST_FILTERS = 200
"""How many filters a DeleteAcls may have that is judged: the cluster is asked what each matches."""
MOST_ACLS = 1_000
"""How many ACLs the filters of a request may match that is judged: each goes on as a filter, which
the cluster compares with all ACLs that it has.
"""


async def _resolve(request: DeleteAclsRequest, mirror: Mirror) -> Resolution | None:
    if any(map(_has_an_unknown_code, request.filters)):
        return None
    if len(request.filters) > MOST_FILTERS:
        return _too_much(request, f"The gateway judges at most {MOST_FILTERS} filters in one request.")
    matched: dict[ResourcePattern, dict[AccessControlEntry, None]] = {}
    named: list[list[DeleteAclsFilter]] = []
    for each in request.filters:
        found = await mirror.acls_matching(each)
        acls = [_only(pattern, entry) for pattern, entries in found.items() for entry in entries]
        named.append(acls or [_of_nobody(each)])
        for pattern, entries in found.items():
            matched.setdefault(pattern, {}).update(dict.fromkeys(entries))
    if sum(map(len, named)) > MOST_ACLS:
        return _too_much(request, f"The gateway judges at most {MOST_ACLS} matching ACLs in one request.")
    parts = [
        Part(("acl", change.resource), [], Outcome(change))
        for change in sorted(starmap(removal, matched.items()), key=attrgetter("resource"))
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


def _has_an_unknown_code(wanted: DeleteAclsFilter) -> bool:
    """Whether a filter says that its sender did not know what to seek: 0 means unknown for ever.
    Every Kafka ends such a connection, also that of a gateway that asks.
    """
    return 0 in (wanted.resource_type_filter, wanted.pattern_type_filter, wanted.operation, wanted.permission_type)


FORM = WholeForm(key=ApiKey.DELETE_ACLS, resolve=_resolve)
