"""The znodes of users, clients, addresses, ACLs, delegation tokens and groups: any name that Kafka
takes is written and read again, and what no Kafka writes is refused.
"""

import contextlib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from minicontroller.cluster.entities import TokenInformation
from minicontroller.cluster.groups import CommittedOffset, GroupHeader
from minicontroller.cluster.znodes import acls, groups, tokens
from minicontroller.cluster.znodes.configs import decode_config_change, encode_config_change
from minicontroller.cluster.znodes.content import MalformedZnodeError
from minicontroller.cluster.znodes.entity_names import (
    client_entity_at,
    client_entity_path,
    is_node_name,
    sanitized,
    unsanitized,
)
from minicontroller.protocol.acls import (
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
PRINCIPALS = st.builds("{}:{}".format, st.sampled_from(["User", "Group"]), NAMES)
ENTRIES = st.builds(
    AccessControlEntry,
    PRINCIPALS,
    st.sampled_from(["*", "10.0.0.1", "::1"]),
    st.sampled_from([each for each in AclOperation if each > AclOperation.ANY]),
    st.sampled_from([PermissionType.ALLOW, PermissionType.DENY]),
)
PATTERNS = st.builds(
    ResourcePattern,
    st.sampled_from([each for each in AclResourceType if each > AclResourceType.ANY]),
    NAMES.filter(is_node_name),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
)
ENTITIES = st.one_of(
    st.fixed_dictionaries({"user": st.none() | NAMES}),
    st.fixed_dictionaries({"client-id": st.none() | NAMES}),
    st.fixed_dictionaries({"user": st.none() | NAMES, "client-id": st.none() | NAMES}),
    st.fixed_dictionaries({"ip": st.none() | NAMES}),
)


@given(NAMES)
def test_any_name_is_escaped_and_read_again(name: str) -> None:
    """An escaped name is one znode's name, and no other name is escaped to it."""
    assert unsanitized(sanitized(name)) == name
    assert "/" not in sanitized(name)
    assert sanitized(name) != "<default>"


@given(ENTITIES)
def test_entities_have_paths(entity: dict[str, str | None]) -> None:
    """Users, clients, their pairs and addresses are found again by their path, which a notification
    can name.
    """
    path = client_entity_path(entity)
    assert client_entity_at(path) == entity
    if not {".", ".."} & set(path.split("/")):
        kind, name = decode_config_change(encode_config_change(path))
        assert f"{kind}/{name}" == path


def test_other_paths_are_no_entities() -> None:
    """What stands beside and above users and clients has no quotas."""
    for path in ("users", "topics/a", "brokers/1", "users/a/clients", "users/a/b/c", "users/a/clients/b/c", "ips/a/b"):
        assert client_entity_at(path) is None


@given(PATTERNS, st.frozensets(ENTRIES))
def test_acls_are_read_again(pattern: ResourcePattern, entries: frozenset[AccessControlEntry]) -> None:
    """ACLs, their path and their notification say the same after a round trip."""
    assert acls.pattern_at(acls.acl_path(pattern)) == pattern
    assert acls.decode_acls(acls.encode_acls(entries)) == entries
    path, data = acls.encode_acl_change(pattern)
    literal = path.startswith(f"{acls.LITERAL_CHANGES}/")
    assert pattern == (acls.decode_literal_acl_change(data) if literal else acls.decode_extended_acl_change(data))


def test_acls_are_read_as_kafka_reads_them() -> None:
    """Names of operations and permissions may be in any case, unknown keys are ignored, and a
    notification may be written by an older Kafka.
    """
    row = b'{"principal":"User:a","permissionType":"DENY","operation":"describe_configs","host":"*","new":1}'
    (entry,) = acls.decode_acls(b'{"version":1,"acls":[' + row + b"]}")
    assert entry == AccessControlEntry("User:a", "*", AclOperation.DESCRIBE_CONFIGS, PermissionType.DENY)
    assert acls.decode_acls(None) == acls.decode_acls(b"") == frozenset()
    topic = ResourcePattern(AclResourceType.TOPIC, "a:b")
    assert acls.decode_literal_acl_change(b"Topic:a:b") == topic
    assert acls.pattern_at("/kafka-acl/Topic") is acls.pattern_at("/kafka-acl/topic/x") is None


@pytest.mark.parametrize(
    "data",
    [
        (
            b'{"version":2,"version":1,"acls":[{"principal":"User:x","principal":"User:a","permissionType":"Deny",'
            b'"permissionType":"Allow","operation":"Read","host":"*"}]}'
        ),
        (
            b'{"version":1,"acls":[{"principal":"User:b","permissionType":"Deny","operation":"Read","host":"*"}],'
            b'"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Read","host":"*"}]}'
        ),
    ],
)
def test_the_last_of_two_equal_keys_counts(data: bytes) -> None:
    """As a Kafka 3.9.1 read these texts."""
    assert acls.decode_acls(data) == {AccessControlEntry("User:a", "*", AclOperation.READ, PermissionType.ALLOW)}


@pytest.mark.parametrize(
    "data",
    [
        b'{"version":1,"version":2,"acls":[]}',
        b'{"version":2,"acls":[]}',
        b'{"acls":[]}',
        b"[]",
        b"\xff",
        b'{"version":1,"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Fly","host":"*"}]}',
        b'{"version":1,"acls":[{"principal":"User:a","permissionType":"Any","operation":"Read","host":"*"}]}',
        b'{"version":1,"acls":[{"principal":"alice","permissionType":"Allow","operation":"Read","host":"*"}]}',
        b'{"version":1,"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Read"}]}',
    ],
)
def test_acls_that_no_kafka_writes(data: bytes) -> None:
    """One entry that cannot be read makes the whole list unreadable."""
    with pytest.raises(MalformedZnodeError):
        acls.decode_acls(data)


@given(st.binary(max_size=60))
def test_notifications_are_read_or_refused(data: bytes) -> None:
    """Whatever stands in a notification names something that can be looked up, or is malformed."""
    for decode in (acls.decode_literal_acl_change, acls.decode_extended_acl_change):
        try:
            path = acls.acl_path(decode(data))
        except MalformedZnodeError:
            continue
        assert acls.pattern_at(path) is not None
    with contextlib.suppress(MalformedZnodeError):
        assert is_node_name(tokens.decode_token_change(data))


@given(PRINCIPALS, PRINCIPALS, st.lists(PRINCIPALS), st.tuples(*[st.integers(0, 2**62)] * 3))
def test_tokens_are_read_again(owner: str, requester: str, renewers: list[str], times: tuple[int, int, int]) -> None:
    """A token says the same after a round trip, whatever the names in it."""
    token = TokenInformation("id", owner, requester, tuple(renewers), *times, 7)
    assert tokens.decode_token("id", tokens.encode_token(token), 7) == token


def test_tokens_of_older_kafkas() -> None:
    """Before Kafka 3.3 no znode named a requester: it was the owner."""
    data = (
        b'{"version":1,"owner":"User%3Aa","renewers":[],"issueTimestamp":1,"maxTimestamp":3,"expiryTimestamp":2,'
        b'"tokenId":"id"}'
    )
    assert tokens.decode_token("id", data, 0) == TokenInformation("id", "User:a", "User:a", (), 1, 2, 3, 0)
    for wrong in (data.replace(b"%3A", b""), data.replace(b'"id"', b'"other"'), data[:-1], b""):
        with pytest.raises(MalformedZnodeError):
            tokens.decode_token("id", wrong, 0)


OFFSETS = st.builds(
    CommittedOffset,
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.integers(0, 2**63 - 1),
)
GROUP_IDS = st.sampled_from(["", ".", "..", "~empty", "~", "x" * 32_000]) | NAMES


@given(GROUP_IDS, NAMES)
def test_any_group_is_written_and_read_again(group_id: str, owner: str) -> None:
    """A group id is any text, and its znode has a name that ZooKeeper takes."""
    name = groups.name_of(group_id)
    assert is_node_name(name) and len(name) <= 200
    header = GroupHeader(group_id, owner, version=3)
    assert groups.decode_header(name, groups.encode_header(header), 3) == header
    assert groups.decode_group_change(name.encode()) == (name,)


@given(OFFSETS, st.from_regex(r"[a-z._-]{1,9}", fullmatch=True), st.integers(0, 2**31 - 1))
def test_any_offset_is_written_and_read_again(offset: CommittedOffset, topic: str, partition: int) -> None:
    """The name of its znode tells the topic and the partition, and so do notifications."""
    assert groups.decode_offset(groups.encode_offset(offset), offset.version) == offset
    assume(topic not in (".", ".."))
    name = groups.offset_name((topic, partition))
    assert is_node_name(name) and groups.place_of(name) == (topic, partition)
    (change,) = groups.encode_group_changes("g", [(topic, partition)])
    assert groups.decode_group_change(change) == ("g", f"g/{name}")


@pytest.mark.parametrize("name", ["", "t", "t-", "t-01", "-1", "..-1", "t-²", "t-2147483648", "t-1e", "a b-1"])
def test_no_other_znode_is_an_offset(name: str) -> None:
    """What lies below a group under any other name is nothing of ours."""
    assert groups.place_of(name) is None


@given(GROUP_IDS, GROUP_IDS)
def test_two_groups_have_two_znodes(one: str, other: str) -> None:
    """No group is taken for another."""
    assert (groups.name_of(one) == groups.name_of(other)) == (one == other)


@given(st.binary(max_size=200) | st.text().map(str.encode))
def test_no_znode_of_a_group_surprises(data: bytes) -> None:
    """Whatever lies there is read, or is malformed."""
    with contextlib.suppress(MalformedZnodeError):
        groups.decode_header("g", data, 0)
    with contextlib.suppress(MalformedZnodeError):
        groups.decode_offset(data, 0)
    with contextlib.suppress(MalformedZnodeError):
        assert all(map(is_node_name, groups.decode_group_change(data)[0].split("/")))
