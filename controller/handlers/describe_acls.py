"""DescribeAcls (29) returns the ACLs that match a filter, as this node follows them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import cast

from ...admin.acl_filters import AclFilter, acl_filter, check_filter_readable
from ...admin.permissions import Permission
from ...cluster.cache import MetadataCache
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...network.serving.kept_rows import Fragments, Joined, KeptRows
from ...process.steps import Steps, one_by_one
from ...protocol.acls import AccessControlEntry, AclOperation, AclResourceType, ResourcePattern
from ...protocol.api_keys import ApiKey
from ...protocol.compiler import encoder
from ...protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from .acl_filters import check_request

DESCRIBE_CLUSTER = Permission(
    AclOperation.DESCRIBE, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for the request"
)
KEPT_SINCE = 100  # patterns: answers about more are kept
VERSIONS_KEPT = 2
"""For so many versions the ACLs of each pattern are kept encoded."""
AclsOfPattern = tuple[ResourcePattern, Collection[AccessControlEntry]]
NO_AUTHORIZER = "No Authorizer is configured on the broker"


def handle(
    cache: MetadataCache,
    answers: KeptRows[Joined],
    patterns: Fragments,
    context: RequestContext,
    request: DescribeAclsRequest,
) -> Steps[DescribeAclsResponse]:
    """Answer, with kept `answers` about very many ACLs, and the kept ACLs of single `patterns`."""
    check_request(context, DESCRIBE_CLUSTER, NO_AUTHORIZER)
    wanted, acls = acl_filter(request), cache.image.acls
    version = context.header.api_version
    kept = answers.get(acls, (wanted, version))
    if kept is not None:
        return _response(kept)
    found = [(pattern, acls[pattern].entries) for pattern in wanted.patterns(acls)]
    if len(found) <= KEPT_SINCE:
        return _response((yield from one_by_one(_resources(wanted, found))))
    rows = (
        _encoded_resources(patterns, version, found)
        if wanted.matches_every_entry
        else map(encoder(DescribeAclsResource, version), _resources(wanted, found))
    )
    joined = Joined((yield from one_by_one(rows)))
    answers.keep(acls, (wanted, version), joined, joined.size)
    return _response(joined)


def _encoded_resources(fragments: Fragments, version: int, found: Collection[AclsOfPattern]) -> Iterator[bytes]:
    """Yield the rows of patterns with all their ACLs. Only patterns whose ACLs have changed are
    encoded anew.
    """
    encode = encoder(DescribeAclsResource, version)
    fragments.follow(None, VERSIONS_KEPT * len(found))
    for pattern, acls in sorted(found, key=itemgetter(0)):

        def row(acls: Collection[AccessControlEntry], pattern: ResourcePattern = pattern) -> tuple[bytes, int]:
            return encode(_resource(pattern, sorted(acls))), len(acls)

        fragment, count = fragments.of(None, (version, pattern), acls, row)
        if count:
            yield fragment


def _response(rows: Sequence[DescribeAclsResource] | Joined) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_message="", resources=cast("list[DescribeAclsResource]", rows))


def _resources(wanted: AclFilter, found: Iterable[AclsOfPattern]) -> Iterator[DescribeAclsResource]:
    for pattern, acls in sorted(found, key=itemgetter(0)):
        entries = sorted(filter(wanted.matches_entry, acls))
        if entries:
            yield _resource(pattern, entries)


def _resource(pattern: ResourcePattern, entries: Iterable[AccessControlEntry]) -> DescribeAclsResource:
    return DescribeAclsResource(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        acls=[
            AclDescription(
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission_type,
            )
            for entry in entries
        ],
    )


API = ServedApi(
    key=ApiKey.DESCRIBE_ACLS,
    handler=handle,
    check_readable=check_filter_readable,
    waits_for_update=True,
    permissions=(DESCRIBE_CLUSTER,),
)
