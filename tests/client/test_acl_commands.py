"""`minicontroller acls` against our nodes and a real Kafka with its AclAuthorizer: the same call
gives the same answer.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from minicontroller.client import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclResourceType,
    AdminClient,
    AdminError,
    PatternType,
    PermissionType,
    ResourcePattern,
    configure,
)
from tests.client.installed import Installed
from tests.support.cluster import Cluster, running_cluster
from tests.support.kafka import running_kafka
from tests.support.maven import needs_maven

pytestmark = pytest.mark.slow

CLUSTER = "cluster:kafka-cluster"
AUTHORIZER = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:ANONYMOUS"}


@pytest.fixture(name="guarded", scope="module", params=["minicontroller", pytest.param("kafka", marks=needs_maven)])
def guarded_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster with an authorizer, to which everybody is a super user."""
    started = running_kafka(1, AUTHORIZER) if request.param == "kafka" else running_cluster(settings=AUTHORIZER)
    with started as cluster:
        yield cluster


@pytest.fixture(name="command")
def installed_command(guarded: Cluster, tmp_path: Path) -> Installed:
    return Installed(guarded.bootstrap, tmp_path)


def test_acls_from_their_making_to_their_end(command: Installed) -> None:
    """Added, listed and removed, each with code 0 and a line for each ACL."""
    made = command("acls", "add", "topic:made-a", "cluster", "--principal", "User:alice", "--operation", "Alter")
    topic, cluster = (f"allow User:alice from * to alter {name} (literal)" for name in ("topic:made-a", CLUSTER))
    assert made == (0, f"{topic}: added\n{cluster}: added\n", "")
    denied = ("acls", "add", "topic:made-", "--prefixed", "--deny", "--host", "10.0.0.1", "--principal", "User:*")
    assert command(*denied, "--operation", "describe-configs").code == 0
    listed = command("acls", "list", "topic:made-a", "--pattern", "match").stdout
    assert [line.split() for line in listed.splitlines()[1:]] == [
        ["topic:made-", "prefixed", "User:*", "10.0.0.1", "describe-configs", "deny"],
        ["topic:made-a", "literal", "User:alice", "*", "alter", "allow"],
    ]
    removed = command("acls", "remove", "--principal", "User:alice", "--yes")
    assert removed == (0, f"{topic}: removed\n{cluster}: removed\n", "")
    assert command("acls", "remove", "topic:made-", "--pattern", "prefixed").code == 0
    assert command("acls", "list") == (0, "", "No ACLs.\n")
    assert command("acls", "remove", "topic:made-") == (0, "", "No such ACLs.\n")


def test_the_shape_of_acls_for_machines(command: Installed) -> None:
    """The JSON of list, add and remove is what docs/commands.md writes down."""
    facts = {
        "resource_type": "group", "resource": "json", "pattern": "prefixed", "principal": "User:a:b",
        "host": "*", "operation": "read", "permission": "allow",
    }  # fmt: skip
    arguments = ["group:json", "--prefixed", "--principal", "User:a:b", "--operation", "read"]
    done = {"dry_run": False, "results": [{**facts, "ok": True, "error": None}]}
    assert command.json("acls", "add", *arguments) == done
    assert command.json("acls", "list", "group:json") == {"acls": [facts]}
    assert command.json("acls", "remove", "group:json") == done
    assert command.json("acls", "remove", "group:json") == {"dry_run": False, "results": []}


def test_what_is_refused_is_said(command: Installed) -> None:
    """An ACL that the cluster refuses has code 1; a call that can mean nothing, or everything by
    mistake, has code 2.
    """
    added = command("acls", "add", "topic:a/b", "topic:good", "--principal", "User:x", "--operation", "read")
    assert added.code == 1
    assert (
        "allow User:x from * to read topic:a/b (literal): refused (INVALID_REQUEST): Failed to create ACL"
        in added.stderr
    )
    assert "to read topic:good (literal): added" in added.stdout
    assert command("acls", "remove", "--all", "--yes").code == 0
    assert command("acls", "add", "orders", "--principal", "User:x", "--operation", "read").code == 2
    assert "Name a RESOURCE" in command("acls", "remove", "--yes").stderr


@pytest.mark.parametrize(
    ("host", "advice"),
    [
        ("node1.example", "names and networks match nobody"),
        ("10.0.0.0/8", "names and networks match nobody"),
        ("::1", "write the address as Java does, 0:0:0:0:0:0:0:1"),
        ("0:0:0:0:0:0:0:1", ""),
        ("10.0.0.9", ""),
    ],
)
def test_a_host_that_no_client_has_is_a_warning(command: Installed, host: str, advice: str) -> None:
    """The ACL is added, as by Kafka's tools, and would never apply."""
    added = command("acls", "add", "topic:hosts", "--principal", "User:x", "--operation", "read", "--host", host)
    assert added.code == 0
    assert advice in added.stderr
    assert added.stderr.startswith(f"Warning: no client has the host {host}: ") == bool(advice)
    assert command("acls", "remove", "topic:hosts", "--yes").code == 0


def test_the_client_returns_what_was_removed(guarded: Cluster) -> None:
    """An ACL that two filters match belongs to the first; one that is refused is an error among
    values.
    """

    async def ask() -> None:
        async with AdminClient.connect(configure({"bootstrap.servers": guarded.bootstrap})) as admin:
            acls = [acl("client-a"), acl("client-b"), acl("client/c")]
            results = await admin.create_acls(acls)
            assert list(results) == acls
            assert list(results.values())[:2] == [None, None]
            refused = results[acls[2]]
            assert isinstance(refused, AdminError)
            assert refused.name == "INVALID_REQUEST"
            first = AclBindingFilter(name="client-b", pattern_type=PatternType.LITERAL)
            second = AclBindingFilter(AclResourceType.TOPIC, operation=AclOperation.READ)
            assert await admin.describe_acls(second) == tuple(acls[:2])
            assert await admin.delete_acls([first, second]) == {first: (acls[1],), second: (acls[0],)}

    trio.run(ask)


def acl(name: str) -> AclBinding:
    return AclBinding(
        ResourcePattern(AclResourceType.TOPIC, name),
        AccessControlEntry("User:alice", "*", AclOperation.READ, PermissionType.ALLOW),
    )
