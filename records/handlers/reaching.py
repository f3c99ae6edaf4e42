"""Whether a client has reached the coordinator that it needs, and may use it."""

from ...controller.broker.coordinator import Coordinator
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from .permissions import READ_GROUP, WRITE_TRANSACTIONAL_ID


def refusal_of_member(coordinator: Coordinator, context: RequestContext, group_id: str) -> ErrorCode:
    """Return why a client may not be a member of a group at this node, or NONE."""
    if not context.may(READ_GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return refusal_of_group(coordinator, group_id)


def refusal_of_group(coordinator: Coordinator, group_id: str, *, may_be_nameless: bool = False) -> ErrorCode:
    """Return why this node cannot answer for a group, or NONE. The empty id is that of a group for
    OffsetCommit, OffsetFetch, DescribeGroups and DeleteGroups alone.
    """
    if not group_id and not may_be_nameless:
        return ErrorCode.INVALID_GROUP_ID
    return ErrorCode.NONE if coordinator.coordinates_group(group_id) else ErrorCode.NOT_COORDINATOR


def refusal_of_producer(coordinator: Coordinator, context: RequestContext, transactional_id: str) -> ErrorCode:
    """Return why a client may not have transactions of an id at this node, or NONE."""
    if not context.may(WRITE_TRANSACTIONAL_ID, transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not transactional_id:
        return ErrorCode.INVALID_REQUEST
    is_here = coordinator.coordinates_transactional_id(transactional_id)
    return ErrorCode.NONE if is_here else ErrorCode.NOT_COORDINATOR
