"""The filters of DescribeAcls and DeleteAcls, and the checks that all requests about ACLs share."""

from collections.abc import Collection, Iterable
from enum import IntEnum
from typing import Protocol

import msgspec

from ..protocol.acls import (
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
    kafka_name,
)
from ..protocol.errors import MalformedMessage

TYPES = frozenset(each for each in AclResourceType if each > AclResourceType.ANY)
PATTERN_TYPES = frozenset({PatternType.LITERAL, PatternType.PREFIXED})


class WireFilter(Protocol):
    """A filter as a request holds it."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


class AclFilter(msgspec.Struct, frozen=True):
    """The ACLs that a request is about. None, and the members ANY, match everything."""

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def patterns(self, acls: Collection[ResourcePattern]) -> Iterable[ResourcePattern]:
        """Return the patterns that the filter is about. MATCH finds each pattern that applies to
        the resource with the filter's name.
        """
        name, is_match = self.name, self.pattern_type == PatternType.MATCH
        types = {self.resource_type} if self.resource_type != AclResourceType.ANY else set(AclResourceType)
        is_any = is_match or self.pattern_type == PatternType.ANY
        pattern_types = {each for each in PATTERN_TYPES if is_any or each == self.pattern_type}
        if name is None:
            return [each for each in acls if each.resource_type in types and each.pattern_type in pattern_types]
        names = {(each, name) for each in pattern_types}
        if is_match:
            names |= {(PatternType.PREFIXED, name[:length]) for length in range(1, len(name))}
            names.add((PatternType.LITERAL, WILDCARD))
        wanted = (
            ResourcePattern(AclResourceType(kind), each, pattern_type)
            for kind in types & TYPES
            for pattern_type, each in names
        )
        return [each for each in wanted if each in acls]

    @property
    def matches_every_entry(self) -> bool:
        return (self.principal, self.host, self.operation, self.permission_type) == (
            None,
            None,
            AclOperation.ANY,
            PermissionType.ANY,
        )

    def matches_entry(self, entry: AccessControlEntry) -> bool:
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission_type in (PermissionType.ANY, entry.permission_type)
        )

    def __str__(self) -> str:
        """Describe the filter for the audit log: `Topic:MATCH:orders, User:alice, Read`."""
        pattern_type = name_of(PatternType, self.pattern_type).upper()
        name = "(any)" if self.name is None else self.name
        parts = [f"{name_of(AclResourceType, self.resource_type)}:{pattern_type}:{name}", self.principal, self.host]
        if self.operation != AclOperation.ANY:
            parts.append(name_of(AclOperation, self.operation))
        if self.permission_type != PermissionType.ANY:
            parts.append(name_of(PermissionType, self.permission_type))
        return ", ".join(part for part in parts if part is not None)


def name_of(kind: type[IntEnum], number: int) -> str:
    """Return Kafka's name of a member, or the number itself if it is none."""
    return kafka_name(kind(number)) if number in set(kind) else str(number)


def acl_filter(wire: WireFilter) -> AclFilter:
    return AclFilter(
        wire.resource_type_filter,
        wire.resource_name_filter,
        wire.pattern_type_filter,
        wire.principal_filter,
        wire.host_filter,
        wire.operation,
        wire.permission_type,
    )


def check_filter_readable(wire: WireFilter) -> None:
    """Raise ProtocolError for a filter with a 0 where a member is expected, as Kafka does."""
    check_members(
        (wire.resource_type_filter, wire.pattern_type_filter, wire.operation, wire.permission_type), type(wire).__name__
    )


def check_members(numbers: Iterable[int], name: str) -> None:
    """Raise ProtocolError if one of the numbers is 0, which stands for no member (UNKNOWN)."""
    if 0 in numbers:
        raise MalformedMessage(f"{name}: 0 stands for no type, operation or permission")


def pattern_text(pattern: ResourcePattern) -> str:
    """Return a pattern as Kafka's authorizer log writes it: `Topic:LITERAL:orders`."""
    return f"{kafka_name(pattern.resource_type)}:{pattern.pattern_type.name}:{pattern.name}"


def entry_text(entry: AccessControlEntry) -> str:
    """Return an entry for the audit log: `Allow Read to User:alice from *`."""
    return words(entry.permission_type, entry.operation, entry.principal, entry.host)


def words(permission_type: int, operation: int, principal: str, host: str) -> str:
    return f"{name_of(PermissionType, permission_type)} {name_of(AclOperation, operation)} to {principal} from {host}"
