"""DescribeGroups (15): nodes without logs have no groups. One that would be coordinated here does not exist, which Kafka calls Dead and
no error; of any other this node is not the one to ask.
"""

from typing import TYPE_CHECKING

from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ..cluster.coordinators import COORDINATED_BY, CoordinatorType, coordinator_of
from ..cluster.operations import group_operations
from ..context import RequestContext

if TYPE_CHECKING:
    from ..node import Node

DEAD = "Dead"


def handle(node: "Node", _context: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    offsets = node.cache.image.topics.get(COORDINATED_BY[CoordinatorType.GROUP])
    operations = group_operations(asked=request.include_authorized_operations)
    return DescribeGroupsResponse(
        groups=[
            DescribedGroup(group_id=group, group_state=DEAD, authorized_operations=operations)
            if coordinator_of(group, offsets) == node.broker_id
            else DescribedGroup(group_id=group, error_code=ErrorCode.NOT_COORDINATOR)
            for group in request.groups
        ]
    )
