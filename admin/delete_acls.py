"""DeleteAcls (31) removes the ACLs that match filters."""

from collections.abc import Iterable

from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
)
from .acl_filters import acl_filter, check_filter_readable
from .changes import Change
from .permissions import Permission
from .spec import Changes, Rows, Spec, copied

ALTER_CLUSTER = Permission(
    AclOperation.ALTER, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for each filter of the request"
)


def _requested(request: DeleteAclsRequest) -> Iterable[Change]:
    return [Change(str(acl_filter(each)), "acl") for each in request.filters]


def _check_readable(request: DeleteAclsRequest) -> None:
    for each in request.filters:
        check_filter_readable(each)


SPEC = Spec(
    key=ApiKey.DELETE_ACLS,
    check_readable=_check_readable,
    at_controller=True,
    rows=Rows("filter_results", DeleteAclsFilterResult, {"filters": copied()}),
    changes=Changes("delete_acls", _requested),
    permissions=(ALTER_CLUSTER,),
)
