"""ACLs: described, added and removed."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ..protocol.acls import (
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from ..protocol.schema import WireStruct
from .calls import Calls
from .errors import AdminError, Results, check, result_of

if TYPE_CHECKING:
    from ..protocol.messages.delete_acls import DeleteAclsMatchingAcl
    from ..protocol.messages.describe_acls import AclDescription, DescribeAclsResponse

K = TypeVar("K")
T = TypeVar("T")
R = TypeVar("R", bound=WireStruct)
Member = TypeVar("Member", bound=IntEnum)


class AclBinding(msgspec.Struct, frozen=True, order=True):
    """One ACL: an entry for the resources of a pattern."""

    pattern: ResourcePattern
    entry: AccessControlEntry


class AclBindingFilter(msgspec.Struct, frozen=True):
    """The ACLs that a question is about. None, and the members ANY, match everything. The pattern
    type MATCH finds each ACL that applies to the resource of this name.
    """

    resource_type: AclResourceType = AclResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: PermissionType = PermissionType.ANY


def bindings_of(answer: "DescribeAclsResponse") -> tuple[AclBinding, ...]:
    """Return the ACLs of a response in order. Raises AdminError."""
    check(answer.error_code, answer.error_message)
    found = (
        _binding(resource.resource_type, resource.resource_name, resource.pattern_type, entry)
        for resource in answer.resources
        for entry in resource.acls
    )
    return tuple(sorted(found))


def _binding(
    resource_type: int, name: str, pattern_type: int, entry: "AclDescription | DeleteAclsMatchingAcl"
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


def _fields(wanted: AclBindingFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.name,
        "pattern_type_filter": wanted.pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission_type,
    }


class AclCalls(Calls):
    async def describe_acls(self, wanted: AclBindingFilter) -> tuple[AclBinding, ...]:
        """Return the ACLs that a filter matches, in order. Raises AdminError."""
        from ..protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

        return bindings_of(await self._batches.ask_any(DescribeAclsRequest(**_fields(wanted)), DescribeAclsResponse))

    async def create_acls(self, acls: Sequence[AclBinding]) -> Results[AclBinding, None]:
        """Add ACLs. One that exists is a success."""
        from ..protocol.messages import create_acls as messages

        def row(acl: AclBinding) -> messages.AclCreation:
            return messages.AclCreation(
                resource_type=acl.pattern.resource_type,
                resource_name=acl.pattern.name,
                resource_pattern_type=acl.pattern.pattern_type,
                principal=acl.entry.principal,
                host=acl.entry.host,
                operation=acl.entry.operation,
                permission_type=acl.entry.permission_type,
            )

        def request(part: Sequence[AclBinding]) -> WireStruct:
            return messages.CreateAclsRequest(creations=[row(acl) for acl in part])

        def read(answer: messages.CreateAclsResponse) -> Sequence[AdminError | None]:
            return [result_of(row.error_code, row.error_message, None) for row in answer.results]

        return await self._by_place(acls, messages.CreateAclsResponse, request, read)

    async def delete_acls(
        self, filters: Sequence[AclBindingFilter]
    ) -> Results[AclBindingFilter, tuple[AclBinding, ...]]:
        """Remove the ACLs that filters match, and return them. An ACL that several filters match
        belongs to the first of them.
        """
        from ..protocol.messages import delete_acls as messages

        def request(part: Sequence[AclBindingFilter]) -> WireStruct:
            return messages.DeleteAclsRequest(filters=[messages.DeleteAclsFilter(**_fields(wanted)) for wanted in part])

        def removed(row: messages.DeleteAclsFilterResult) -> tuple[AclBinding, ...] | AdminError:
            """Return the ACLs that a filter removed, or the error of the first one that stays."""
            try:
                check(row.error_code, row.error_message)
                for acl in row.matching_acls:
                    check(acl.error_code, acl.error_message)
            except AdminError as error:
                return error
            found = (_binding(acl.resource_type, acl.resource_name, acl.pattern_type, acl) for acl in row.matching_acls)
            return tuple(sorted(found))

        def read(answer: messages.DeleteAclsResponse) -> Sequence[tuple[AclBinding, ...] | AdminError]:
            return [removed(row) for row in answer.filter_results]

        return await self._by_place(filters, messages.DeleteAclsResponse, request, read)

    async def _by_place(
        self,
        elements: Sequence[K],
        response: type[R],
        request: Callable[[Sequence[K]], WireStruct],
        read: Callable[[R], Sequence[T | AdminError]],
    ) -> Results[K, T]:
        """Send elements to the controller whose rows in the answer are known by their places."""
        asked: Sequence[K] = ()

        def remembered(part: Sequence[K], _version: int) -> WireStruct:
            nonlocal asked
            asked = tuple(part)
            return request(part)

        def by_element(answer: R) -> Results[K, T]:
            return dict(zip(asked, read(answer), strict=False))

        return await self._batches.write(list(dict.fromkeys(elements)), response, remembered, by_element)
