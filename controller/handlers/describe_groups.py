"""DescribeGroups (15): nodes without logs have no groups.

A group that this node would coordinate does not exist, which Kafka reports as the state Dead
without an error. The response for any other group is NOT_COORDINATOR.
"""

from collections.abc import Awaitable, Iterator

from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ..metadata.coordinators import COORDINATED_BY, CoordinatorType, coordinator_of
from ..requests.context import RequestContext
from ..requests.long_answers import are_few, noted, rows_in_time_slices
from ..requests.permissions import Permission
from ..requests.spec import Rows, Spec, called
from .authorized_operations import group_operations
from .node import Node

DEAD = "Dead"
DESCRIBE_GROUP = Permission(AclOperation.DESCRIBE, AclResourceType.GROUP, "GROUP_AUTHORIZATION_FAILED for the group")


def handle(
    node: Node, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse | Awaitable[DescribeGroupsResponse]:
    groups = _groups(node, context, request)
    if are_few(request.groups):
        return DescribeGroupsResponse(groups=list(noted(groups, context)))
    return _in_time_slices(context, groups)


async def _in_time_slices(context: RequestContext, groups: Iterator[DescribedGroup]) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=await rows_in_time_slices(groups, context))


def _groups(node: Node, context: RequestContext, request: DescribeGroupsRequest) -> Iterator[DescribedGroup]:
    """Yield the rows of the refused groups and then those of the others, as Kafka does."""
    offsets = node.cache.image.topics.get(COORDINATED_BY[CoordinatorType.GROUP])
    allowed: list[str] = []
    for group in request.groups:
        if context.may(DESCRIBE_GROUP, group):
            allowed.append(group)
        else:
            yield DescribedGroup(group_id=group, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    for group in allowed:
        if coordinator_of(group, offsets) == node.broker_id:
            operations = group_operations(context, group, asked=request.include_authorized_operations)
            yield DescribedGroup(group_id=group, group_state=DEAD, authorized_operations=operations)
        else:
            yield DescribedGroup(group_id=group, error_code=ErrorCode.NOT_COORDINATOR)


API = Spec(
    key=ApiKey.DESCRIBE_GROUPS,
    handler=handle,
    permissions=(DESCRIBE_GROUP,),
    rows=Rows("groups", DescribedGroup, {"groups": called("group_id")}),
)
