"""CreateAcls (30) adds ACLs. An ACL that exists already is a success.

The checks and their order are Kafka's (AclApis.handleCreateAcls, then AclAuthorizer.createAcls). A
row that has ANY in one of its fields, a principal without a type, or a name that no znode can have
is refused by itself; Kafka fails the whole request with UNKNOWN_SERVER_ERROR.
"""

from collections.abc import Iterable, Mapping

from ...protocol.acls import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse
from ..errors import Refusal
from ..requests.changes import RequestedChange
from ..requests.context import RequestContext
from ..requests.permissions import Permission
from ..requests.spec import Changes, Rows, Spec, copied
from ..requests.time_slices import TimeSlice
from ..znodes.acls import acl_path
from ..znodes.entity_names import is_node_name
from .acl_filters import PATTERN_TYPES, TYPES, check_members, check_request, entry_text, name_of, pattern_text, words
from .entity_changes import EntityEdit, change_entities, refuse_request
from .node import Node

ALTER_CLUSTER = Permission(
    AclOperation.ALTER, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for each ACL of the request"
)
NOT_CREATED = "Failed to create ACL"
OPERATIONS = frozenset(each for each in AclOperation if each > AclOperation.ANY)
PERMISSIONS = frozenset({PermissionType.DENY, PermissionType.ALLOW})

Entries = frozenset[AccessControlEntry]


async def handle(node: Node, context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    try:
        check_request(context, ALTER_CLUSTER)
    except Refusal as refusal:
        await refuse_request(node, context, request, refusal)
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
    changes = dict(zip(once, await change_entities(node, context, request, edits), strict=True))
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=changes[row].code, error_message=changes[row].message or "") for row in rows
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
    return EntityEdit("acl", pattern_text(pattern), acl_path(pattern), edit, added, dict.fromkeys(added, "set"))


def _refused(creation: AclCreation, refusal: Refusal) -> EntityEdit:
    def edit(_before: object) -> object:
        raise refusal

    name, added = _described(creation)
    return EntityEdit("acl", name, "", edit, added, dict.fromkeys(added, "set"))


def _described(creation: AclCreation) -> tuple[str, Mapping[str, str | None]]:
    """Return the name of a row's resource and its ACL for the audit log, whatever they hold."""
    pattern_type = name_of(PatternType, creation.resource_pattern_type).upper()
    name = f"{name_of(AclResourceType, creation.resource_type)}:{pattern_type}:{creation.resource_name}"
    entry = words(creation.permission_type, creation.operation, creation.principal, creation.host)
    return name, {entry: ""}


def _requested(request: CreateAclsRequest) -> Iterable[RequestedChange]:
    found: dict[str, dict[str, str | None]] = {}
    for creation in request.creations:
        name, added = _described(creation)
        found.setdefault(name, {}).update(added)
    return [RequestedChange(name, "acl", added, dict.fromkeys(added, "set")) for name, added in found.items()]


def _check_readable(request: CreateAclsRequest) -> None:
    for each in request.creations:
        check_members(
            (each.resource_type, each.resource_pattern_type, each.operation, each.permission_type), "CreateAcls"
        )


API = Spec(
    key=ApiKey.CREATE_ACLS,
    handler=handle,
    check_readable=_check_readable,
    at_controller=True,
    rows=Rows("results", AclCreationResult, {"creations": copied()}),
    changes=Changes("create_acls", _requested),
    permissions=(ALTER_CLUSTER,),
)
