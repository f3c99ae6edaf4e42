"""DescribeGroups (15) returns the state and the members of groups that this node coordinates. A
group that does not exist is Dead, as in Kafka, and one of another node is NOT_COORDINATOR.
"""

from ...admin.spec import Rows, called
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ..broker.coordinator import CoordinatedGroup, Coordinator
from .authorized_operations import group_operations
from .groups import DESCRIBE_GROUP

DEAD = "Dead"


def handle(
    coordinator: Coordinator, context: RequestContext, request: DescribeGroupsRequest
) -> Steps[DescribeGroupsResponse]:
    """Return the rows of the refused groups and then those of the others, as Kafka does."""
    denied = yield from context.denied(DESCRIBE_GROUP, request.groups)
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    rows = [DescribedGroup(group_id=group, error_code=code) for group in request.groups if group in denied]
    for group in request.groups:
        if group not in denied:
            rows.append(_row(coordinator, context, group, with_operations=request.include_authorized_operations))
            yield
    return DescribeGroupsResponse(groups=rows)


def _row(coordinator: Coordinator, context: RequestContext, group_id: str, *, with_operations: bool) -> DescribedGroup:
    if not coordinator.coordinates_group(group_id):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.NOT_COORDINATOR)
    group = coordinator.group(group_id) or CoordinatedGroup(group_id, DEAD)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol,
        members=list(group.members),
        authorized_operations=group_operations(context, group_id, asked=with_operations),
    )


API = ServedApi(
    key=ApiKey.DESCRIBE_GROUPS,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_GROUP,),
    rows=Rows("groups", DescribedGroup, {"groups": called("group_id")}),
)
