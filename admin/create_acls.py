"""CreateAcls (30) adds ACLs. An ACL that exists already is a success.

The checks and their order are Kafka's (AclApis.handleCreateAcls, then AclAuthorizer.createAcls). A
row that has ANY in one of its fields, a principal without a type, or a name that no znode can have
is refused by itself; Kafka fails the whole request with UNKNOWN_SERVER_ERROR.
"""

from collections.abc import Iterable, Mapping, Sequence

from ..cluster.entities import NO_ACL_ENTRIES, refuse_unreadable
from ..cluster.errors import Refusal
from ..cluster.image import Image
from ..cluster.znodes.acls import acl_path
from ..cluster.znodes.entity_names import is_node_name
from ..protocol.acls import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest
from .acl_filters import PATTERN_TYPES, TYPES, check_members, name_of, words
from .changes import Change
from .permissions import Permission
from .spec import Changes, Rows, Spec, copied

ALTER_CLUSTER = Permission(
    AclOperation.ALTER, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for each ACL of the request"
)
NOT_CREATED = "Failed to create ACL"
OPERATIONS = frozenset(each for each in AclOperation if each > AclOperation.ANY)
PERMISSIONS = frozenset({PermissionType.DENY, PermissionType.ALLOW})


def described_acl(creation: AclCreation) -> tuple[str, Mapping[str, str | None]]:
    """Return the name of a row's resource and its ACL for the audit log, whatever they hold."""
    pattern_type = name_of(PatternType, creation.resource_pattern_type).upper()
    name = f"{name_of(AclResourceType, creation.resource_type)}:{pattern_type}:{creation.resource_name}"
    entry = words(creation.permission_type, creation.operation, creation.principal, creation.host)
    return name, {entry: ""}


def acl_of(creation: AclCreation) -> tuple[ResourcePattern, AccessControlEntry]:
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


def with_acls(image: Image, creations: Sequence[AclCreation]) -> tuple[str, frozenset[AccessControlEntry]]:
    """Return the path of the ACLs of a resource pattern, and all of them with those of these rows,
    which are about it. Raises Refusal.
    """
    acls = [acl_of(each) for each in creations]
    pattern = acls[0][0]
    path, before = acl_path(pattern), image.acls.get(pattern, NO_ACL_ENTRIES)
    refuse_unreadable(path, before.version)
    return path, before.entries.union(entry for _, entry in acls)


def change_of(creations: Iterable[AclCreation]) -> Change:
    """Return the change that rows about one resource ask for."""
    name, added = "", dict[str, str | None]()
    for each in sorted(creations, key=lambda row: (row.principal, row.host, row.operation, row.permission_type)):
        name, acl = described_acl(each)
        added.update(acl)
    return Change(name, "acl", added, dict.fromkeys(added, "set"))


def _requested(request: CreateAclsRequest) -> Iterable[Change]:
    found: dict[str, list[AclCreation]] = {}
    for creation in request.creations:
        found.setdefault(described_acl(creation)[0], []).append(creation)
    return map(change_of, found.values())


def _check_readable(request: CreateAclsRequest) -> None:
    for each in request.creations:
        check_members(
            (each.resource_type, each.resource_pattern_type, each.operation, each.permission_type), "CreateAcls"
        )


SPEC = Spec(
    key=ApiKey.CREATE_ACLS,
    check_readable=_check_readable,
    at_controller=True,
    rows=Rows("results", AclCreationResult, {"creations": copied()}),
    changes=Changes("create_acls", _requested),
    permissions=(ALTER_CLUSTER,),
)
