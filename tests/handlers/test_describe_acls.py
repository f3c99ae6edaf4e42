"""DescribeAcls: what each filter finds, in an order that depends on nothing but the ACLs."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.admin.acl_filters import PATTERN_TYPES, TYPES, acl_filter
from minicontroller.controller.handlers.describe_acls import KEPT_SINCE
from minicontroller.protocol.acls import AclOperation, AclResourceType, PatternType, PermissionType, ResourcePattern
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.errors import MalformedMessage
from tests.handlers.acl_requests import ACLS_DECIDE, NEWEST, acl, create, describe, finding, matching, row_of
from tests.handlers.ruling import Ruling, ruling

READ_T = acl("t")
WRITE_T = acl("t", operation=AclOperation.WRITE)
ALL_T = acl("t", operation=AclOperation.ALL, principal="User:*")
ALL_TOPICS = acl("*")
PREFIX_P = acl("p", resource_pattern_type=PatternType.PREFIXED, permission_type=PermissionType.DENY)
PREFIX_PRE = acl("pre", resource_pattern_type=PatternType.PREFIXED, host="10.0.0.1")
GROUP_T = acl("t", resource_type=AclResourceType.GROUP)
ALL = [READ_T, WRITE_T, ALL_T, ALL_TOPICS, PREFIX_P, PREFIX_PRE, GROUP_T]

FOUND: list[tuple[Mapping[str, Any], list[Any]]] = [
    ({}, ALL),
    ({"resource_type_filter": AclResourceType.GROUP}, [GROUP_T]),
    ({"resource_name_filter": "t"}, [READ_T, WRITE_T, ALL_T, GROUP_T]),
    (
        {"resource_name_filter": "t", "pattern_type_filter": PatternType.MATCH},
        [READ_T, WRITE_T, ALL_T, ALL_TOPICS, GROUP_T],
    ),
    ({"resource_name_filter": "pres", "pattern_type_filter": PatternType.MATCH}, [ALL_TOPICS, PREFIX_P, PREFIX_PRE]),
    ({"resource_name_filter": "*", "pattern_type_filter": PatternType.MATCH}, [ALL_TOPICS]),
    ({"resource_name_filter": "*", "pattern_type_filter": PatternType.LITERAL}, [ALL_TOPICS]),
    ({"resource_name_filter": "pre", "pattern_type_filter": PatternType.LITERAL}, []),
    ({"resource_name_filter": "pre"}, [PREFIX_PRE]),
    ({"pattern_type_filter": PatternType.PREFIXED}, [PREFIX_P, PREFIX_PRE]),
    ({"pattern_type_filter": PatternType.MATCH}, ALL),
    ({"principal_filter": "User:*"}, [ALL_T]),
    ({"host_filter": "10.0.0.1"}, [PREFIX_PRE]),
    ({"operation": AclOperation.ALL}, [ALL_T]),
    ({"operation": AclOperation.WRITE}, [WRITE_T]),
    ({"permission_type": PermissionType.DENY}, [PREFIX_P]),
    ({"resource_name_filter": ""}, []),
    ({"principal_filter": "alice"}, []),
    *(({field: 99}, []) for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")),
]


async def test_each_filter_finds_what_kafka_finds() -> None:
    """ANY and null match everything, MATCH finds what applies to a name, ALL is an operation like
    any other, and numbers that nobody knows match nothing (K4-L3b).
    """
    async with ruling() as cluster:
        await create(cluster, *ALL)
        for fields, expected in FOUND:
            assert await describe(cluster, finding(**fields)) == sorted(map(row_of, expected)), fields


async def test_very_many_again() -> None:
    """Whoever asks again for very many ACLs is told of them as they are by then."""
    many = [acl(f"t-{number}") for number in range(KEPT_SINCE + 1)]
    async with ruling() as cluster:
        await create(cluster, *many)
        for found in (many, many, [*many, READ_T], [*many, READ_T, WRITE_T]):
            await create(cluster, *found)
            assert await describe(cluster, finding()) == sorted(map(row_of, found))
            assert await describe(cluster, finding(permission_type=PermissionType.DENY)) == []


@pytest.mark.parametrize("version", range(NEWEST + 1))
async def test_the_oldest_version_shows_literal_resources(version: int) -> None:
    """Version 0 has no pattern types, so that its filters are about literal resources."""
    async with ruling() as cluster:
        await create(cluster, READ_T, PREFIX_P)
        request = finding(pattern_type_filter=PatternType.ANY if version else PatternType.LITERAL)
        expected = [READ_T, PREFIX_P] if version else [READ_T]
        assert await describe(cluster, request, version=version) == sorted(map(row_of, expected))


async def refused_with(cluster: Ruling, **how: Any) -> tuple[int, str | None]:
    answer = await cluster.ask(finding(), NEWEST, **how)
    assert answer.resources == []
    return answer.error_code, answer.error_message


async def test_whoever_may_not_describe_the_cluster_sees_nothing() -> None:
    """Neither is there anything to see without an authorizer."""
    async with ruling() as cluster:
        code, _ = await refused_with(cluster, principal="User:alice", authorization=ACLS_DECIDE)
        assert code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        said = (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
        assert await refused_with(cluster) == said


@pytest.mark.parametrize("field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"])
async def test_a_zero_ends_the_connection(field: str) -> None:
    """Kafka cannot read such a request."""
    async with ruling() as cluster:
        with pytest.raises(MalformedMessage, match="0 stands for no type"):
            await cluster.ask(finding(**{field: 0}), NEWEST)


NAMES = st.text("ab*", max_size=4)
PATTERNS = st.builds(
    ResourcePattern, st.sampled_from(sorted(TYPES)), NAMES.filter(bool), st.sampled_from(sorted(PATTERN_TYPES))
)


@given(
    st.frozensets(PATTERNS, max_size=12),
    st.integers(1, 8),
    st.none() | NAMES,
    st.integers(1, 5),
)
@settings(max_examples=300)
def test_patterns_are_found_without_a_scan_as_with_one(
    patterns: frozenset[ResourcePattern], resource_type: int, name: str | None, pattern_type: int
) -> None:
    """A filter with a name looks up what it may find; that is what the rules find one by one."""

    def matches(pattern: ResourcePattern) -> bool:
        if resource_type not in (AclResourceType.ANY, pattern.resource_type):
            return False
        if pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if name in (None, pattern.name):
            return True
        if pattern_type != PatternType.MATCH or name is None:
            return False
        return name.startswith(pattern.name) if pattern.pattern_type is PatternType.PREFIXED else pattern.name == "*"

    wanted = acl_filter(matching(name, resource_type_filter=resource_type, pattern_type_filter=pattern_type))
    assert sorted(wanted.patterns(patterns)) == sorted(filter(matches, patterns))
