"""DeleteAcls: filters remove what they match, each ACL once, and each resource is one event of the
audit log.
"""

from pathlib import Path

import pytest
import trio

from minicontroller.cluster.znodes import layout
from minicontroller.protocol.acls import AclOperation, AclResourceType, PatternType, PermissionType
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.errors import MalformedMessage
from minicontroller.protocol.messages.delete_acls import DeleteAclsRequest
from minicontroller.store.base import SetData
from tests.audit.logs import decisions_in
from tests.handlers.acl_requests import ACLS_DECIDE, ADMIN, NEWEST, Row, acl, create, delete, describe, matching, row_of
from tests.handlers.ruling import ruling

READ, WRITE, BOB = acl(), acl(operation=AclOperation.WRITE), acl(principal="User:bob")
PREFIX = acl("ord", resource_pattern_type=PatternType.PREFIXED, permission_type=PermissionType.DENY)
OTHER = acl("payments")


async def test_an_acl_belongs_to_the_first_filter_that_matches_it() -> None:
    """A filter that matches nothing, or nothing more, is a success without ACLs (K4-L3c)."""
    async with ruling() as cluster:
        await create(cluster, READ, WRITE, BOB, PREFIX, OTHER)
        first = matching("orders", operation=AclOperation.READ)
        second = matching("orders", pattern_type_filter=PatternType.MATCH)
        removed = await delete(cluster, first, matching("nothing"), second, matching("orders"))
        assert removed == [sorted(map(row_of, [READ, BOB])), [], sorted(map(row_of, [WRITE, PREFIX])), []]
        assert await describe(cluster) == [row_of(OTHER)]
        assert await delete(cluster) == []


async def test_a_resource_without_acls_has_no_znode() -> None:
    """Kafka deletes the znode with its last ACL, and notifies of it (K4-L3c)."""
    async with ruling() as cluster:
        await create(cluster, READ, WRITE, PREFIX)
        await delete(cluster, matching(operation=AclOperation.READ))
        left = await cluster.store.get("/kafka-acl/Topic/orders")
        assert left is not None
        assert left.stat.version == 1
        assert await cluster.store.get("/kafka-acl-extended/prefixed/Topic/ord") is None
        await delete(cluster, matching())
        assert await cluster.store.get("/kafka-acl/Topic/orders") is None
        assert len(await cluster.store.children("/kafka-acl-changes")) == 3
        assert len(await cluster.store.children("/kafka-acl-extended-changes")) == 2
        assert await create(cluster, READ) == [(0, "")]


@pytest.mark.parametrize("version", range(NEWEST + 1))
async def test_the_oldest_version_removes_from_literal_resources(version: int) -> None:
    """Version 0 has no pattern types."""
    async with ruling() as cluster:
        await create(cluster, READ, PREFIX)
        asked = matching(pattern_type_filter=PatternType.ANY if version else PatternType.LITERAL)
        expected = [READ, PREFIX] if version else [READ]
        assert await delete(cluster, asked, version=version) == [sorted(map(row_of, expected))]


async def test_numbers_that_nobody_knows_match_nothing() -> None:
    """They are no error, as in Kafka; 0 ends the connection."""
    async with ruling() as cluster:
        await create(cluster, READ)
        fields = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
        assert await delete(cluster, *(matching(**{field: 99}) for field in fields)) == [[], [], [], []]
        for field in fields:
            with pytest.raises(MalformedMessage, match="0 stands for no type"):
                await cluster.ask(DeleteAclsRequest(filters=[matching(**{field: 0})]), NEWEST)
        assert await describe(cluster) == [row_of(READ)]


async def test_whoever_may_not_alter_the_cluster_is_refused_for_every_filter(tmp_path: Path) -> None:
    """Nothing is looked up for them, and the refusals are in the audit log with their filters."""
    filters = [matching("orders", operation=AclOperation.READ), matching(resource_type_filter=AclResourceType.GROUP)]
    async with ruling({"audit.dir": str(tmp_path)}) as cluster:
        answer = await cluster.ask(
            DeleteAclsRequest(filters=filters), NEWEST, principal="User:eve", authorization=ACLS_DECIDE
        )
        codes = [(row.error_code, row.matching_acls) for row in answer.filter_results]
        assert codes == [(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])] * 2
        answer = await cluster.ask(DeleteAclsRequest(filters=filters), NEWEST)
        assert [(row.error_code, row.error_message) for row in answer.filter_results] == [
            (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
        ] * 2
    unauthorized = decisions_in(tmp_path)[:2]
    assert [(each.name, each.principal) for each in unauthorized] == [
        ("Any:ANY:orders, Read", "User:eve"),
        ("Group:ANY:(any)", "User:eve"),
    ]


async def test_each_resource_is_an_event_of_the_audit_log(tmp_path: Path) -> None:
    """The event says which ACLs were removed."""
    async with ruling({"audit.dir": str(tmp_path)}) as cluster:
        await create(cluster, READ, BOB, PREFIX)
        await delete(cluster, matching())
    prefixed, literal = decisions_in(tmp_path)[-2:]
    assert literal.config_operations == {"Allow Read to User:alice from *": None, "Allow Read to User:bob from *": None}
    assert prefixed.config_operations == {"Deny Read to User:alice from *": None}
    assert prefixed.operation == "delete_acls"


async def test_an_acl_is_removed_once() -> None:
    """Of requests that come at once each tells what it has removed itself."""
    rows = sorted(map(row_of, [READ, WRITE, BOB]))
    removed: list[Row] = []
    async with ruling() as cluster:

        async def remove() -> None:
            for found in await delete(cluster, matching("orders")):
                removed.extend(found)

        await create(cluster, READ, WRITE, BOB)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(remove)
        assert sorted(removed) == rows


async def test_only_the_controller_knows_that_there_is_nothing_to_remove() -> None:
    """A controller that does not know yet that another one was elected does not answer from what it
    remembers.
    """
    async with ruling() as cluster:
        await cluster.nodes[2].store.commit([SetData(layout.CONTROLLER_EPOCH, b"41")])
        answer = await cluster.ask(
            DeleteAclsRequest(filters=[matching()]), NEWEST, principal=ADMIN, authorization=ACLS_DECIDE
        )
        assert [row.error_code for row in answer.filter_results] == [ErrorCode.NOT_CONTROLLER]


async def test_ten_thousand_resources_are_removed_by_one_filter() -> None:
    """A request that fills more than one commit is carried out in parts."""
    many = [acl(f"topic-{number:05}") for number in range(10_000)]
    async with ruling() as cluster:
        assert {code for code, _ in await create(cluster, *many)} == {0}
        [removed] = await delete(cluster, matching())
        assert removed == [row_of(row) for row in many]
        assert await describe(cluster) == []
