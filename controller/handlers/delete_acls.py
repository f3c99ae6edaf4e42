"""DeleteAcls (31) removes the ACLs that match filters.

As in Kafka, an ACL that several filters match belongs to the first of them, and a filter that
matches nothing is a success without ACLs.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from ...protocol.acls import AccessControlEntry, AclOperation, AclResourceType, ResourcePattern
from ...protocol.api_keys import ApiKey
from ...protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ..errors import Refusal
from ..metadata.entities import AclEntries
from ..requests.changes import Change, RequestedChange
from ..requests.context import RequestContext
from ..requests.permissions import Permission
from ..requests.spec import Changes, Rows, Spec, copied
from ..requests.time_slices import TimeSlice
from ..znodes.acls import acl_path
from .acl_filters import (
    AclFilter,
    acl_filter,
    check_filter_readable,
    check_request,
    entry_text,
    pattern_text,
)
from .changes import active_controller
from .entity_changes import EntityEdit, change_entities, refuse_request
from .node import Node

ALTER_CLUSTER = Permission(
    AclOperation.ALTER, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for each filter of the request"
)

Entries = frozenset[AccessControlEntry]
Matches = dict[ResourcePattern, dict[AccessControlEntry, int]]
"""The ACLs that filters match, by their patterns, each with the index of its filter."""


async def handle(node: Node, context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    try:
        check_request(context, ALTER_CLUSTER)
    except Refusal as refusal:
        await refuse_request(node, context, request, refusal)
    filters = [acl_filter(each) for each in request.filters]
    matches = await _matches(filters, active_controller(node).image.acls)
    edits = [_removed(pattern, entries) for pattern, entries in matches.items()]
    changes = await change_entities(node, context, request, edits)
    answer = DeleteAclsResponse(filter_results=[_result() for _ in filters])
    for (pattern, entries), change in zip(matches.items(), changes, strict=True):
        for entry, index in sorted(entries.items()):
            answer.filter_results[index].matching_acls.append(_matching(pattern, entry, change))
    return answer


async def _matches(filters: Sequence[AclFilter], acls: Mapping[ResourcePattern, AclEntries]) -> Matches:
    found: Matches = {}
    time_slice = TimeSlice()
    for index, each in enumerate(filters):
        for pattern in each.patterns(acls):
            for entry in acls[pattern].entries:
                if each.matches_entry(entry):
                    found.setdefault(pattern, {}).setdefault(entry, index)
            await time_slice.pause()
        await time_slice.pause()
    return dict(sorted(found.items()))


def _removed(pattern: ResourcePattern, entries: Collection[AccessControlEntry]) -> EntityEdit:
    def edit(before: Entries) -> Entries:
        return before.difference(entries)

    removed = {entry_text(each): None for each in sorted(entries)}
    return EntityEdit("acl", pattern_text(pattern), acl_path(pattern), edit, removed, dict.fromkeys(removed, "delete"))


def _result() -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_message=None, matching_acls=[])


def _matching(pattern: ResourcePattern, entry: AccessControlEntry, change: Change) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=change.code,
        error_message=change.message,
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )


def _requested(request: DeleteAclsRequest) -> Iterable[RequestedChange]:
    return [RequestedChange(str(acl_filter(each)), "acl") for each in request.filters]


def _check_readable(request: DeleteAclsRequest) -> None:
    for each in request.filters:
        check_filter_readable(each)


API = Spec(
    key=ApiKey.DELETE_ACLS,
    handler=handle,
    check_readable=_check_readable,
    at_controller=True,
    rows=Rows("filter_results", DeleteAclsFilterResult, {"filters": copied()}),
    changes=Changes("delete_acls", _requested),
    permissions=(ALTER_CLUSTER,),
)
