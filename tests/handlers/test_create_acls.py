"""CreateAcls: each row is checked as Kafka checks it, the rows of one resource are one write, and
each resource is one event of the audit log.
"""

from pathlib import Path

import pytest

from minicontroller.cluster.znodes import acls
from minicontroller.protocol.acls import AclOperation, AclResourceType, PatternType, PermissionType
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.errors import MalformedMessage
from minicontroller.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from tests.audit.logs import decisions_in
from tests.handlers.acl_requests import ACLS_DECIDE, ADMIN, NEWEST, acl, create, describe, row_of
from tests.handlers.ruling import ruling

DONE = (0, "")
INVALID = ErrorCode.INVALID_REQUEST


async def test_acls_are_stored_as_kafka_stores_them() -> None:
    """One znode for each resource, literal and prefixed ones apart, and a notification for each
    write; an ACL that exists is a success and writes nothing (K4-L3a).
    """
    rows = [
        acl(),
        acl(operation=AclOperation.WRITE, permission_type=PermissionType.DENY),
        acl("ord", resource_pattern_type=PatternType.PREFIXED),
        acl(),
        acl("kafka-cluster", resource_type=AclResourceType.CLUSTER, operation=AclOperation.ALTER),
        acl("User:bob", resource_type=AclResourceType.USER, operation=AclOperation.CREATE_TOKENS),
    ]
    async with ruling() as cluster:
        assert await create(cluster, *rows) == [DONE] * 6
        assert await create(cluster, acl()) == [DONE]
        stored = await cluster.store.get("/kafka-acl/Topic/orders")
        assert stored is not None
        assert len(acls.decode_acls(stored.data)) == 2
        assert stored.stat.version == 0
        assert await cluster.store.get("/kafka-acl-extended/prefixed/Topic/ord") is not None
        assert await cluster.store.get("/kafka-acl/User/User:bob") is not None
        assert len(await cluster.store.children("/kafka-acl-changes")) == 3
        assert len(await cluster.store.children("/kafka-acl-extended-changes")) == 1
        assert await describe(cluster) == sorted({row_of(row) for row in rows})


@pytest.mark.parametrize("version", range(NEWEST + 1))
async def test_every_version_adds_the_same(version: int) -> None:
    """Version 0 knows literal resources only."""
    async with ruling() as cluster:
        assert await create(cluster, acl(), version=version) == [DONE]
        assert await describe(cluster) == [row_of(acl())]


REFUSED = {
    "The only valid name for the CLUSTER resource is kafka-cluster": acl("x", resource_type=AclResourceType.CLUSTER),
    "Invalid empty resource name": acl(""),
    "Failed to create ACL: no ACL can have the resource type 1": acl(resource_type=AclResourceType.ANY),
    "Failed to create ACL: no ACL can have the resource type 99": acl(resource_type=99),
    "Failed to create ACL: no ACL can have the pattern type 2": acl(resource_pattern_type=PatternType.MATCH),
    "Failed to create ACL: no ACL can have the operation -1": acl(operation=-1),
    "Failed to create ACL: no ACL can have the permission type 1": acl(permission_type=PermissionType.ANY),
}
NAME_REFUSED = "Failed to create ACL: the resource name has a character that ZooKeeper refuses, or a slash"
PRINCIPAL_REFUSED = "Failed to create ACL: a principal is written Type:name, such as User:alice"


async def test_a_row_that_is_no_acl_is_refused_by_itself() -> None:
    """The other rows are carried out; each refusal says what is wrong."""
    names = ("a/b", ".", "..", "a\0b", "a\x01b")
    bad = [*REFUSED.values(), *map(acl, names), acl(principal="alice"), acl(principal="")]
    texts = [*REFUSED, *[NAME_REFUSED] * len(names), *[PRINCIPAL_REFUSED] * 2]
    async with ruling() as cluster:
        answers = await create(cluster, acl("first"), *bad, acl("last"))
        assert answers == [DONE, *((INVALID, text) for text in texts), DONE]
        assert [row[1] for row in await describe(cluster)] == ["first", "last"]


