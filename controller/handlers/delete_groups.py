"""DeleteGroups (42) deletes groups with their offsets. The node that was asked must coordinate each
of them.
"""

from collections.abc import Awaitable

from ...admin.delete_groups import SPEC
from ...admin.groups import DELETE_GROUP, existing, requested
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.znodes.groups import group_path
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...process.steps import Steps, one_by_one
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from .controller_port import ControllerPort
from .entity_changes import Planned, change_entities
from .groups import reached_coordinator


def handle(
    port: ControllerPort, context: RequestContext, request: DeleteGroupsRequest
) -> Steps[Awaitable[DeleteGroupsResponse]]:
    """Answer a request at the active controller."""
    names = list(dict.fromkeys(request.groups_names))
    codes = yield from one_by_one(_code(port, context, name) for name in names)
    return _delete(port, context, request, dict(zip(names, codes, strict=True)))


async def _delete(
    port: ControllerPort, context: RequestContext, request: DeleteGroupsRequest, codes: dict[str, ErrorCode]
) -> DeleteGroupsResponse:
    def plan(image: Image, name: str) -> Planned:
        if codes[name]:
            raise Refusal(codes[name])
        existing(image, name)
        return group_path(name), None

    asked = [name for name, code in codes.items() if code != ErrorCode.NOT_COORDINATOR]
    outcomes = await change_entities(
        port, context, request, asked, change_of=lambda name: requested(name, {}), plan=plan
    )
    answered = {**codes, **{name: outcome.code for name, outcome in zip(asked, outcomes, strict=True)}}
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=name, error_code=code) for name, code in answered.items()]
    )


def _code(port: ControllerPort, context: RequestContext, name: str) -> ErrorCode:
    """Return the error by which a group is refused whatever its state is; NONE if there is none."""
    if not context.may(DELETE_GROUP, name):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE if reached_coordinator(port, context, name) else ErrorCode.NOT_COORDINATOR


API = served(SPEC, handle)
