"""ListGroups (16) lists the groups that this node coordinates. All of them are classic groups
without members; a group that the client may not describe is left out.
"""

from ...admin.permissions import Permission
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps
from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ..broker.view import BrokerView
from .groups import EMPTY, is_coordinated_by

CLASSIC = "classic"
LEFT_OUT = "the group is left out"
DESCRIBE_CLUSTER = Permission(
    AclOperation.DESCRIBE, AclResourceType.CLUSTER, f"or, for each group, Describe on it: else {LEFT_OUT}"
)
DESCRIBE_GROUP = Permission(AclOperation.DESCRIBE, AclResourceType.GROUP, LEFT_OUT)


def handle(view: BrokerView, context: RequestContext, request: ListGroupsRequest) -> Steps[ListGroupsResponse]:
    return ListGroupsResponse(groups=(yield from _groups(view, context)) if _wants(request) else [])


def _wants(request: ListGroupsRequest) -> bool:
    """Whether the filters let empty classic groups through."""
    return not (request.states_filter or request.types_filter) or all(
        not wanted or having.lower() in (each.lower() for each in wanted)
        for wanted, having in ((request.states_filter, EMPTY), (request.types_filter, CLASSIC))
    )


def _groups(view: BrokerView, context: RequestContext) -> Steps[list[ListedGroup]]:
    found: list[ListedGroup] = []
    topics, sees_all = view.cache.image.topics, context.may(DESCRIBE_CLUSTER, logs_denial=False)
    for group in view.cache.image.groups.values():
        yield
        if not group.group_id and not group.header.is_readable:
            continue  # nobody knows whose znode it is
        if not is_coordinated_by(view.broker_id, topics, group.group_id) or not group.exists(topics):
            continue
        if sees_all or context.may(DESCRIBE_GROUP, group.group_id, logs_denial=False):
            found.append(ListedGroup(group_id=group.group_id, group_state=EMPTY, group_type=CLASSIC))
    return found


API = ServedApi(
    key=ApiKey.LIST_GROUPS,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_CLUSTER, DESCRIBE_GROUP),
)
