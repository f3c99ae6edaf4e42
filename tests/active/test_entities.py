"""Users, clients, ACLs and delegation tokens: what the controller writes of them, what others
write, and what every node has in force.
"""

from collections.abc import Callable, Mapping

import msgspec
import pytest
import trio

from minicontroller.cluster.cache import ImageChanges
from minicontroller.cluster.entities import (
    NO_CONFIGS,
    UNREADABLE,
    AclEntries,
    EntityConfigs,
    Partition,
    TokenInformation,
    Topic,
)
from minicontroller.cluster.entity_paths import is_unreadable
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes import acls, groups, layout, tokens
from minicontroller.cluster.znodes.configs import encode_config
from minicontroller.cluster.znodes.entity_names import user_path
from minicontroller.cluster.znodes.topics import encode_topic
from minicontroller.controller.active.entity_reading import decoded
from minicontroller.controller.active.entity_writing import stage_acls, stage_client_configs, stage_token
from minicontroller.controller.active.jobs import Draft, StagedElement
from minicontroller.controller.node.node import Node
from minicontroller.protocol.acls import (
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.security.scram_credentials import credential_text, derived_credential
from minicontroller.security.zookeeper_access import CREATOR_ONLY
from minicontroller.store.base import Create, Delete, Entry, SetData, Stat, Store
from minicontroller.store.zookeeper import ZooKeeperStore
from tests.store.worlds import MemoryWorld, World, in_both_worlds, on_zookeeper
from tests.support.config_znodes import configs_in, notification
from tests.support.small_cluster import SmallCluster
from tests.support.zookeeper import ZooKeeperServer

ORDERS = ResourcePattern(AclResourceType.TOPIC, "orders")
ORD = ResourcePattern(AclResourceType.TOPIC, "ord", PatternType.PREFIXED)
ALICE = AccessControlEntry("User:alice", "*", AclOperation.READ, PermissionType.ALLOW)
BOB = AccessControlEntry("User:bob", "*", AclOperation.READ, PermissionType.DENY)
CAROL = AccessControlEntry("User:carol", "10.0.0.1", AclOperation.ALL, PermissionType.ALLOW)
SECRET = ResourcePattern(AclResourceType.TOPIC, "secret")
TOKEN = TokenInformation("id", "User:alice", "User:bob", ("User:c",), 1, 2, 3)
QUOTA = {"producer_byte_rate": "7"}


async def write(cluster: SmallCluster, *stage: Callable[[Draft], StagedElement]) -> None:
    """Write as a handler does, and wait until every node has it in force."""

    async def plan(draft: Draft) -> None:
        for each in stage:
            each(draft)

    await cluster.controller.writer.write(plan)
    await cluster.controller.propagation.wait_acknowledged(configs=True)


def of_acls(pattern: ResourcePattern, *entries: AccessControlEntry) -> Callable[[Draft], StagedElement]:
    return lambda draft: stage_acls(draft, pattern, entries)


def of_configs(path: str, configs: Mapping[str, str]) -> Callable[[Draft], StagedElement]:
    return lambda draft: stage_client_configs(draft, path, configs)


def of_token(token: TokenInformation | None) -> Callable[[Draft], StagedElement]:
    return lambda draft: stage_token(draft, "id", token)


def all_nodes(cluster: SmallCluster) -> list[Node]:
    return [member.node for _, member in sorted(cluster.members.items())]


def in_force(node: Node) -> object:
    """All that a node has in force, without versions."""
    image = node.cache.image
    return (
        {pattern: set(each.entries) for pattern, each in image.acls.items()},
        {path: dict(each.configs) for path, each in image.configs.items() if each.configs},
        {each.token_id: each.expires_ms for each in image.tokens.values()},
    )


async def tree(store: Store, *roots: str) -> set[str]:
    await store.sync()
    found = set()
    for root in roots:
        for name in await store.children(root):
            found |= {f"{root}/{name}"} | await tree(store, f"{root}/{name}")
    return found


@pytest.mark.parametrize("one_process", [False, True], ids=["wire", "one process"])
async def test_a_change_is_in_force_everywhere_when_it_is_complete(
    one_process: bool, memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """K4-6a: ACLs, configs and tokens are in force at every node when the change of them is, time
    and again, and they are gone when it is.
    """
    cluster = SmallCluster(nursery, memory, one_process=one_process)
    await cluster.start_in_turn(1, 2, 3)
    await changed_everywhere(cluster)


@in_both_worlds
async def test_a_change_is_in_force_everywhere_on_zookeeper(cluster: SmallCluster) -> None:
    """K4-6a: so it is on a real server, where each node reads by a connection of its own."""
    await changed_everywhere(cluster)


async def changed_everywhere(cluster: SmallCluster) -> None:
    for number in range(5):
        quota = {"producer_byte_rate": str(number)}
        token = TokenInformation("id", "User:alice", "User:bob", ("User:c",), 1, number, 9)
        changed = [of_acls(ORDERS, ALICE), of_acls(ORD, ALICE, BOB), of_configs("users/a/clients/b", quota)]
        await write(cluster, *changed, of_token(token))
        expected = ({ORDERS: {ALICE}, ORD: {ALICE, BOB}}, {"users/a/clients/b": quota}, {"id": number})
        assert [in_force(each) for each in all_nodes(cluster)] == [expected] * 3
        await write(cluster, of_acls(ORD, ALICE), of_acls(ORDERS), of_configs("users/a/clients/b", {}), of_token(None))
        assert [in_force(each) for each in all_nodes(cluster)] == [({ORD: {ALICE}}, {}, {})] * 3


async def test_what_is_empty_is_deleted(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """The znodes of ACLs without entries, of users, clients and addresses without configs, and
    those above them go, as Kafka deletes them; a user with clients stays.
    """
    roots = ("/config/users", "/config/clients", "/config/ips", "/kafka-acl", "/kafka-acl-extended", tokens.ROOT)
    before = await tree(other, *roots)
    paths = (
        "users/a",
        "users/a/clients/b",
        "users/a/clients/<default>",
        "clients/c",
        "ips/10.0.0.1",
        "users/<default>",
    )
    await write(cluster, of_acls(ORDERS, ALICE), of_token(TOKEN), *(of_configs(path, QUOTA) for path in paths))
    assert await tree(other, *roots) - before == {
        *(f"/config/{path}" for path in paths),
        "/config/users/a/clients",
        "/kafka-acl/Topic/orders",
        "/delegation_token/tokens/id",
    }
    await write(cluster, of_configs("users/a", {}), of_configs("users/a/clients/b", {}))
    entry = await other.get("/config/users/a")
    assert entry is not None
    assert entry.data == encode_config({})
    await write(cluster, of_acls(ORDERS), of_token(None), *(of_configs(path, {}) for path in paths))
    assert await tree(other, *roots) == before


def notice_of(pattern: ResourcePattern) -> Create:
    prefix, data = acls.encode_acl_change(pattern)
    return Create(prefix, data, sequential=True)


async def others_write(other: Store) -> None:
    """As Kafka's tools do it: the znode, then the notification."""
    for path in ("/config/users/a/clients",):
        await other.ensure(path)
    await other.commit([Create("/config/users/a/clients/b", encode_config(QUOTA)), notification("users/a/clients/b")])
    await other.commit([Create(acls.acl_path(ORDERS), acls.encode_acls([ALICE]))])
    await other.commit([notice_of(ORDERS)])
    await other.commit([Create(acls.acl_path(ORD), acls.encode_acls([BOB]))])
    await other.commit([notice_of(ORD)])
    await other.commit([Create(tokens.token_path("id"), tokens.encode_token(TOKEN))])
    await other.commit([Create(tokens.CHANGE_PREFIX, b"id", sequential=True)])


OTHERS_WROTE = ({ORDERS: {ALICE}, ORD: {BOB}}, {"users/a/clients/b": QUOTA}, {"id": 2})


@in_both_worlds
async def test_what_others_write_is_followed(cluster: SmallCluster, other: Store) -> None:
    """What kafka-acls.sh, kafka-configs.sh or a broker of Kafka writes is in force at every node
    soon, and in the controller's image, which goes on from there.
    """
    await others_write(other)
    await cluster.until(lambda: [in_force(each) for each in all_nodes(cluster)] == [OTHERS_WROTE] * 3)
    await cluster.until(lambda: ORDERS in cluster.controller.image.acls and "id" in cluster.controller.image.tokens)
    await cluster.until(lambda: "users/a/clients/b" in cluster.controller.image.configs)
    await write(cluster, of_acls(ORDERS, ALICE, BOB), of_configs("users/a/clients/b", {}), of_token(None))
    changed: object = ({ORDERS: {ALICE, BOB}, ORD: {BOB}}, {}, {})
    assert [in_force(each) for each in all_nodes(cluster)] == [changed] * 3


@in_both_worlds
async def test_an_election_finds_everything(cluster: SmallCluster, other: Store) -> None:
    """A new controller has loaded all of it; a node that starts has it when it is registered."""
    await others_write(other)
    await cluster.elect_anew()
    image = cluster.controller.image
    assert (set(image.acls), set(image.tokens)) == ({ORDERS, ORD}, {"id"})
    assert {"users/a", "users/a/clients", "users/a/clients/b"} <= set(image.configs)
    await cluster.start(4)
    assert in_force(cluster.members[4].node) == OTHERS_WROTE


async def test_what_others_put_below_configs_keeps_nothing_in_force(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """Quotas and credentials are removed where other programs have put znodes below theirs, however
    many there are: the configs become empty and the znodes stay, as at Kafka.
    """
    paths = [*(f"users/u{number}" for number in range(12)), "users/a/clients/c", "clients/c", "ips/10.0.0.1"]
    await write(cluster, *(of_configs(path, QUOTA) for path in paths), of_configs("users/b/clients/c", QUOTA))
    for path in (*paths, "users/b"):
        await other.ensure(f"/config/{path}/kid/grandchild")

    async def plan(draft: Draft) -> list[StagedElement]:
        return [stage_client_configs(draft, path, {}) for path in (*paths, "users/b/clients/c")]

    elements = await cluster.controller.writer.write(plan)
    assert [element.refusal for element in elements] == [None] * 16
    await cluster.controller.propagation.wait_acknowledged(configs=True)
    assert [in_force(each) for each in all_nodes(cluster)] == [({}, {}, {})] * 3
    assert [await configs_in(other, path) for path in paths] == [{}] * 15
    assert await other.children("/config/users/b") == ["kid"]
    await write(cluster, of_configs("users/u1", QUOTA))
    assert await configs_in(other, "users/u1") == QUOTA


async def test_conflicts_are_read_and_planned_again(
    cluster: SmallCluster, other: Store, memory: MemoryWorld, autojump_clock: object
) -> None:
    """Where another program has written without a notification, a change meets the conflict, reads
    what is there, and is made on top of it.
    """
    await write(cluster, of_acls(ORDERS, ALICE), of_configs("users/a/clients/b", QUOTA), of_token(TOKEN))
    await other.commit(
        [
            SetData(acls.acl_path(ORDERS), acls.encode_acls([BOB])),
            SetData("/config/users/a/clients/b", encode_config({"request_percentage": "5"})),
            Create("/config/users/a/clients/c", encode_config(QUOTA)),
            Delete(tokens.token_path("id")),
            Create("/config/clients/x", encode_config(QUOTA)),
        ]
    )
    seen = []

    def merged(draft: Draft) -> StagedElement:
        entries = draft.image.acls[ORDERS].entries
        seen.append(set(entries))
        return stage_acls(draft, ORDERS, entries | {CAROL})

    await write(cluster, merged)
    assert seen == [{ALICE}, {BOB}]
    await write(cluster, of_configs("users/a/clients/b", {}), of_token(TOKEN), of_configs("clients/x", {}))
    expected = ({ORDERS: {BOB, CAROL}}, {"users/a/clients/c": QUOTA}, {"id": 2})
    assert in_force(cluster.controller_node) == expected


async def test_a_conflict_tells_every_node(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """What a program wrote that died before its notification is in force at every node once a
    change has met it, as is the change.
    """
    await write(cluster, of_acls(ORDERS, ALICE))
    await other.commit([SetData(acls.acl_path(ORDERS), acls.encode_acls([BOB]))])
    await write(cluster, lambda draft: stage_acls(draft, ORDERS, draft.image.acls[ORDERS].entries | {CAROL}))
    assert [in_force(each) for each in all_nodes(cluster)] == [({ORDERS: {BOB, CAROL}}, {}, {})] * 3


async def test_a_node_without_the_store_is_waited_for(
    cluster: SmallCluster, memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """A removed ACL is not reported as removed while a live node that has lost the store would
    still grant what it granted.
    """
    await write(cluster, of_acls(ORDERS, ALICE))
    await memory.suspend(cluster.members[3].store)
    done = trio.Event()

    async def remove() -> None:
        await write(cluster, of_acls(ORDERS))
        done.set()

    nursery.start_soon(remove)
    await trio.sleep(5)
    assert not done.is_set()
    await memory.resume(cluster.members[3].store)
    with trio.fail_after(5):
        await done.wait()
    assert [in_force(each) for each in all_nodes(cluster)] == [({}, {}, {})] * 3


async def test_a_neighbour_without_the_store_is_told(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """Within one process the controller tells every node, also one that has lost the store."""
    cluster = SmallCluster(nursery, memory, one_process=True)
    await cluster.start_in_turn(1, 2, 3)
    await memory.suspend(cluster.members[3].store)
    await write(cluster, of_acls(ORDERS, ALICE))
    assert in_force(cluster.members[3].node) == ({ORDERS: {ALICE}}, {}, {})


async def test_malformed_znodes_stop_nobody(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """ACLs that nobody can read are known to be unreadable at every node and at the next
    controller, such a token is none, and what is well-formed is followed.
    """
    await others_write(other)
    await cluster.until(lambda: [in_force(each) for each in all_nodes(cluster)] == [OTHERS_WROTE] * 3)
    garbage = [SetData(path, b"garbage") for path in (acls.acl_path(ORDERS), tokens.token_path("id"))]
    notices = [
        Create(f"{root}/x_", b"\xff/garbage", sequential=True) for root in (acls.LITERAL_CHANGES, tokens.CHANGES)
    ]
    notices += [notice_of(ORDERS), Create(tokens.CHANGE_PREFIX, b"id", sequential=True)]
    await other.commit([*garbage, *notices, Create("/kafka-acl/Topic/ü", b"[]"), Create("/kafka-acl/X")])

    def is_unreadable(node: Node) -> bool:
        image = node.cache.image
        is_known = image.acls[ORDERS].version == UNREADABLE and node.reader.counts()["unreadable"] > 0
        return is_known and not image.tokens

    await cluster.until(lambda: all(map(is_unreadable, all_nodes(cluster))))
    await cluster.elect_anew()
    assert cluster.controller.image.acls[ORDERS].version == UNREADABLE
    assert all(map(is_unreadable, all_nodes(cluster)))
    await write(cluster, of_acls(ORD))
    assert all(ORD not in each.cache.image.acls for each in all_nodes(cluster))


@on_zookeeper
async def test_what_nodes_may_not_read_stops_nobody(
    cluster: SmallCluster, other: Store, zookeeper: ZooKeeperServer, chroot: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Znodes of each kind that ZooKeeper hides from the nodes are unreadable, which the log says:
    hidden ACLs deny, and what others change and remove beside them is followed, also by the next
    controller and by a node that starts.
    """
    await others_write(other)
    hidden = {
        acls.acl_path(SECRET): acls.encode_acls([ALICE]),
        "/config/users/secret": encode_config(QUOTA),
        "/config/users/secret/clients": None,
        "/config/brokers/2": encode_config({}),
        tokens.token_path("secret"): tokens.encode_token(TOKEN),
        groups.group_path("secret"): None,
        layout.topic_path("secret"): encode_topic(Topic("secret", partitions=(Partition((1,)),))),
    }
    notices = [notification("users/secret"), notice_of(SECRET), notification("users/a/clients/b"), notice_of(ORDERS)]
    connect = zookeeper.connect + chroot
    async with ZooKeeperStore(connect, access=lambda _: CREATOR_ONLY, authentication=[("digest", "m:m")]) as owner:
        await owner.commit([Create(path, data) for path, data in hidden.items()])
    await other.commit([Delete(acls.acl_path(ORDERS)), Delete("/config/users/a/clients/b"), *notices])

    def are_followed() -> bool:
        return all(
            each.acls.get(SECRET) == AclEntries(version=UNREADABLE)
            and each.configs.get("users/secret") == EntityConfigs(NO_CONFIGS, UNREADABLE)
            and set(each.tokens) == {"id"}
            and ORDERS not in each.acls
            and "users/a/clients/b" not in each.configs
            for each in (node.cache.image for node in all_nodes(cluster))
        )

    await cluster.until(are_followed)
    await cluster.kill(3)
    await cluster.start(3)
    await cluster.elect_anew()
    await cluster.until(are_followed)
    await cluster.until(lambda: "secret" in cluster.controller.image.topics)
    names = [path.removeprefix("/config/") for path in hidden]
    assert all(any(name in line and "hides it" in line for line in caplog.messages) for name in names)
    assert await cluster.create("t") == [ErrorCode.NONE]
    assert await cluster.delete("secret") == [ErrorCode.NONE]
    await cluster.until(lambda: set(cluster.controller.image.topics) == {"t"})


LONG = "n" * 40_000
"""A text that is longer than those of Kafka's messages."""


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (f"/kafka-acl/Topic/{LONG}", acls.encode_acls([ALICE])),
        ("/kafka-acl/Topic/t", acls.encode_acls([msgspec.structs.replace(ALICE, principal=f"User:{LONG}")])),
        ("/kafka-acl/Topic/t", acls.encode_acls([msgspec.structs.replace(ALICE, host=LONG)])),
        (f"/config/users/{LONG}", encode_config(QUOTA)),
        ("/config/users/u", encode_config({LONG: "1"})),
        (f"{groups.ROOT}/g/t-0", b'[1,0,1,"%s","AAAAAAAAAAAAAAAAAAAAAA"]' % LONG.encode()),
        (f"{groups.ROOT}/g", b'{"version":2,"group":"%s"}' % LONG.encode()),
        (f"{tokens.ROOT}/id", tokens.encode_token(msgspec.structs.replace(TOKEN, owner=f"User:{LONG}"))),
    ],
    ids=["resource", "principal", "host", "user", "config", "metadata", "group", "owner"],
)
def test_what_no_response_can_carry_is_unreadable(path: str, data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """A text that another program has stored and that Kafka's messages cannot hold spoils no
    answer about what lies beside it: its znode is none, or known to be unreadable.
    """
    entity = decoded(path, Entry(data, Stat(0, 1, 1, 0)))
    assert entity is None or is_unreadable(entity)
    (record,) = caplog.records
    assert len(record.getMessage()) < 500


@in_both_worlds
async def test_a_lost_session_misses_nothing(cluster: SmallCluster, world: World, other: Store) -> None:
    """What changed while a node had no session, and is not notified any more, is in force when the
    node is registered again.
    """
    member = cluster.members[3]
    await world.suspend(member.store)
    await others_write(other)
    for root in ("/config/changes", acls.LITERAL_CHANGES, acls.EXTENDED_CHANGES, tokens.CHANGES):
        for name in await other.children(root):
            await other.commit([Delete(f"{root}/{name}")])
    await world.resume(member.store)
    await cluster.expire(3)
    await cluster.until(lambda: member.node.epoch.is_registered)
    assert in_force(member.node) == OTHERS_WROTE


async def test_listeners_hear_what_changed(cluster: SmallCluster, autojump_clock: object) -> None:
    """A listener is told what has changed, once, with the image that shows it."""
    await write(cluster, of_acls(ORDERS, ALICE))
    heard: list[tuple[set[str], bool]] = []

    def hear(_before: Image, after: Image, changes: ImageChanges) -> None:
        if changes.entities:
            heard.append((set(changes.entities), ORDERS in after.acls))

    cluster.members[2].node.cache.on_change(hear)
    await write(cluster, of_acls(ORDERS), of_configs("clients/c", QUOTA))
    await write(cluster, of_token(TOKEN))
    await trio.sleep(5)
    assert heard == [({acls.acl_path(ORDERS), "/config/clients/c"}, False), ({tokens.token_path("id")}, False)]


async def test_a_listener_that_fails_hinders_nobody(
    cluster: SmallCluster, caplog: pytest.LogCaptureFixture, autojump_clock: object
) -> None:
    """A defect of one listener is logged without the text of its exception, which may quote a
    secret, and the others hear of the change.
    """
    cache, heard = cluster.members[2].node.cache, list[str]()

    def fail(before: Image, after: Image, _changes: ImageChanges) -> None:
        if after.acls is not before.acls:
            raise ValueError("planted secret")

    cache.on_change(fail)
    cache.on_change(lambda _before, _after, changes: heard.extend(changes.entities))
    await write(cluster, of_acls(ORDERS, ALICE))
    assert heard == [acls.acl_path(ORDERS)]
    assert "ValueError at" in caplog.text
    assert "planted" not in caplog.text


async def test_the_index_follows_the_acls(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """A node's index allows what the ACLs allow; where they cannot be read, it allows nothing."""
    read = 1 << AclOperation.READ
    index = cluster.members[3].node.security.acl_index

    def allowed() -> int:
        return index.allowed_to("User:alice", "10.0.0.9", AclResourceType.TOPIC, ["orders"])[0] & read

    assert not allowed()
    await write(cluster, of_acls(ORD, ALICE))
    assert allowed()
    await write(cluster, of_acls(ORDERS, BOB))
    assert allowed()
    await other.commit([SetData(acls.acl_path(ORDERS), b"garbage"), notice_of(ORDERS)])
    await cluster.until(lambda: not allowed())
    await other.commit([Delete(acls.acl_path(ORDERS)), notice_of(ORDERS)])
    await cluster.until(lambda: bool(allowed()))
    await write(cluster, of_acls(ORD))
    assert not allowed()


async def test_credentials_follow_the_configs(
    cluster: SmallCluster, caplog: pytest.LogCaptureFixture, autojump_clock: object
) -> None:
    """A user's SCRAM credentials are found by the user's name, whatever it is; one that cannot be
    read is none, and no log has its text.
    """
    security = cluster.members[2].node.security
    kept = derived_credential("SCRAM-SHA-256", "password")
    configs = {"SCRAM-SHA-256": credential_text(kept), "SCRAM-SHA-512": "salt=unreadable", **QUOTA}
    await write(cluster, of_configs(user_path("ü/é<default>"), configs))
    assert security.scram_credential("ü/é<default>", "SCRAM-SHA-256") == kept
    assert security.scram_credential("ü/é<default>", "SCRAM-SHA-512") is None
    assert security.scram_credential("<default>", "SCRAM-SHA-256") is None
    assert "cannot be used" in caplog.text
    assert "salt=" not in caplog.text
    await write(cluster, of_configs(user_path("ü/é<default>"), QUOTA))
    assert security.scram_credential("ü/é<default>", "SCRAM-SHA-256") is None
