"""DescribeAcls (29) returns the ACLs that match a filter, as this node follows them."""

from collections.abc import Awaitable, Collection, Iterable, Iterator
from operator import itemgetter

from ...protocol.acls import AccessControlEntry, AclOperation, AclResourceType, ResourcePattern
from ...protocol.api_keys import ApiKey
from ...protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from ..requests.context import RequestContext
from ..requests.long_answers import AT_ONCE, rows_in_time_slices
from ..requests.permissions import Permission
from ..requests.spec import Spec
from .acl_filters import AclFilter, acl_filter, check_filter_readable, check_request
from .node import Node

DESCRIBE_CLUSTER = Permission(
    AclOperation.DESCRIBE, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for the request"
)
NO_AUTHORIZER = "No Authorizer is configured on the broker"


def handle(
    node: Node, context: RequestContext, request: DescribeAclsRequest
) -> DescribeAclsResponse | Awaitable[DescribeAclsResponse]:
    check_request(context, DESCRIBE_CLUSTER, NO_AUTHORIZER)
    wanted, acls = acl_filter(request), node.security.acls
    found = [(pattern, acls[pattern].entries) for pattern in wanted.patterns(acls)]
    rows = _resources(wanted, found)
    return _response(rows) if len(found) <= AT_ONCE else _in_time_slices(rows, context)


async def _in_time_slices(rows: Iterable[DescribeAclsResource], context: RequestContext) -> DescribeAclsResponse:
    """Answer with very many ACLs."""
    return _response(await rows_in_time_slices(rows, context))


def _response(rows: Iterable[DescribeAclsResource]) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_message="", resources=list(rows))


def _resources(
    wanted: AclFilter, found: Iterable[tuple[ResourcePattern, Collection[AccessControlEntry]]]
) -> Iterator[DescribeAclsResource]:
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


API = Spec(
    key=ApiKey.DESCRIBE_ACLS,
    handler=handle,
    check_readable=check_filter_readable,
    waits_for_update=True,
    permissions=(DESCRIBE_CLUSTER,),
)
