"""CreateAcls (30) adds ACLs. An ACL that exists already is a success.

The checks and their order are Kafka's (AclApis.handleCreateAcls, then AclAuthorizer.createAcls). A
row that has ANY in one of its fields, a principal without a type, or a name that no znode can have
is refused by itself; Kafka fails the whole request with UNKNOWN_SERVER_ERROR.
"""

from ...admin.acl_filters import PATTERN_TYPES, TYPES, entry_text, pattern_text
from ...admin.changes import Change
from ...admin.create_acls import ALTER_CLUSTER, SPEC, described_acl
from ...cluster.errors import Refusal
from ...cluster.znodes.acls import acl_path
from ...cluster.znodes.entity_names import is_node_name
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...process.time_slices import TimeSlice
from ...protocol.acls import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse
from .acl_filters import check_request
from .controller_port import ControllerPort
from .entity_changes import EntityEdit, change_entities, refuse_request

NOT_CREATED = "Failed to create ACL"
OPERATIONS = frozenset(each for each in AclOperation if each > AclOperation.ANY)
PERMISSIONS = frozenset({PermissionType.DENY, PermissionType.ALLOW})

Entries = frozenset[AccessControlEntry]


async def handle(port: ControllerPort, context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    try:
        check_request(context, ALTER_CLUSTER)
    except Refusal as refusal:
        await refuse_request(port, context, request, refusal)
    rows: list[ResourcePattern | int] = []
    added: dict[ResourcePattern, set[AccessControlEntry]] = {}
    refused: dict[int, Refusal] = {}
    time_slice = TimeSlice()
    for index, creation in enumerate(request.creations):
        try:
            pattern, entry = _acl(creation)
        except Refusal as refusal:
            refused[index] = refusal
            rows.append(index)
        else:
            added.setdefault(pattern, set()).add(entry)
            rows.append(pattern)
        await time_slice.pause()
    once = list(dict.fromkeys(rows))
    edits = [
        _refused(request.creations[row], refused[row]) if isinstance(row, int) else _added(row, added[row])
        for row in once
    ]
    outcomes = dict(zip(once, await change_entities(port, context, request, edits), strict=True))
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=outcomes[row].code, error_message=outcomes[row].message or "") for row in rows
        ]
    )


def _acl(creation: AclCreation) -> tuple[ResourcePattern, AccessControlEntry]:
    """Return the ACL of a row. Raises INVALID_REQUEST."""
    if creation.resource_type == AclResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not creation.resource_name:
        raise _invalid("Invalid empty resource name")
    for what, number, members in (
        ("resource type", creation.resource_type, TYPES),
        ("pattern type", creation.resource_pattern_type, PATTERN_TYPES),
        ("operation", creation.operation, OPERATIONS),
        ("permission type", creation.permission_type, PERMISSIONS),
    ):
        if number not in members:
            raise _invalid(f"{NOT_CREATED}: no ACL can have the {what} {number}")
    if not is_node_name(creation.resource_name):
        raise _invalid(f"{NOT_CREATED}: the resource name has a character that ZooKeeper refuses, or a slash")
    if ":" not in creation.principal:
        raise _invalid(f"{NOT_CREATED}: a principal is written Type:name, such as User:alice")
    pattern = ResourcePattern(
        AclResourceType(creation.resource_type), creation.resource_name, PatternType(creation.resource_pattern_type)
    )
    operation, permission = AclOperation(creation.operation), PermissionType(creation.permission_type)
    return pattern, AccessControlEntry(creation.principal, creation.host, operation, permission)


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, text)


def _added(pattern: ResourcePattern, entries: set[AccessControlEntry]) -> EntityEdit:
    def edit(before: Entries) -> Entries:
        return before | entries

    added = {entry_text(each): "" for each in sorted(entries)}
    return EntityEdit(Change(pattern_text(pattern), "acl", added, dict.fromkeys(added, "set")), acl_path(pattern), edit)


def _refused(creation: AclCreation, refusal: Refusal) -> EntityEdit:
    def edit(_before: object) -> object:
        raise refusal

    name, added = described_acl(creation)
    return EntityEdit(Change(name, "acl", added, dict.fromkeys(added, "set")), "", edit)


API = served(SPEC, handle)
