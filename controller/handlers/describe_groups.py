"""DescribeGroups (15) returns the state of groups that this node coordinates.

Groups have no members: one that has offsets is Empty, and any other is Dead, as Kafka reports a
group that does not exist. The response for a group of another node is NOT_COORDINATOR.
"""

from collections.abc import Awaitable, Iterator

from ...admin.spec import Rows, called
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...network.serving.long_answers import are_few, noted, rows_in_time_slices
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from .authorized_operations import group_operations
from .groups import DEAD, DESCRIBE_GROUP, EMPTY, group_at, is_coordinated_by
from .node import Node


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
    allowed: list[str] = []
    for group in request.groups:
        if context.may(DESCRIBE_GROUP, group):
            allowed.append(group)
        else:
            yield DescribedGroup(group_id=group, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    for group in allowed:
        if is_coordinated_by(node.broker_id, node, group):
            state = DEAD if group_at(node, group) is None else EMPTY
            operations = group_operations(context, group, asked=request.include_authorized_operations)
            yield DescribedGroup(group_id=group, group_state=state, authorized_operations=operations)
        else:
            yield DescribedGroup(group_id=group, error_code=ErrorCode.NOT_COORDINATOR)


API = ServedApi(
    key=ApiKey.DESCRIBE_GROUPS,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_GROUP,),
    rows=Rows("groups", DescribedGroup, {"groups": called("group_id")}),
)
