"""CreateAcls (30) adds ACLs. An ACL that exists already is a success."""

from collections.abc import Hashable

from ...admin.create_acls import ALTER_CLUSTER, SPEC, acl_of, change_of, with_acls
from ...cluster.errors import Refusal
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...process.steps import one_by_one
from ...process.time_slices import carried_out
from ...protocol.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse
from .acl_filters import check_request
from .controller_port import ControllerPort
from .entity_changes import change_entities, refuse_request


async def handle(port: ControllerPort, context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    try:
        check_request(context, ALTER_CLUSTER)
    except Refusal as refusal:
        await refuse_request(port, context, request, refusal)
    keys = await carried_out(one_by_one(map(_key, enumerate(request.creations))))
    once: dict[Hashable, list[AclCreation]] = {}
    for key, creation in zip(keys, request.creations, strict=True):
        once.setdefault(key, []).append(creation)
    outcomes = await change_entities(port, context, request, list(once.values()), change_of=change_of, plan=with_acls)
    by_key = dict(zip(once, outcomes, strict=True))
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=by_key[key].code, error_message=by_key[key].message or "") for key in keys
        ]
    )


def _key(row: tuple[int, AclCreation]) -> Hashable:
    """Return the resource pattern of a row, all rows of which are one change, or the row's index if
    it is refused by itself.
    """
    index, creation = row
    try:
        return acl_of(creation)[0]
    except Refusal:
        return index


API = served(SPEC, handle)
