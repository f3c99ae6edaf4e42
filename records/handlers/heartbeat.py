"""Heartbeat (12) tells the coordinator that a member lives, and the member whether it has to join
again.
"""

from ...clock import now_ms
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ..serving.node_coordinator import RecordCoordinator
from ..serving.plane import DataPlane
from .permissions import READ_GROUP
from .reaching import refusal_of_member


def handle(
    plane: DataPlane, coordinator: RecordCoordinator, context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse:
    code = refusal_of_member(coordinator, context, request.group_id)
    return HeartbeatResponse(error_code=code or plane.groups.heartbeat(request, now_ms()))


API = ServedApi(key=ApiKey.HEARTBEAT, handler=handle, waits_for_update=True, permissions=(READ_GROUP,))
