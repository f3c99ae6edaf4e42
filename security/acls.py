"""An index of a cluster's ACLs, which answers what somebody may do to a resource as Kafka's
AclAuthorizer does.

Kafka's rules: an ACL applies to a resource if its pattern is the resource's name, `*`, or a prefix
of the name. A DENY that applies wins over every ALLOW. ALLOW of READ, WRITE, DELETE or ALTER
implies DESCRIBE, and ALLOW of ALTER_CONFIGS implies DESCRIBE_CONFIGS; a DENY implies nothing. ALL
stands for every operation.

Rule: no decision looks at ACLs that do not apply to the resource, and a change of one resource's
ACLs costs as much as that resource has ACLs.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from sys import getsizeof

from ..protocol.acls import (
    ANYBODY,
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)

EVERYTHING = (1 << (max(AclOperation) + 1)) - 1
MAX_REMEMBERED_BYTES = 8 << 20
"""The memory for decisions that are remembered, of all callers together."""
DECISION_BYTES = 120
"""The memory for a remembered decision beside its name, or beside the names of a caller."""
MAX_REMEMBERED_CHARACTERS = 255
"""The longest name whose decision is remembered, because clients choose the names."""

_ALL = 1 << AclOperation.ALL
_DESCRIBE = 1 << AclOperation.DESCRIBE
_IMPLY_DESCRIBE = 1 << AclOperation.READ | 1 << AclOperation.WRITE | 1 << AclOperation.DELETE | 1 << AclOperation.ALTER
_DESCRIBE_CONFIGS = 1 << AclOperation.DESCRIBE_CONFIGS
_IMPLY_DESCRIBE_CONFIGS = 1 << AclOperation.ALTER_CONFIGS

NO_ENTRIES: frozenset[AccessControlEntry] = frozenset()
NOBODY = frozenset({AccessControlEntry(ANYBODY, WILDCARD, AclOperation.ALL, PermissionType.DENY)})
"""The stand-in for the ACLs of a pattern that cannot be read: they may deny anything."""


@lru_cache(maxsize=4096)
def _remaining(allowed: int, denied: int) -> int:
    """Return the operations that are allowed by ACLs for these operations, as bits."""
    if allowed & _ALL:
        allowed = EVERYTHING
    if allowed & _IMPLY_DESCRIBE:
        allowed |= _DESCRIBE
    if allowed & _IMPLY_DESCRIBE_CONFIGS:
        allowed |= _DESCRIBE_CONFIGS
    return 0 if denied & _ALL else allowed & ~denied


class _Bits:
    """The operations that the ACLs of one pattern allow and deny, by principal and host."""

    __slots__ = ("allowed", "denied")

    def __init__(self, entries: Iterable[AccessControlEntry]) -> None:
        self.allowed: dict[tuple[str, str], int] = {}
        self.denied: dict[tuple[str, str], int] = {}
        for each in entries:
            side = self.allowed if each.permission_type is PermissionType.ALLOW else self.denied
            whom = (each.principal, each.host)
            side[whom] = side.get(whom, 0) | 1 << each.operation


class _Patterns:
    """The patterns of one resource type, found by the name of a resource."""

    __slots__ = ("_count_by_length", "_lengths", "literal", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, _Bits] = {}
        self.prefixed: dict[str, _Bits] = {}
        self._count_by_length: dict[int, int] = {}
        self._lengths: tuple[int, ...] = ()

    def put(self, pattern: ResourcePattern, entries: frozenset[AccessControlEntry]) -> None:
        """Replace the ACLs of a pattern; without ACLs the pattern is removed."""
        found = self.prefixed if pattern.pattern_type is PatternType.PREFIXED else self.literal
        was_there = pattern.name in found
        if entries:
            found[pattern.name] = _Bits(entries)
        else:
            found.pop(pattern.name, None)
        if found is self.prefixed and was_there != bool(entries):
            self._count(len(pattern.name), 1 if entries else -1)

    def applying_to(self, name: str) -> list[_Bits]:
        found = [self.literal[each] for each in {name, WILDCARD} if each in self.literal]
        prefixed, size = self.prefixed, len(name)
        for length in self._lengths:
            if length > size:
                break
            bits = prefixed.get(name[:length])
            if bits is not None:
                found.append(bits)
        return found

    def _count(self, length: int, change: int) -> None:
        count = self._count_by_length.get(length, 0) + change
        if count:
            self._count_by_length[length] = count
        else:
            del self._count_by_length[length]
        self._lengths = tuple(sorted(self._count_by_length))


class AclIndex:
    def __init__(self, *, allow_everyone: bool = False) -> None:
        self._allow_everyone = allow_everyone
        self._resources: dict[ResourcePattern, frozenset[AccessControlEntry]] = {}
        self._patterns: defaultdict[AclResourceType, _Patterns] = defaultdict(_Patterns)
        self._remembered: dict[tuple[str, str, AclResourceType], dict[str, int]] = {}
        self._remembered_bytes = 0
        self.generation = 0
        """The number of changes so far. What was decided in an earlier generation may be wrong."""

    @property
    def resources(self) -> Mapping[ResourcePattern, frozenset[AccessControlEntry]]:
        """All ACLs by the pattern that they are about. No pattern is without ACLs."""
        return self._resources

    def set_resource(self, pattern: ResourcePattern, entries: Iterable[AccessControlEntry]) -> None:
        """Replace the ACLs of one pattern. Decisions made from now on follow them."""
        before, after = self._resources.get(pattern, NO_ENTRIES), frozenset(entries)
        if before == after:
            return
        self._forget()
        self.generation += 1
        if after:
            self._resources[pattern] = after
        else:
            del self._resources[pattern]
        self._patterns[pattern.resource_type].put(pattern, after)

    def allowed_to(self, principal: str, host: str, resource_type: AclResourceType, names: Iterable[str]) -> list[int]:
        """Return, for each resource in order, the operations that are allowed: bit n for the
        operation with the number n.
        """
        remembered = self._remembered_of(principal, host, resource_type)
        answers = []
        for name in names:
            bits = remembered.get(name)
            if bits is None:
                bits = self._allowed(principal, host, resource_type, name)
                if len(name) <= MAX_REMEMBERED_CHARACTERS:
                    if self._remembered_bytes > MAX_REMEMBERED_BYTES:
                        self._forget()
                        remembered = self._remembered_of(principal, host, resource_type)
                    self._remembered_bytes += DECISION_BYTES + getsizeof(name)
                    remembered[name] = bits
            answers.append(bits)
        return answers

    def _remembered_of(self, principal: str, host: str, resource_type: AclResourceType) -> dict[str, int]:
        """Return what is remembered of a caller and a kind of resource, to be added to."""
        remembered = self._remembered.get((principal, host, resource_type))
        if remembered is None:
            if self._remembered_bytes > MAX_REMEMBERED_BYTES:
                self._forget()
            remembered = self._remembered[principal, host, resource_type] = {}
            self._remembered_bytes += 2 * DECISION_BYTES + getsizeof(principal) + getsizeof(host)
        return remembered

    def allowed_to_one(self, principal: str, host: str, resource_type: AclResourceType, name: str) -> int:
        remembered = self._remembered.get((principal, host, resource_type))
        bits = None if remembered is None else remembered.get(name)
        return self.allowed_to(principal, host, resource_type, (name,))[0] if bits is None else bits

    def _allowed(self, principal: str, host: str, resource_type: AclResourceType, name: str) -> int:
        applying = self._patterns[resource_type].applying_to(name)
        if not applying:
            return EVERYTHING if self._allow_everyone else 0
        allowed = denied = 0
        for whom in ((principal, host), (principal, WILDCARD), (ANYBODY, host), (ANYBODY, WILDCARD)):
            for bits in applying:
                allowed |= bits.allowed.get(whom, 0)
                denied |= bits.denied.get(whom, 0)
        return _remaining(allowed, denied)

    def _forget(self) -> None:
        self._remembered.clear()
        self._remembered_bytes = 0
