"""DescribeAcls (29) returns the ACLs that match a filter, as this node follows them."""

from collections.abc import Iterable

from ...protocol.acls import AccessControlEntry, AclOperation, AclResourceType, ResourcePattern
from ...protocol.api_keys import ApiKey
from ...protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from ..requests.context import RequestContext
from ..requests.permissions import Permission
from ..requests.spec import Spec
from .acl_filters import acl_filter, check_filter_readable, check_request
from .node import Node

DESCRIBE_CLUSTER = Permission(
    AclOperation.DESCRIBE, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for the request"
)
NO_AUTHORIZER = "No Authorizer is configured on the broker"


def handle(node: Node, context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    check_request(context, DESCRIBE_CLUSTER, NO_AUTHORIZER)
    wanted = acl_filter(request)
    acls = node.security.acls
    resources = [
        (pattern, sorted(filter(wanted.matches_entry, acls[pattern].entries)))
        for pattern in sorted(wanted.patterns(acls))
    ]
    return DescribeAclsResponse(
        error_message="", resources=[_resource(pattern, entries) for pattern, entries in resources if entries]
    )


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
