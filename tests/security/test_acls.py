"""The index of ACLs decides like the rules of Kafka's AclAuthorizer, written down naively."""

from collections.abc import Iterator, Mapping
from sys import getsizeof

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.protocol.acls import (
    ANYBODY,
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from minicontroller.security import acls
from minicontroller.security.acls import EVERYTHING, AclIndex

Acls = Mapping[ResourcePattern, frozenset[AccessControlEntry]]

PRINCIPALS = ("User:a", "User:b", "Group:a")
HOSTS = ("10.0.0.1", "10.0.0.2")
NAMES = st.text("ab*", min_size=1, max_size=4)
TYPES = st.sampled_from((AclResourceType.TOPIC, AclResourceType.GROUP))
OPERATIONS = st.sampled_from([each for each in AclOperation if each > AclOperation.ANY])
PATTERNS = st.builds(
    ResourcePattern,
    TYPES,
    NAMES | st.just(WILDCARD),
    st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
)
ENTRIES = st.builds(
    AccessControlEntry,
    st.sampled_from((*PRINCIPALS, ANYBODY)),
    st.sampled_from((*HOSTS, WILDCARD)),
    OPERATIONS,
    st.sampled_from((PermissionType.ALLOW, PermissionType.DENY)),
)
CHANGES = st.lists(st.tuples(PATTERNS, st.frozensets(ENTRIES, max_size=4)), max_size=12)
IMPLIED_BY = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}
EVERY = list(AclOperation)


def entries_for(
    acls: Acls, principal: str, host: str, kind: AclResourceType, name: str
) -> Iterator[AccessControlEntry]:
    """Each ACL of the resource whose principal and host match."""
    for pattern, entries in acls.items():
        if pattern.resource_type is kind and applies(pattern, name):
            yield from (
                each for each in entries if each.principal in {principal, ANYBODY} and each.host in {host, WILDCARD}
            )


def applies(pattern: ResourcePattern, name: str) -> bool:
    if pattern.pattern_type is PatternType.PREFIXED:
        return name.startswith(pattern.name)
    return pattern.name in {name, WILDCARD}


def may(
    acls: Acls, who: tuple[str, str], operation: AclOperation, kind: AclResourceType, name: str, *, everyone: bool
) -> bool:
    """Kafka's rules, one ACL after the other."""
    if not any(each.resource_type is kind and applies(each, name) for each in acls):
        return everyone
    found = list(entries_for(acls, *who, kind, name))
    denied = {each.operation for each in found if each.permission_type is PermissionType.DENY}
    allowed = {each.operation for each in found if each.permission_type is PermissionType.ALLOW}
    wanted = {operation, AclOperation.ALL}
    return not denied & wanted and bool(allowed & (wanted | IMPLIED_BY.get(operation, set())))


@given(CHANGES, st.booleans(), TYPES, st.lists(NAMES, min_size=1, max_size=6))
@settings(max_examples=300)
def test_decisions_are_those_of_the_rules(
    changes: list[tuple[ResourcePattern, frozenset[AccessControlEntry]]],
    everyone: bool,
    kind: AclResourceType,
    names: list[str],
) -> None:
    """After each change, decisions about all operations are those of the rules; no decision that
    was remembered outlives a change.
    """
    index = AclIndex(allow_everyone=everyone)
    acls: dict[ResourcePattern, frozenset[AccessControlEntry]] = {}
    for pattern, entries in [(ResourcePattern(kind, "never"), frozenset[AccessControlEntry]()), *changes]:
        index.set_resource(pattern, entries)
        acls[pattern] = entries
        acls = {each: its for each, its in acls.items() if its}
        assert index.resources == acls
        for principal in PRINCIPALS:
            for name, bits in zip(names, index.allowed_to(principal, HOSTS[0], kind, names), strict=True):
                who = (principal, HOSTS[0])
                expected = [may(acls, who, each, kind, name, everyone=everyone) for each in EVERY]
                assert [bool(bits & 1 << each) for each in EVERY] == expected


@given(CHANGES)
def test_an_index_that_lost_its_acls_is_as_a_new_one(
    changes: list[tuple[ResourcePattern, frozenset[AccessControlEntry]]],
) -> None:
    """Nothing remains of ACLs that were removed."""
    index = AclIndex(allow_everyone=True)
    for pattern, entries in changes:
        index.set_resource(pattern, entries)
    for pattern, _ in changes:
        index.set_resource(pattern, ())
    assert index.resources == {}
    assert index.allowed_to("User:a", HOSTS[0], AclResourceType.TOPIC, ["a", "b"]) == [EVERYTHING, EVERYTHING]
    assert not any(patterns._lengths for patterns in index._patterns.values())


def test_what_is_remembered_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients choose names, and a user has as many as an issuer of tokens gives: neither long ones
    nor many of them fill the memory.
    """
    monkeypatch.setattr(acls, "MAX_REMEMBERED_BYTES", 200_000)
    index = AclIndex()
    wide = "\U0001f600" * 240
    for number in range(3_000):
        who, names = f"User:{wide}{number % 500}", [f"{wide}{number}", f"{number}"]
        assert index.allowed_to(who, f"::{number:x}", AclResourceType.TOPIC, names) == [0, 0]
        assert index.allowed_to_one("User:a", HOSTS[0], AclResourceType.GROUP, names[0]) == 0
        if number % 100 == 0:
            assert held(index) < 300_000
    many = [f"{wide}{number}" for number in range(2_000)]
    assert index.allowed_to("User:a", HOSTS[0], AclResourceType.TOPIC, many) == [0] * len(many)
    assert held(index) < 300_000


def held(index: AclIndex) -> int:
    """Return the bytes of what an index remembers."""
    return sum(
        sum(map(getsizeof, key[:2])) + getsizeof(names) + sum(map(getsizeof, names))
        for key, names in index._remembered.items()
    )
