"""Makes requests about ACLs, and results of their responses; pure."""

from collections.abc import Sequence
from enum import IntEnum
from typing import TypeVar

from ..protocol.acls import (
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from ..protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ..protocol.messages.describe_acls import AclDescription, DescribeAclsRequest, DescribeAclsResponse
from ..protocol.schema import WireStruct
from .errors import AdminError
from .model import AclBinding, AclBindingFilter, result_of

Member = TypeVar("Member", bound=IntEnum)


def question(wanted: AclBindingFilter) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission_type,
    )


def described(answer: WireStruct) -> tuple[AclBinding, ...]:
    """Return the ACLs of a response in order. Raises AdminError."""
    assert isinstance(answer, DescribeAclsResponse)
    if answer.error_code != ErrorCode.NONE:
        raise AdminError(answer.error_code, answer.error_message)
    found = (
        _binding(resource.resource_type, resource.resource_name, resource.pattern_type, entry)
        for resource in answer.resources
        for entry in resource.acls
    )
    return tuple(sorted(found))


def creation(acls: Sequence[AclBinding]) -> CreateAclsRequest:
    return CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=acl.pattern.resource_type,
                resource_name=acl.pattern.name,
                resource_pattern_type=acl.pattern.pattern_type,
                principal=acl.entry.principal,
                host=acl.entry.host,
                operation=acl.entry.operation,
                permission_type=acl.entry.permission_type,
            )
            for acl in acls
        ]
    )


def created(answer: WireStruct) -> Sequence[AdminError | None]:
    assert isinstance(answer, CreateAclsResponse)
    return [result_of(row.error_code, row.error_message, None) for row in answer.results]


def deletion(filters: Sequence[AclBindingFilter]) -> DeleteAclsRequest:
    return DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=wanted.resource_type,
                resource_name_filter=wanted.name,
                pattern_type_filter=wanted.pattern_type,
                principal_filter=wanted.principal,
                host_filter=wanted.host,
                operation=wanted.operation,
                permission_type=wanted.permission_type,
            )
            for wanted in filters
        ]
    )


def deleted(answer: WireStruct) -> Sequence[tuple[AclBinding, ...] | AdminError]:
    assert isinstance(answer, DeleteAclsResponse)
    return [_removed(row) for row in answer.filter_results]


def _removed(row: DeleteAclsFilterResult) -> tuple[AclBinding, ...] | AdminError:
    """Return the ACLs that a filter removed, or the error of the first one that stays."""
    rows = [(row.error_code, row.error_message), *((acl.error_code, acl.error_message) for acl in row.matching_acls)]
    for code, message in rows:
        if code != ErrorCode.NONE:
            return AdminError(code, message)
    return tuple(
        sorted(_binding(acl.resource_type, acl.resource_name, acl.pattern_type, acl) for acl in row.matching_acls)
    )


def _binding(
    resource_type: int, name: str, pattern_type: int, entry: AclDescription | DeleteAclsMatchingAcl
) -> AclBinding:
    return AclBinding(
        ResourcePattern(_member(AclResourceType, resource_type), name, _member(PatternType, pattern_type)),
        AccessControlEntry(
            entry.principal,
            entry.host,
            _member(AclOperation, entry.operation),
            _member(PermissionType, entry.permission_type),
        ),
    )


def _member(kind: type[Member], number: int) -> Member:
    """Return a member, or UNKNOWN for one that only a newer node knows."""
    return kind(number) if number in set(kind) else kind(0)
