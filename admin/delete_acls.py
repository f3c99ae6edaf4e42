"""DeleteAcls (31) removes the ACLs that match filters.

As in Kafka, an ACL that several filters match belongs to the first of them, and a filter that
matches nothing is a success without ACLs.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from ..cluster.entities import NO_ACL_ENTRIES, AclEntries, refuse_unreadable
from ..cluster.image import Image
from ..cluster.znodes.acls import acl_path
from ..process.steps import Steps
from ..protocol.acls import AccessControlEntry, AclOperation, AclResourceType, ResourcePattern
from ..protocol.api_keys import ApiKey
from ..protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
)
from .acl_filters import AclFilter, acl_filter, check_filter_readable, entry_text, pattern_text
from .changes import Change
from .permissions import Permission
from .spec import Changes, Rows, Spec, copied

ALTER_CLUSTER = Permission(
    AclOperation.ALTER, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for each filter of the request"
)


Filters = Mapping[int, AclFilter]
"""Filters by their indexes in the request."""
Matched = Mapping[AccessControlEntry, int]
"""The ACLs of a resource pattern that filters match, sorted, each with the index of its filter."""


def by_pattern(
    filters: Sequence[AclFilter], acls: Mapping[ResourcePattern, AclEntries]
) -> Steps[dict[ResourcePattern, Filters]]:
    """Return the resource patterns with ACLs that filters match, and these filters, sorted."""
    found: dict[ResourcePattern, dict[int, AclFilter]] = {}
    for index, each in enumerate(filters):
        for pattern in each.patterns(acls):
            if any(map(each.matches_entry, acls[pattern].entries)):
                found.setdefault(pattern, {})[index] = each
            yield
        yield
    return {pattern: found[pattern] for pattern in sorted(found)}


def matched(image: Image, pattern: ResourcePattern, filters: Filters) -> Matched:
    owners: dict[AccessControlEntry, int] = {}
    for entry in sorted(image.acls.get(pattern, NO_ACL_ENTRIES).entries):
        index = next((index for index, each in filters.items() if each.matches_entry(entry)), None)
        if index is not None:
            owners[entry] = index
    return owners


def without_acls(
    image: Image, pattern: ResourcePattern, removed: Collection[AccessControlEntry]
) -> tuple[str, frozenset[AccessControlEntry]]:
    """Return the path of the ACLs of a resource pattern, and those that are left of them. Raises
    Refusal.
    """
    path, before = acl_path(pattern), image.acls.get(pattern, NO_ACL_ENTRIES)
    refuse_unreadable(path, before.version)
    return path, before.entries.difference(removed)


def removal(pattern: ResourcePattern, entries: Iterable[AccessControlEntry]) -> Change:
    """Return the change that removes these ACLs."""
    removed: dict[str, str | None] = dict.fromkeys(map(entry_text, entries))
    return Change(pattern_text(pattern), "acl", removed, dict.fromkeys(removed, "delete"))


def _requested(request: DeleteAclsRequest) -> Iterable[Change]:
    return [Change(str(acl_filter(each)), "acl") for each in request.filters]


def _check_readable(request: DeleteAclsRequest) -> None:
    for each in request.filters:
        check_filter_readable(each)


SPEC = Spec(
    key=ApiKey.DELETE_ACLS,
    check_readable=_check_readable,
    at_controller=True,
    rows=Rows("filter_results", DeleteAclsFilterResult, {"filters": copied()}),
    changes=Changes("delete_acls", _requested),
    permissions=(ALTER_CLUSTER,),
)
