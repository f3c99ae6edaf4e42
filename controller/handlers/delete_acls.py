"""DeleteAcls (31) removes the ACLs that match filters.

As in Kafka, an ACL that several filters match belongs to the first of them, and a filter that
matches nothing is a success without ACLs.
"""

from collections.abc import Iterable, Mapping, Sequence

from ...admin.acl_filters import AclFilter, acl_filter, entry_text, pattern_text
from ...admin.changes import Change, Outcome
from ...admin.delete_acls import ALTER_CLUSTER, SPEC
from ...cluster.entities import AclEntries
from ...cluster.errors import Refusal
from ...cluster.znodes.acls import acl_path
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...process.time_slices import TimeSlice
from ...protocol.acls import AccessControlEntry, ResourcePattern
from ...protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from .acl_filters import check_request
from .controller_port import ControllerPort
from .entity_changes import EntityEdit, change_entities, refuse_request

Entries = frozenset[AccessControlEntry]


async def handle(port: ControllerPort, context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    try:
        check_request(context, ALTER_CLUSTER)
    except Refusal as refusal:
        await refuse_request(port, context, request, refusal)
    filters = [acl_filter(each) for each in request.filters]
    removals = await _removals(filters, port.controller.serving().image.acls)
    outcomes = await change_entities(port, context, request, [each.requested() for each in removals])
    answer = DeleteAclsResponse(filter_results=[_result() for _ in filters])
    for removal, outcome in zip(removals, outcomes, strict=True):
        for entry, index in removal.removed.items():
            answer.filter_results[index].matching_acls.append(_matching(removal.pattern, entry, outcome))
    return answer


class AclRemoval:
    """The ACLs of one resource pattern that filters match. They are matched once they are about to
    be removed, because a change that is under way may add or remove some before.
    """

    def __init__(self, pattern: ResourcePattern) -> None:
        self.pattern = pattern
        self.filters: dict[int, AclFilter] = {}
        """By their indexes in the request."""
        self.removed: dict[AccessControlEntry, int] = {}
        """The ACLs that are removed, sorted, each with the index of its filter."""
        self._operations: dict[str, str | None] = {}
        self._kinds: dict[str, str] = {}

    def requested(self) -> EntityEdit:
        return EntityEdit(
            Change(pattern_text(self.pattern), "acl", self._operations, self._kinds), acl_path(self.pattern), self._edit
        )

    def match(self, entries: Iterable[AccessControlEntry]) -> None:
        self.removed.clear()
        for entry in sorted(entries):
            index = next((index for index, each in self.filters.items() if each.matches_entry(entry)), None)
            if index is not None:
                self.removed[entry] = index
        self._operations.clear()
        self._operations.update(dict.fromkeys(map(entry_text, self.removed)))
        self._kinds.clear()
        self._kinds.update(dict.fromkeys(self._operations, "delete"))

    def _edit(self, before: Entries) -> Entries:
        self.match(before)
        return before.difference(self.removed)


async def _removals(filters: Sequence[AclFilter], acls: Mapping[ResourcePattern, AclEntries]) -> list[AclRemoval]:
    """Return the removals from the patterns that have ACLs which the filters match, sorted."""
    found: dict[ResourcePattern, AclRemoval] = {}
    time_slice = TimeSlice()
    for index, each in enumerate(filters):
        for pattern in each.patterns(acls):
            if any(map(each.matches_entry, acls[pattern].entries)):
                found.setdefault(pattern, AclRemoval(pattern)).filters[index] = each
            await time_slice.pause()
        await time_slice.pause()
    for pattern, removal in found.items():
        removal.match(acls[pattern].entries)
        await time_slice.pause()
    return [found[pattern] for pattern in sorted(found)]


def _result() -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_message=None, matching_acls=[])


def _matching(pattern: ResourcePattern, entry: AccessControlEntry, outcome: Outcome) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=outcome.code,
        error_message=outcome.message,
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )


API = served(SPEC, handle)
