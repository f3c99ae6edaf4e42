"""DescribeGroups (15) returns the state of groups that this node coordinates.

Groups have no members: one that has offsets is Empty, and any other is Dead, as Kafka reports a
group that does not exist. The response for a group of another node is NOT_COORDINATOR.
"""

from ...admin.spec import Rows, called
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ..broker.view import BrokerView
from .authorized_operations import group_operations
from .groups import DEAD, DESCRIBE_GROUP, EMPTY, group_at, is_coordinated_by


def handle(view: BrokerView, context: RequestContext, request: DescribeGroupsRequest) -> Steps[DescribeGroupsResponse]:
    """Return the rows of the refused groups and then those of the others, as Kafka does."""
    denied = yield from context.denied(DESCRIBE_GROUP, request.groups)
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    rows = [DescribedGroup(group_id=group, error_code=code) for group in request.groups if group in denied]
    for group in request.groups:
        if group not in denied:
            rows.append(_row(view, context, group, with_operations=request.include_authorized_operations))
            yield
    return DescribeGroupsResponse(groups=rows)


def _row(view: BrokerView, context: RequestContext, group: str, *, with_operations: bool) -> DescribedGroup:
    if not is_coordinated_by(view.broker_id, view.cache.image.topics, group):
        return DescribedGroup(group_id=group, error_code=ErrorCode.NOT_COORDINATOR)
    state = DEAD if group_at(view, group) is None else EMPTY
    operations = group_operations(context, group, asked=with_operations)
    return DescribedGroup(group_id=group, group_state=state, authorized_operations=operations)


API = ServedApi(
    key=ApiKey.DESCRIBE_GROUPS,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_GROUP,),
    rows=Rows("groups", DescribedGroup, {"groups": called("group_id")}),
)
