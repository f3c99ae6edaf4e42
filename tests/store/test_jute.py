"""Our bytes of the hot requests against kazoo's own serializer, so that no error of ours hides in
both directions.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.protocol import serialization as kazoo  # type: ignore[import-untyped]
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE  # type: ignore[import-untyped]

from minicontroller.security import zookeeper_access
from minicontroller.store import jute
from minicontroller.store.base import (
    AccessDenied,
    Check,
    Create,
    Delete,
    Operation,
    SetData,
    StoreError,
    StoreUnavailable,
    VersionConflict,
    weight,
)

CHROOT = "/kafka"
PATHS = st.text("abé/", min_size=1, max_size=20).map(lambda text: "/" + text)
DATA = st.none() | st.binary(max_size=50)
VERSIONS = st.integers(-1, 2**31 - 1)
OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.builds(Create, PATHS, DATA, st.booleans(), st.booleans()),
    st.builds(SetData, PATHS, DATA, VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
    st.builds(Check, PATHS, VERSIONS),
)


def full(path: str) -> str:
    return CHROOT + path


def as_kazoo(operation: Operation) -> object:
    path = full(operation.path)
    if isinstance(operation, Create):
        return kazoo.Create(path, operation.data, OPEN_ACL_UNSAFE, operation.ephemeral * 1 + operation.sequential * 2)
    if isinstance(operation, SetData):
        return kazoo.SetData(path, operation.data, operation.version)
    if isinstance(operation, Delete):
        return kazoo.Delete(path, operation.version)
    return kazoo.CheckVersion(path, operation.version)


@given(operations=st.lists(OPERATIONS, max_size=8))
def test_a_multi_is_kazoo_s_byte_for_byte(operations: list[Operation]) -> None:
    """Any operations give the bytes that kazoo's transaction gives for them."""
    theirs = kazoo.Transaction([as_kazoo(operation) for operation in operations]).serialize()
    assert jute.encode_multi(operations, full, jute.open_to_all) == bytes(theirs)


@given(operation=OPERATIONS)
def test_weight_is_on_the_safe_side(operation: Operation) -> None:
    """An operation's weight covers its bytes in a request with Kafka's longest access list and a
    short chroot.
    """
    encoded = jute.encode_multi([operation], full, zookeeper_access.protected)
    letters = len(operation.path.encode()) - len(operation.path)
    assert len(encoded) - len(jute.END) - letters <= weight(operation)


def acl_of(path: str) -> list[object]:
    """The access list that we give a znode, as kazoo reads it."""
    encoded, entries, offset = zookeeper_access.protected(path), [], 4
    while offset < len(encoded):
        entry, offset = kazoo.read_acl(encoded, offset)
        entries.append(entry)
    assert jute.INT.unpack_from(encoded)[0] == len(entries)
    return entries


def test_access_lists_are_kafka_s() -> None:
    """Creator-all and world-read, creator-only where credentials lie, open to all for old
    consumers.
    """
    assert acl_of("/brokers/ids") == CREATOR_ALL_ACL + READ_ACL_UNSAFE
    assert (
        acl_of("/config/users/x")
        == acl_of("/config/brokers")
        == acl_of("/delegation_token/tokens/t")
        == CREATOR_ALL_ACL
    )
    assert acl_of("/consumers") == OPEN_ACL_UNSAFE


def answer(*parts: tuple[int, bytes]) -> bytes:
    """The server's answer to a multi: a header and a body for each operation."""
    return b"".join(jute.HEADER.pack(kind, 0, 0) + body for kind, body in parts) + jute.END


def test_results_come_without_the_chroot() -> None:
    """A created path is told within the chroot, a set has its stat, a deletion and a check have
    nothing.
    """
    stat = jute.STAT.pack(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
    data = answer(
        (jute.CREATE, jute.encode_string("/kafka/a")), (jute.SET_DATA, stat), (jute.DELETE, b""), (jute.CHECK, b"")
    )
    operations: list[Operation] = [Create("/a"), SetData("/b", None), Delete("/c"), Check("/d", 0)]
    path, changed, *nothing = jute.decode_multi(b"head" + data, 4, operations, CHROOT)
    assert (path, changed, nothing) == ("/a", jute.decode_stat(stat, 0), [None, None])
    assert jute.decode_stat(stat, 0).ephemeral_owner == 8


def test_the_operation_that_failed_is_named() -> None:
    """Those before it are answered with 0 and those after it with another error; neither is to
    blame.
    """
    errors = [(jute.ERROR_RESULT, jute.INT.pack(code)) for code in (0, -103, -2)]
    with pytest.raises(VersionConflict) as caught:
        jute.decode_multi(answer(*errors), 0, [Create("/a"), Check("/b", 1), Create("/c")], "")
    assert (caught.value.index, caught.value.path) == (1, "/b")


@pytest.mark.parametrize(
    ("code", "kind"),
    [(-4, StoreUnavailable), (-102, AccessDenied), (-114, AccessDenied), (-6, StoreError), (-999, StoreError)],
)
def test_every_number_of_the_server_is_an_error_of_ours(code: int, kind: type[StoreError]) -> None:
    """Known numbers have their class, unknown ones are told with the number."""
    error = jute.error_of(code, "/a")
    assert isinstance(error, kind)
    assert error.path == "/a"
    assert ("-999" in str(error)) == (code == -999)


def test_a_server_that_is_too_old_is_told() -> None:
    """A request that the server does not know says which ZooKeeper is needed."""
    assert "3.6" in str(jute.error_of(-6, "/a"))
