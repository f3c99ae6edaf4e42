"""CreateAcls (30) adds ACLs. An ACL that exists already is a success."""

from collections.abc import Iterable, Mapping

from ..protocol.acls import (
    AclOperation,
    AclResourceType,
    PatternType,
)
from ..protocol.api_keys import ApiKey
from ..protocol.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest
from .acl_filters import check_members, name_of, words
from .changes import Change
from .permissions import Permission
from .spec import Changes, Rows, Spec, copied

ALTER_CLUSTER = Permission(
    AclOperation.ALTER, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for each ACL of the request"
)


def described_acl(creation: AclCreation) -> tuple[str, Mapping[str, str | None]]:
    """Return the name of a row's resource and its ACL for the audit log, whatever they hold."""
    pattern_type = name_of(PatternType, creation.resource_pattern_type).upper()
    name = f"{name_of(AclResourceType, creation.resource_type)}:{pattern_type}:{creation.resource_name}"
    entry = words(creation.permission_type, creation.operation, creation.principal, creation.host)
    return name, {entry: ""}


def _requested(request: CreateAclsRequest) -> Iterable[Change]:
    found: dict[str, dict[str, str | None]] = {}
    for creation in request.creations:
        name, added = described_acl(creation)
        found.setdefault(name, {}).update(added)
    return [Change(name, "acl", added, dict.fromkeys(added, "set")) for name, added in found.items()]


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
