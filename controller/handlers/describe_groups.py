"""DescribeGroups (15): nodes without logs have no groups.

A group that this node would coordinate does not exist, which Kafka reports as the state Dead
without an error. The response for any other group is NOT_COORDINATOR.
"""

from collections.abc import Awaitable, Iterator

from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ..metadata.coordinators import COORDINATED_BY, CoordinatorType, coordinator_of
from ..metadata.operations import group_operations
from ..requests.context import RequestContext
from ..requests.long_answers import are_few, noted, rows_in_time_slices
from ..requests.spec import Rows, Spec, called
from .node import Node

DEAD = "Dead"


def handle(
    node: Node, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse | Awaitable[DescribeGroupsResponse]:
    groups = _groups(node, request)
    if are_few(request.groups):
        return DescribeGroupsResponse(groups=list(noted(groups, context)))
    return _in_time_slices(context, groups)


async def _in_time_slices(context: RequestContext, groups: Iterator[DescribedGroup]) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=await rows_in_time_slices(groups, context))


def _groups(node: Node, request: DescribeGroupsRequest) -> Iterator[DescribedGroup]:
    offsets = node.cache.image.topics.get(COORDINATED_BY[CoordinatorType.GROUP])
    operations = group_operations(asked=request.include_authorized_operations)
    for group in request.groups:
        if coordinator_of(group, offsets) == node.broker_id:
            yield DescribedGroup(group_id=group, group_state=DEAD, authorized_operations=operations)
        else:
            yield DescribedGroup(group_id=group, error_code=ErrorCode.NOT_COORDINATOR)


API = Spec(
    key=ApiKey.DESCRIBE_GROUPS,
    handler=handle,
    rows=Rows("groups", DescribedGroup, {"groups": called("group_id")}),
)