async def test_what_kafka_accepts_is_accepted() -> None:
    """Hosts and principals are free texts, an operation need not exist for the type of resource,
    and names need not be those of topics.
    """
    odd = [
        acl(host=""),
        acl(host="example.org"),
        acl(principal="User:"),
        acl(principal=":x"),
        acl(principal="User:a:b"),
        acl("a b%ü"),
        acl("x" * 300),
        acl("*", resource_pattern_type=PatternType.PREFIXED),
        acl("g", resource_type=AclResourceType.GROUP, operation=AclOperation.CLUSTER_ACTION),
    ]
    async with ruling() as cluster:
        assert await create(cluster, *odd) == [DONE] * len(odd)
        assert await describe(cluster) == sorted(map(row_of, odd))


@pytest.mark.parametrize("field", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
async def test_a_zero_ends_the_connection(field: str) -> None:
    """Kafka cannot read such a request, with or without an authorizer."""
    async with ruling() as cluster:
        for authorization in (None, ACLS_DECIDE):
            with pytest.raises(MalformedMessage, match="0 stands for no type"):
                await cluster.ask(CreateAclsRequest(creations=[acl(**{field: 0})]), NEWEST, authorization=authorization)


async def test_whoever_may_not_alter_the_cluster_is_refused_in_every_row() -> None:
    """Authorization comes before every other check; without an authorizer there are no ACLs."""
    rows = [acl(), acl("")]
    async with ruling() as cluster:
        refused = await create(cluster, *rows, principal="User:alice")
        assert [code for code, _ in refused] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
        answer = await cluster.ask(CreateAclsRequest(creations=rows), NEWEST)
        assert [(row.error_code, row.error_message) for row in answer.results] == [
            (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
        ] * 2
        assert await describe(cluster) == []


async def test_each_resource_is_an_event_of_the_audit_log(tmp_path: Path) -> None:
    """The event says which ACLs were added, whether or not they were refused."""
    bob = acl(principal="User:bob", permission_type=PermissionType.DENY)
    async with ruling({"audit.dir": str(tmp_path)}) as cluster:
        await create(cluster, acl(), acl("a/b"), bob)
        await create(cluster, acl(), acl(), principal="User:eve")
    done, refused, unauthorized = decisions_in(tmp_path)
    assert (done.operation, done.resource, done.name) == ("create_acls", "acl", "Topic:LITERAL:orders")
    assert done.config_operations == {"Allow Read to User:alice from *": "", "Deny Read to User:bob from *": ""}
    assert (refused.name, refused.error) == ("Topic:LITERAL:a/b", "INVALID_REQUEST")
    assert (unauthorized.name, unauthorized.principal) == ("Topic:LITERAL:orders", "User:eve")
    assert unauthorized.error == "CLUSTER_AUTHORIZATION_FAILED"
    assert unauthorized.config_operations == {"Allow Read to User:alice from *": ""}


async def test_thousands_of_acls_of_one_resource_are_one_write() -> None:
    """Their znode is written once, and an ACL too many is refused with all that would be written
    with it.
    """
    many: list[AclCreation] = [acl(principal=f"User:{number}") for number in range(5_000)]
    async with ruling() as cluster:
        assert set(await create(cluster, *many)) == {DONE}
        stored = await cluster.store.get("/kafka-acl/Topic/orders")
        assert stored is not None
        assert stored.stat.version == 0
        large = [acl(principal=f"User:{number}", host="h" * 200) for number in range(5_000)]
        refused = await create(cluster, *large)
        assert {code for code, _ in refused} == {INVALID}
        assert "in one znode" in str(refused[0][1])
        assert len(await describe(cluster)) == 5_000
        assert ADMIN not in str(stored.data)
