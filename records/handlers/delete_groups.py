"""DeleteGroups (42) deletes groups without members, with their offsets."""

from collections.abc import Awaitable, Mapping

from ...admin.delete_groups import SPEC
from ...admin.groups import DELETE_GROUP, requested
from ...controller.handlers.controller_port import ControllerPort
from ...network.serving.api import Handler, response_of, served
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ..serving.node_coordinator import RecordCoordinator
from ..serving.plane import DataPlane
from .judging import decided, is_judged


def receive(
    coordinator: RecordCoordinator,
    port: ControllerPort,
    context: RequestContext,
    request: DeleteGroupsRequest,
    ask_controller: Handler,
) -> DeleteGroupsResponse | Awaitable[DeleteGroupsResponse]:
    """Answer a request at the node that received it, which has to be the groups' coordinator."""
    codes = {name: _refusal(coordinator, context, name) for name in request.groups_names}
    if not is_judged(port) or all(codes.values()):
        return _deleted(coordinator.plane, codes)
    return _judged(coordinator.plane, context, codes, ask_controller)


async def handle(
    _coordinator: RecordCoordinator,
    port: ControllerPort,
    context: RequestContext,
    request: DeleteGroupsRequest,
) -> DeleteGroupsResponse:
    """Decide at the active controller."""
    return _response(await decided(port, context, request, [requested(name, {}) for name in request.groups_names]))


async def _judged(
    plane: DataPlane, context: RequestContext, codes: Mapping[str, ErrorCode], ask_controller: Handler
) -> DeleteGroupsResponse:
    allowed = DeleteGroupsRequest(groups_names=[name for name, code in codes.items() if not code])
    response = await response_of(ask_controller(context, allowed))
    return _deleted(plane, {**codes, **{row.group_id: ErrorCode(row.error_code) for row in response.results}})


def _deleted(plane: DataPlane, codes: Mapping[str, ErrorCode]) -> DeleteGroupsResponse:
    return _response({name: code or plane.groups.delete(name) for name, code in codes.items()})


def _refusal(coordinator: RecordCoordinator, context: RequestContext, group_id: str) -> ErrorCode:
    if not context.may(DELETE_GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE if coordinator.coordinates_group(group_id) else ErrorCode.NOT_COORDINATOR


def _response(codes: Mapping[str, ErrorCode]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=name, error_code=code) for name, code in codes.items()]
    )


API = served(SPEC, handle, receiver=receive)
