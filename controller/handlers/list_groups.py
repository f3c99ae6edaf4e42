"""ListGroups (16) lists the groups that this node coordinates, all of them classic ones. A group
that the client may not describe is left out.
"""

from collections.abc import Sequence

from ...admin.permissions import Permission
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps
from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ..broker.coordinator import Coordinator

CLASSIC = "classic"
LEFT_OUT = "the group is left out"
DESCRIBE_CLUSTER = Permission(
    AclOperation.DESCRIBE, AclResourceType.CLUSTER, f"or, for each group, Describe on it: else {LEFT_OUT}"
)
DESCRIBE_GROUP = Permission(AclOperation.DESCRIBE, AclResourceType.GROUP, LEFT_OUT)


def handle(coordinator: Coordinator, context: RequestContext, request: ListGroupsRequest) -> Steps[ListGroupsResponse]:
    if not _lets_through(request.types_filter, CLASSIC):
        return ListGroupsResponse()
    return ListGroupsResponse(groups=(yield from _groups(coordinator, context, request.states_filter)))


def _lets_through(wanted: Sequence[str], having: str) -> bool:
    return not wanted or having.lower() in (each.lower() for each in wanted)


def _groups(coordinator: Coordinator, context: RequestContext, states: Sequence[str]) -> Steps[list[ListedGroup]]:
    found: list[ListedGroup] = []
    sees_all = context.may(DESCRIBE_CLUSTER, logs_denial=False)
    for group in coordinator.groups():
        yield
        if group is None or not _lets_through(states, group.state):
            continue
        if sees_all or context.may(DESCRIBE_GROUP, group.group_id, logs_denial=False):
            found.append(
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type,
                    group_state=group.state,
                    group_type=CLASSIC,
                )
            )
    return found


API = ServedApi(
    key=ApiKey.LIST_GROUPS,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_CLUSTER, DESCRIBE_GROUP),
)
