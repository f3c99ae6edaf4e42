"""SyncGroup (14) brings the members of a new generation their assignments, which the group's leader
sends.
"""

from collections.abc import Awaitable

from ...clock import now_ms
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ..serving.node_coordinator import RecordCoordinator
from ..serving.plane import DataPlane
from ..serving.replies import LaterAnswer
from .permissions import READ_GROUP
from .reaching import refusal_of_member

PROTOCOL_SINCE = 5
"""The first version that names the protocol, and has to (KIP-559)."""


def handle(
    plane: DataPlane, coordinator: RecordCoordinator, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    names_none = not request.protocol_type or not request.protocol_name
    if context.header.api_version >= PROTOCOL_SINCE and names_none:
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    code = refusal_of_member(coordinator, context, request.group_id)
    if code:
        return SyncGroupResponse(error_code=code)
    reply = LaterAnswer[SyncGroupResponse]()
    plane.groups.sync(request, reply, now_ms())
    plane.data.groups_changed()
    return reply.now_or_later()


API = ServedApi(key=ApiKey.SYNC_GROUP, handler=handle, waits_for_update=True, permissions=(READ_GROUP,))
