"""The znodes of ACLs: literal patterns in one tree, prefixed ones in the other, and the
notifications that they have changed.

Rule: a znode is read as a whole or not at all. One entry that cannot be read may be a denial, and
leaving it out would let somebody in.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TypeVar

import msgspec
from msgspec import Struct

from ...protocol.acls import AccessControlEntry, AclOperation, AclResourceType, PatternType, PermissionType
from ...protocol.acls import ResourcePattern as Pattern
from .content import Int, MalformedZnodeError, check_fit, read, write
from .entity_names import is_node_name

LITERAL_ROOT, EXTENDED_ROOT = "/kafka-acl", "/kafka-acl-extended"
LITERAL_CHANGES, EXTENDED_CHANGES = "/kafka-acl-changes", "/kafka-acl-extended-changes"
PREFIXED_ROOT = f"{EXTENDED_ROOT}/prefixed"
CHANGE_PREFIX = "acl_changes_"

Member = TypeVar("Member", bound=IntEnum)


def _in_pascal_case(member: IntEnum) -> str:
    return "".join(word.capitalize() for word in member.name.split("_"))


TYPES = {_in_pascal_case(each): each for each in AclResourceType if each > AclResourceType.ANY}
"""The types of resources that have ACLs, by their names in paths."""
OPERATIONS = {each: _in_pascal_case(each) for each in AclOperation if each > AclOperation.ANY}
PERMISSIONS = {each: _in_pascal_case(each) for each in PermissionType if each > PermissionType.ANY}
TYPE_NAMES = {each: name for name, each in TYPES.items()}

ACL_PATHS = (
    *(f"{root}/{name}" for root in (LITERAL_ROOT, PREFIXED_ROOT) for name in TYPES),
    LITERAL_CHANGES,
    EXTENDED_CHANGES,
)
"""The znodes that an authorizer of Kafka creates with null data when it starts."""


def _by_any_case(names: Mapping[Member, str]) -> dict[str, Member]:
    """Return members by each form of their names that Kafka reads, in lower case."""
    forms = {name.lower(): member for member, name in names.items()}
    return forms | {member.name.lower(): member for member in names}


READ_OPERATIONS, READ_PERMISSIONS = _by_any_case(OPERATIONS), _by_any_case(PERMISSIONS)
READ_TYPES = _by_any_case(TYPE_NAMES)
READ_PATTERN_TYPES = {each.name.lower(): each for each in (PatternType.LITERAL, PatternType.PREFIXED)}


class Acl(Struct, rename="camel"):
    principal: str
    permission_type: str
    host: str
    operation: str


class Acls(Struct, kw_only=True):
    acls: tuple[Acl, ...] = ()
    version: Int


class ExtendedAclChange(Struct, rename="camel"):
    version: Int
    resource_type: str
    name: str
    pattern_type: str


ACLS_VERSION = 1
ACLS_READER = msgspec.json.Decoder(Acls)
CHANGE_READER = msgspec.json.Decoder(ExtendedAclChange)


def acl_path(pattern: Pattern) -> str:
    root = LITERAL_ROOT if pattern.pattern_type is PatternType.LITERAL else PREFIXED_ROOT
    return f"{root}/{TYPE_NAMES[pattern.resource_type]}/{pattern.name}"


def pattern_at(path: str) -> Pattern | None:
    for root, pattern_type in ((PREFIXED_ROOT, PatternType.PREFIXED), (LITERAL_ROOT, PatternType.LITERAL)):
        if path.startswith(f"{root}/"):
            kind, _, name = path.removeprefix(f"{root}/").partition("/")
            return Pattern(TYPES[kind], name, pattern_type) if kind in TYPES and name else None
    return None


def encode_acls(entries: Iterable[AccessControlEntry]) -> bytes:
    """Encode the ACLs of one pattern, in an order that depends on nothing but the entries."""
    rows = [
        Acl(each.principal, PERMISSIONS[each.permission_type], each.host, OPERATIONS[each.operation])
        for each in sorted(entries)
    ]
    return write(Acls(acls=tuple(rows), version=ACLS_VERSION))


def decode_acls(data: bytes | None) -> frozenset[AccessControlEntry]:
    """Decode the ACLs of one pattern. A znode without data has none."""
    if not data:
        return frozenset()
    found = read("the list of ACLs", data, ACLS_READER)
    if found.version != ACLS_VERSION:  # which is judged at the end: the last of two counts, as in Kafka
        raise MalformedZnodeError(f"the list of ACLs has the unknown version {found.version}")
    return frozenset(map(_entry, found.acls))


def _entry(row: Acl) -> AccessControlEntry:
    operation = READ_OPERATIONS.get(row.operation.lower())
    permission = READ_PERMISSIONS.get(row.permission_type.lower())
    if operation is None or permission is None or ":" not in row.principal:
        raise MalformedZnodeError(f"an ACL cannot be read: {row!r:.200}")
    check_fit("a text of an ACL", (row.principal, row.host))
    return AccessControlEntry(row.principal, row.host, operation, permission)


def encode_acl_change(pattern: Pattern) -> tuple[str, bytes]:
    """Return the path prefix and the data of the notification that the ACLs of a pattern have
    changed, which is a sequential znode.
    """
    name = pattern.resource_type.name
    if pattern.pattern_type is PatternType.LITERAL:
        return f"{LITERAL_CHANGES}/{CHANGE_PREFIX}", f"{name}:{pattern.name}".encode()
    change = ExtendedAclChange(1, name, pattern.name, pattern.pattern_type.name)
    return f"{EXTENDED_CHANGES}/{CHANGE_PREFIX}", write(change)


def decode_literal_acl_change(data: bytes | None) -> Pattern:
    """Decode a notification below `LITERAL_CHANGES`, such as `TOPIC:orders`."""
    try:
        kind, colon, name = (data or b"").decode().partition(":")
    except UnicodeDecodeError as error:
        raise MalformedZnodeError(f"the notification is no text: {data!r:.80}") from error
    if not colon:
        raise MalformedZnodeError(f"the notification names no resource: {data!r:.80}")
    return _pattern(kind, name, PatternType.LITERAL, data)


def decode_extended_acl_change(data: bytes | None) -> Pattern:
    change = read("the notification", data, CHANGE_READER)
    pattern_type = READ_PATTERN_TYPES.get(change.pattern_type.lower())
    if change.version != 1 or pattern_type is None:
        raise MalformedZnodeError(f"the notification is of an unknown kind: {data!r:.80}")
    return _pattern(change.resource_type, change.name, pattern_type, data)


def _pattern(kind: str, name: str, pattern_type: PatternType, data: bytes | None) -> Pattern:
    resource_type = READ_TYPES.get(kind.lower())
    if resource_type is None or not is_node_name(name):
        raise MalformedZnodeError(f"the notification names nothing that has ACLs: {data!r:.80}")
    return Pattern(resource_type, name, pattern_type)
