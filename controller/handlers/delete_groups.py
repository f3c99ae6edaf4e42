"""DeleteGroups (42) deletes groups with their offsets. The node that was asked must coordinate each
of them.
"""

from collections.abc import Awaitable, Iterator

from ...admin.delete_groups import SPEC
from ...admin.groups import DELETE_GROUP
from ...cluster.errors import Refusal
from ...cluster.groups import Group
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...process.steps import Steps, one_by_one
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from .controller_port import ControllerPort
from .entity_changes import EntityEdit, change_entities
from .groups import edit_of, reached_coordinator, refusing


def handle(
    port: ControllerPort, context: RequestContext, request: DeleteGroupsRequest
) -> Steps[Awaitable[DeleteGroupsResponse]]:
    """Answer a request at the active controller."""
    names = list(dict.fromkeys(request.groups_names))
    edits = yield from one_by_one(_edits(port, context, names))
    return _delete(port, context, request, names, [each for each in edits if each is not None])


async def _delete(
    port: ControllerPort,
    context: RequestContext,
    request: DeleteGroupsRequest,
    names: list[str],
    edits: list[EntityEdit],
) -> DeleteGroupsResponse:
    outcomes = await change_entities(port, context, request, edits)
    codes = {outcome.change.resource: outcome.code for outcome in outcomes}
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=name, error_code=codes.get(name, ErrorCode.NOT_COORDINATOR)) for name in names
        ]
    )


def _edits(port: ControllerPort, context: RequestContext, names: list[str]) -> Iterator[EntityEdit | None]:
    """Yield the edits of groups, None for one that the node that was asked does not coordinate."""
    topics = port.controller.serving().image.topics

    def delete(group: Group | None) -> None:
        if group is None or not (group.exists(topics) or group.is_damaged):
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND)

    for name in names:
        if not context.may(DELETE_GROUP, name):
            yield refusing(name, Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED), {})
        else:
            yield edit_of(name, delete, {}) if reached_coordinator(port, context, name) else None


API = served(SPEC, handle)
