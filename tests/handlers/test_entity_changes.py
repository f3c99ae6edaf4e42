"""What the handlers of ACLs, users, quotas and tokens share: edits of a request, in the order of
the answer, and an event of the audit log for each.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import trio
from immutables import Map

from minicontroller.admin.changes import ENTITY_KINDS, Change, Outcome
from minicontroller.admin.spec import Changes
from minicontroller.audit.event import Effect
from minicontroller.cluster.entity_paths import value_of
from minicontroller.cluster.errors import Refusal
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes import acls, tokens
from minicontroller.controller.handlers import decided_elements
from minicontroller.controller.handlers.entity_changes import Planned, change_entities
from minicontroller.protocol.acls import (
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PermissionType,
    ResourcePattern,
)
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.store.base import Delete, SetData, Store
from tests.audit.logs import decisions_in
from tests.store.worlds import MemoryWorld
from tests.support.small_cluster import SmallCluster, context_for

ORDERS = ResourcePattern(AclResourceType.TOPIC, "orders")
BILLS = ResourcePattern(AclResourceType.TOPIC, "bills")


class Edit(NamedTuple):
    """A change of one entity, whose value after the change is a function of the one before it."""

    change: Change
    path: str
    edit: Callable[[Any], Any]


def change_of(edit: Edit) -> Change:
    return edit.change


def plan(image: Image, edit: Edit) -> Planned:
    return edit.path, edit.edit(value_of(image, edit.path)[0])


def entry(user: str) -> AccessControlEntry:
    return AccessControlEntry(f"User:{user}", "*", AclOperation.READ, PermissionType.ALLOW)


def allow(user: str, pattern: ResourcePattern = ORDERS) -> Edit:
    return Edit(
        Change(f"Topic:LITERAL:{pattern.name}", "acl", {f"User:{user} may Read": ""}, {f"User:{user} may Read": "add"}),
        acls.acl_path(pattern),
        lambda entries: entries | {entry(user)},
    )


def refuse(_value: Any) -> Any:
    raise Refusal(ErrorCode.INVALID_REQUEST, "no")


def refused() -> Edit:
    return Edit(Change("Topic:LITERAL:orders", "acl"), acls.acl_path(ORDERS), refuse)


async def change(
    cluster: SmallCluster, edits: Sequence[Edit], *, validate_only: bool = False, received_node: int | None = None
) -> Sequence[Outcome]:
    node = cluster.controller_node
    context = context_for(node, ApiKey.CREATE_TOPICS, 7)
    asked = [each.change for each in edits]
    context.spec = msgspec.structs.replace(context.spec, changes=Changes("create_acls", lambda _request: asked))
    if received_node is not None:
        context.forwarded, context.origin.received_node = True, received_node
    return await change_entities(
        node.port, context, None, edits, change_of=change_of, plan=plan, validate_only=validate_only
    )


def codes(changes: Sequence[Outcome]) -> list[int]:
    return [each.code for each in changes]


def users(cluster: SmallCluster, broker_id: int, pattern: ResourcePattern = ORDERS) -> set[str]:
    found = cluster.members[broker_id].node.cache.image.acls.get(pattern)
    return set() if found is None else {each.principal.removeprefix("User:") for each in found.entries}


@pytest.fixture(name="memory")
def memory_world() -> MemoryWorld:
    return MemoryWorld()


@pytest.fixture(name="other")
async def other_session(memory: MemoryWorld) -> Store:
    return await memory.open()


@pytest.fixture(name="cluster")
async def small_cluster(memory: MemoryWorld, nursery: trio.Nursery) -> SmallCluster:
    cluster = SmallCluster(nursery, memory)
    await cluster.start_in_turn(1, 2, 3)
    return cluster


@pytest.fixture(name="audited")
async def audited_cluster(tmp_path: Path, memory: MemoryWorld, nursery: trio.Nursery) -> SmallCluster:
    cluster = SmallCluster(nursery, memory, settings={"audit.dir": str(tmp_path)})
    await cluster.start_in_turn(1, 2)
    return cluster


async def test_edits_are_answered_in_their_order(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """Each edit sees those before it, and a refused one does not hinder the others; all is in force
    everywhere with the answer.
    """
    nowhere = Edit(Change("Topic:LITERAL:a/b", "acl"), acls.acl_path(BILLS), refuse)
    edits = [allow("a"), nowhere, allow("x", BILLS), refused(), allow("b"), nowhere, allow("c")]
    changes = await change(cluster, edits)
    assert codes(changes) == [0, 42, 0, 42, 0, 42, 0]
    assert [users(cluster, broker_id) for broker_id in (1, 2, 3)] == [{"a", "b", "c"}] * 3
    assert users(cluster, 2, BILLS) == {"x"}
    found = await other.get(acls.acl_path(ORDERS))
    assert found is not None
    assert acls.decode_acls(found.data) == {entry("a"), entry("b"), entry("c")}


async def test_the_node_that_was_asked_has_the_change(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """With metadata.completion=local a change is in force at the controller and at the node that
    forwarded the request when it is answered, and nobody waits for the others.
    """
    cluster = SmallCluster(nursery, memory, settings={"metadata.completion": "local"})
    await cluster.start_in_turn(1, 2, 3)
    await memory.suspend(cluster.members[2].store)
    for number in range(10):
        before = {f"a{each}" for each in range(number)}
        assert codes(await change(cluster, [allow(f"a{number}")], received_node=3)) == [0]
        assert users(cluster, 1) == users(cluster, 3) == before | {f"a{number}"}
    assert users(cluster, 2) == set()


def test_refusals_of_another_node_keep_their_kind() -> None:
    """A change that the receiving node refused reaches the controller as what it is, whether Kafka
    has a number for its kind or not.
    """
    refusal = Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    for kind in (*ENTITY_KINDS, "topic", "broker", "logger", "resource"):
        known = Outcome(Change("x", kind, {"k": "v"}, {"k": "set"}), refusal=refusal)
        read = decided_elements.decode(decided_elements.encode(known), validate_only=False)
        assert (read.change, read.code) == (known.change, refusal.code)


async def test_what_is_so_already_is_not_written(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """An edit that changes nothing succeeds without a write."""
    assert codes(await change(cluster, [allow("a")])) == [0]
    assert codes(await change(cluster, [allow("a"), allow("a")])) == [0, 0]
    assert len(await other.children(acls.LITERAL_CHANGES)) == 1


async def test_what_another_program_deleted_in_silence_is_written_again(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """An edit that asks for what the controller believes to be there is checked against the store,
    so that what is acknowledged is stored.
    """
    assert codes(await change(cluster, [allow("a"), allow("b")])) == [0, 0]
    path = acls.acl_path(ORDERS)
    await other.commit([Delete(path)])
    assert codes(await change(cluster, [allow("a"), allow("b")])) == [0, 0]
    entry = await other.get(path)
    assert entry is not None and len(acls.decode_acls(entry.data)) == 2


async def test_a_dry_run_writes_nothing(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """In a dry run later edits see the earlier ones, and the store sees none."""
    seen = []

    def look(entries: Any) -> Any:
        seen.append(len(entries))
        return entries

    looking = Edit(Change("x", "acl"), acls.acl_path(ORDERS), look)
    assert codes(await change(cluster, [allow("a"), looking, refused()], validate_only=True)) == [0, 0, 42]
    assert seen == [1]
    assert await other.get(acls.acl_path(ORDERS)) is None
    assert codes(await change(cluster, [])) == []


async def test_configs_and_tokens_have_values_of_their_own(cluster: SmallCluster, autojump_clock: object) -> None:
    """An edit is given the configs as a mapping, and None where there is no token."""
    quota = Edit(Change("x", "client_quota"), "/config/users/x/clients/y", lambda configs: {**configs, "k": "v"})
    token = Edit(Change("id", "token"), tokens.token_path("id"), lambda token: token)
    assert codes(await change(cluster, [quota, token])) == [0, 0]
    assert dict(cluster.members[3].node.cache.image.configs["users/x/clients/y"].configs) == {"k": "v"}
    again = Edit(Change("x", "client_quota"), "/config/users/x/clients/y", lambda configs: configs)
    assert codes(await change(cluster, [again])) == [0]


async def test_edits_are_made_on_top_of_what_others_wrote(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """A conflict with another program is read, and the edits of the request are planned again."""
    assert codes(await change(cluster, [allow("a")])) == [0]
    await other.commit([SetData(acls.acl_path(ORDERS), acls.encode_acls([entry("o")]))])
    assert codes(await change(cluster, [allow("b"), allow("c")])) == [0, 0]
    assert users(cluster, 2) == {"o", "b", "c"}


async def test_acls_that_nobody_can_read_are_not_overwritten(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """Whoever would erase what another program wrote is refused, and told where it is."""
    await other.ensure(acls.acl_path(ORDERS))
    await other.commit([SetData(acls.acl_path(ORDERS), b"garbage")])
    (refusal,) = await change(cluster, [allow("a")])
    assert refusal.code == ErrorCode.INVALID_CONFIG
    assert "/kafka-acl/Topic/orders" in str(refusal.message)


async def test_a_long_request_is_planned_in_parts(cluster: SmallCluster, autojump_clock: object) -> None:
    """More edits than fit into a commit are all made, in the order of the request."""
    edits = [allow(f"user-{number}-{'x' * 500}", (ORDERS, BILLS)[number % 2]) for number in range(60)]
    more = [allow("a", ResourcePattern(AclResourceType.GROUP, f"group-{number}-{'x' * 500}")) for number in range(1500)]
    assert codes(await change(cluster, [*edits, *more])) == [0] * 1560
    assert len(users(cluster, 3)) == len(users(cluster, 3, BILLS)) == 30


async def test_each_edit_has_its_event(audited: SmallCluster, tmp_path: Path, autojump_clock: object) -> None:
    """The audit log has each edit with its operands, also if it was refused or shares a write."""
    await change(audited, [allow("a"), refused(), allow("b")])
    await change(
        audited,
        [
            Edit(
                Change("u", "user", Map({"SCRAM-SHA-256": "hush"})),
                "/config/users/u",
                lambda _: {"SCRAM-SHA-256": "hush"},
            )
        ],
    )
    node = audited.controller_node
    assert node.audit is not None
    await node.audit.close()
    first, second, third, user = decisions_in(tmp_path)
    assert [each.effect for each in (first, second, third)] == [Effect.APPLIED, Effect.NONE, Effect.APPLIED]
    assert (first.resource, first.name, first.operation) == ("acl", "Topic:LITERAL:orders", "create_acls")
    assert first.config_operations == {"User:a may Read": ""}
    assert third.config_operation_kinds == {"User:b may Read": "add"}
    assert user.config_operations == {"SCRAM-SHA-256": "[hidden]"}
    kinds = [(each.kind, each.name) for each in node.recent_decisions]
    assert kinds == [("acl", "Topic:LITERAL:orders")] * 3 + [("user", "u")]
