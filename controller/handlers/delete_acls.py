"""DeleteAcls (31) removes the ACLs that match filters."""

from ...admin.acl_filters import acl_filter
from ...admin.changes import Change, Outcome
from ...admin.delete_acls import ALTER_CLUSTER, SPEC, Matched, by_pattern, matched, removal, without_acls
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...process.time_slices import carried_out
from ...protocol.acls import AccessControlEntry, ResourcePattern
from ...protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from .acl_filters import check_request
from .controller_port import ControllerPort
from .entity_changes import Planned, change_entities, refuse_request


async def handle(port: ControllerPort, context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    try:
        check_request(context, ALTER_CLUSTER)
    except Refusal as refusal:
        await refuse_request(port, context, request, refusal)
    image = port.controller.serving().image
    found = await carried_out(by_pattern([acl_filter(each) for each in request.filters], image.acls))
    removed: dict[ResourcePattern, Matched] = {}

    def change_of(pattern: ResourcePattern) -> Change:
        return removal(pattern, removed[pattern] if pattern in removed else matched(image, pattern, found[pattern]))

    def plan(image: Image, pattern: ResourcePattern) -> Planned:
        # A change that was under way may have added or removed ACLs since they were found.
        removed[pattern] = matched(image, pattern, found[pattern])
        return without_acls(image, pattern, removed[pattern])

    outcomes = await change_entities(port, context, request, list(found), change_of=change_of, plan=plan)
    answer = DeleteAclsResponse(filter_results=[_result() for _ in request.filters])
    for pattern, outcome in zip(found, outcomes, strict=True):
        for entry, index in removed.get(pattern, {}).items():
            answer.filter_results[index].matching_acls.append(_matching(pattern, entry, outcome))
    return answer


def _result() -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_message=None, matching_acls=[])


def _matching(pattern: ResourcePattern, entry: AccessControlEntry, outcome: Outcome) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=outcome.code,
        error_message=outcome.message,
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )


API = served(SPEC, handle)
