"""JoinGroup (11) makes a client a member of a group. It waits until the other members have joined,
too, or until they have had their time.
"""

from collections.abc import Awaitable
from functools import partial

import msgspec

from ...clock import now_ms
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ..groups.member import Joining
from ..serving.node_coordinator import RecordCoordinator
from ..serving.plane import DataPlane
from ..serving.replies import LaterAnswer
from .permissions import READ_GROUP
from .reaching import refusal_of_member

KNOWN_ID_SINCE = 4
"""The first version in which a new member joins again with the id that it was given (KIP-394)."""
NO_NAME_SINCE = 7
SKIPPED_ASSIGNMENT_SINCE = 9
"""The first version in which a static leader that returns can keep the assignment (KIP-814)."""


def handle(
    plane: DataPlane, coordinator: RecordCoordinator, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    code = refusal_of_member(coordinator, context, request.group_id)
    if code:
        return JoinGroupResponse(error_code=code, member_id=request.member_id)
    version = context.header.api_version
    reply = LaterAnswer[JoinGroupResponse](partial(_with_name, version))
    joining = Joining(
        request,
        context.client_id or "",
        f"/{context.origin.client_host}",
        needs_known_id=version >= KNOWN_ID_SINCE,
        can_skip_assignment=version >= SKIPPED_ASSIGNMENT_SINCE,
    )
    plane.groups.join(joining, reply, now_ms())
    plane.data.groups_changed()
    return reply.now_or_later()


def _with_name(version: int, response: JoinGroupResponse) -> JoinGroupResponse:
    """Return the response in a form that its version can have: older ones have no null as the name
    of a protocol.
    """
    if response.protocol_name is None and version < NO_NAME_SINCE:
        return msgspec.structs.replace(response, protocol_name="")
    return response


API = ServedApi(key=ApiKey.JOIN_GROUP, handler=handle, waits_for_update=True, permissions=(READ_GROUP,))
