"""What becomes of changes when others write to the same place at the same time: in memory, on a store whose answers take their time, and on
a real ZooKeeper.
"""

import sys
from collections.abc import AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from minicontroller.controller.audit import records
from minicontroller.controller.cluster.image import NO_TOPIC_ID, Image, Partition, Topic
from minicontroller.controller.cluster.jobs import Draft, Element
from minicontroller.controller.cluster.writer import Writer
from minicontroller.controller.handlers import delete_topics
from minicontroller.controller.policy_runner import PolicyRunner
from minicontroller.controller.store import layout
from minicontroller.controller.store.base import Check, Create, Delete, Operation, Result, SetData, Store
from minicontroller.controller.store.memory import MemoryStore, MemoryTree
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.cluster.small_cluster import BROKER, SmallCluster, context_for
from tests.rules.reading import rules
from tests.store.worlds import MemoryWorld, World, zookeeper_world
from tests.support.zookeeper import ZooKeeperServer

PATIENCE_SECONDS = 20.0
LEFTOVER = b'{"version":1,"config":{"segment.ms":"7"}}'


class TravellingStore(MemoryStore):
    """Commits take effect at once, and their answers are on their way for some turns of the loop: two can be in flight."""

    @property
    def commits_at_once(self) -> bool:
        return False

    def commit(self, operations: Sequence[Operation]) -> Coroutine[Any, Any, list[Result]]:
        return self._later(super().commit(operations))

    async def _later(self, answer: Coroutine[Any, Any, list[Result]]) -> list[Result]:
        try:
            for _ in range(5):
                await trio.lowlevel.checkpoint()
        except trio.Cancelled:
            answer.close()
            raise
        return await answer


class TravellingWorld(MemoryWorld):
    async def open(self) -> Store:
        return TravellingStore(self.tree)


@pytest.fixture(name="world", params=["memory", "travelling", "zookeeper"])
async def world_fixture(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    match request.param:
        case "memory":
            yield MemoryWorld()
        case "travelling":
            yield TravellingWorld()
        case _:
            server: ZooKeeperServer = request.getfixturevalue("zookeeper")
            chroot = "/" + "".join(c if c.isalnum() else "-" for c in request.node.name)
            async with zookeeper_world(server, chroot) as world:
                yield world


@pytest.fixture(name="cluster")
async def cluster_fixture(world: World, nursery: trio.Nursery) -> SmallCluster:
    cluster = SmallCluster(nursery, world)
    await cluster.start(1)
    await cluster.until_quiet()
    return cluster


@pytest.fixture(name="other")
async def other_fixture(world: World) -> Store:
    """Somebody else's session."""
    return await world.open()


async def configs_in(store: Store, path: str) -> dict[str, str]:
    await store.sync()
    entry = await store.get(f"/config/{path}")
    assert entry is not None
    return dict(layout.decode_config(entry.data))


async def test_a_refused_commit_does_not_come_back(cluster: SmallCluster, other: Store) -> None:
    """What was acknowledged last is what is in the store and what the node shows, however often commits before it are refused."""
    await cluster.create("t")
    for number in range(20):
        await other.commit([Create(layout.topic_config_path(f"left-{number}"), LEFTOVER)])
        async with trio.open_nursery() as clients:
            clients.start_soon(cluster.create, f"left-{number}")
            clients.start_soon(cluster.change_config, "t", "retention.ms", str(2 * number))
            for _ in range(50):
                if not cluster.controller.writer.in_flight:
                    await trio.lowlevel.checkpoint()
            clients.start_soon(cluster.change_config, "t", "retention.ms", str(2 * number + 1))
        image = cluster.controller.image
        assert await configs_in(other, "topics/t") == dict(image.topics["t"].configs)
        assert await configs_in(other, f"topics/left-{number}") == {}
        assert f"left-{number}" in image.topics


@pytest.mark.parametrize("name", ["1", ""])
async def test_concurrent_changes_of_different_keys_all_survive(cluster: SmallCluster, other: Store, name: str) -> None:
    """Of one broker, or of the cluster default: the first of them at the same time makes the znode, and none is lost."""
    codes: list[int] = []

    async def change(number: int) -> None:
        codes.append(await cluster.change_config(name, f"my.key.{number}", str(number), resource_type=BROKER))

    async with trio.open_nursery() as clients:
        for number in range(60):
            clients.start_soon(change, number)
    assert codes == [ErrorCode.NONE] * 60
    found = await configs_in(other, f"brokers/{name or layout.DEFAULT_ENTITY}")
    assert found == {f"my.key.{number}": str(number) for number in range(60)}


async def test_configs_that_others_write_are_kept(cluster: SmallCluster, other: Store) -> None:
    """A tool that writes to ZooKeeper without a notification is not overwritten: the change is decided upon what it wrote."""
    await cluster.create("t")
    await cluster.change_config("1", "my.key", "1", resource_type=BROKER)
    for path in ("topics/t", "brokers/1"):
        await other.commit([SetData(f"/config/{path}", LEFTOVER)])
    assert await cluster.change_config("t", "retention.ms", "5") == ErrorCode.NONE
    assert await cluster.change_config("1", "your.key", "2", resource_type=BROKER) == ErrorCode.NONE
    assert await configs_in(other, "topics/t") == {"segment.ms": "7", "retention.ms": "5"}
    assert await configs_in(other, "brokers/1") == {"segment.ms": "7", "your.key": "2"}


async def test_a_topic_without_configs_can_be_altered(cluster: SmallCluster, other: Store) -> None:
    """The znode of its configs is gone, or never was: it is made, as Kafka makes it."""
    await cluster.create("t")
    await other.commit([Delete(layout.topic_config_path("t"))])
    assert await cluster.change_config("t", "retention.ms", "5") == ErrorCode.NONE
    assert await configs_in(other, "topics/t") == {"retention.ms": "5"}
    assert await cluster.change_config("t", "retention.ms", "6") == ErrorCode.NONE
    assert await configs_in(other, "topics/t") == {"retention.ms": "6"}


async def test_a_topic_that_others_have_marked_is_waited_for(cluster: SmallCluster, other: Store) -> None:
    """K4-D3: whoever was faster, by ZooKeeper, the deletion is the same, and no error."""
    await cluster.create("t", "u")
    await other.commit([Create(layout.delete_topic_path("t"))])
    assert await cluster.delete("t", "u") in ([ErrorCode.NONE] * 2, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0])
    assert set(cluster.seen(1).topics) == set()


async def test_a_topic_that_others_grow_is_grown_from_there(cluster: SmallCluster, other: Store) -> None:
    """The topic's znode is written upon the version that was read: partitions of others keep their replicas, and get leaders."""
    await cluster.create("t")
    topic = cluster.controller.image.topics["t"]
    theirs = layout.encode_topic(topic.with_partitions({1: topic.partitions[0]}))
    await other.commit([SetData(layout.topic_path("t"), theirs)])
    assert await cluster.grow("t", 2) == ErrorCode.INVALID_PARTITIONS
    assert await cluster.grow("t", 4) == ErrorCode.NONE
    await cluster.until(lambda: cluster.controller.image.topics["t"].is_complete)
    entry = await other.get(layout.topic_path("t"))
    assert entry is not None
    assert len(layout.decode_topic("t", entry.data).partitions) == 4


async def test_a_topic_that_others_made_exists(cluster: SmallCluster, other: Store) -> None:
    """K4-C8: made by ZooKeeper a moment ago, it is answered like any other that exists, and its neighbours are made."""
    await cluster.create("t")
    data = layout.encode_topic(cluster.controller.image.topics["t"])
    await other.commit([Create(layout.topic_path("u"), data)])
    assert await cluster.create("u", "v") == [ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NONE]


# ------------------------------------------------------------------ the writer alone


async def a_writer(nursery: trio.Nursery) -> tuple[Writer, Store]:
    store = TravellingStore(MemoryTree())
    for path in ("/controller_epoch", layout.COMMITS, "/topics", "/shared"):
        await store.ensure(path)
    writer = Writer(store, Check("/controller_epoch", 0), Image(), lambda *_told: None)
    nursery.start_soon(writer.run)
    return writer, store


def creation(name: str, draft: Draft) -> Element:
    return draft.stage(name, [Create(f"/topics/{name}")], evolve=lambda _: Topic(name=name))


async def test_the_order_is_kept_behind_a_refusal(nursery: trio.Nursery) -> None:
    """Two commits are in flight and the first is refused: the second takes effect after what is left of the first."""
    writer, store = await a_writer(nursery)
    await store.commit([Create("/topics/a")])

    async def first(draft: Draft) -> None:
        creation("a", draft)
        draft.stage(None, [SetData("/shared", b"first")])

    async def second(draft: Draft) -> None:
        draft.stage(None, [SetData("/shared", b"second")])

    async with trio.open_nursery() as clients:
        clients.start_soon(writer.write, first)
        while not writer.in_flight:
            await trio.lowlevel.checkpoint()
        clients.start_soon(writer.write, second)
    entry = await store.get("/shared")
    assert entry is not None
    assert entry.data == b"second"


async def test_an_element_without_operations_is_settled_once(nursery: trio.Nursery) -> None:
    """It stands beside one that the store refuses, and goes the same way as all."""
    writer, _store = await a_writer(nursery)

    async def plan(draft: Draft) -> list[Element]:
        return [
            draft.stage("a", [Delete("/topics/a")]),
            draft.stage("a", ()),
            draft.decide(),
            creation("b", draft),
        ]

    codes = [each.refusal and each.refusal.code for each in await writer.write(plan)]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, None]
    assert set(writer.image.topics) == {"b"}
    (element,) = await writer.write(one_more)
    assert element.refusal is None


async def one_more(draft: Draft) -> list[Element]:
    return [creation("c", draft)]


async def test_a_refusal_is_told_when_what_it_rests_on_is_safe(nursery: trio.Nursery) -> None:
    """K590-2: a decision that writes nothing is behind what it saw, and behind the fence."""
    writer, _store = await a_writer(nursery)
    told: list[str] = []

    async def write(name: str, plan: Any) -> None:
        await writer.write(plan)
        told.append(name)

    async def make(draft: Draft) -> None:
        creation("a", draft)

    async def look(draft: Draft) -> None:
        assert "a" in draft.image.topics
        draft.decide()

    async with trio.open_nursery() as clients:
        clients.start_soon(write, "made", make)
        while not writer.in_flight:
            await trio.lowlevel.checkpoint()
        clients.start_soon(write, "seen", look)
    assert told == ["made", "seen"]


# ------------------------------------------------------------------ what a refusal costs


async def test_a_refused_commit_compares_images_once(nursery: trio.Nursery, tmp_path: Path) -> None:
    """With the audit log on, what was planned behind it is told without a look at each topic of the cluster for each of its elements."""
    world = MemoryWorld()
    cluster = SmallCluster(nursery, world, settings={"audit.dir": str(tmp_path)})
    await cluster.start(1)
    await cluster.until_quiet()
    other = await world.open()
    await cluster.create(*(f"t{number}" for number in range(500)))
    await other.commit([Create(layout.topic_path("theirs"), b"{}")])
    compared = 0

    def count(frame: Any, event: str, _argument: object) -> None:
        nonlocal compared
        compared += event == "call" and frame.f_code is records.differs.__code__

    sys.setprofile(count)
    try:
        codes = await cluster.create("theirs", *(f"u{number}" for number in range(100)))
    finally:
        sys.setprofile(None)
    assert codes[0] == ErrorCode.TOPIC_ALREADY_EXISTS and not any(codes[1:])
    assert compared < 1_000
    await cluster.kill(1)


async def test_who_may_not_delete_is_refused_while_the_owner_deletes(cluster: SmallCluster) -> None:
    """Each of two who delete a topic at the same time is judged by himself, whoever is faster; who may, is told of one end (K4-D3)."""
    node = cluster.rulers()[-1].node
    node.policy = PolicyRunner(
        rules=rules(
            "[[rule]]\nname = 'owned'\noperations = 'delete'\ncondition = 'principal in [\"User:owner\", \"User:friend\"]'"
        )
    )
    codes: dict[str, list[int]] = {"owner": [], "friend": [], "stranger": []}

    async def delete(who: str) -> None:
        context = context_for(node, ApiKey.DELETE_TOPICS, 5)
        context.principal = f"User:{who}"
        request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=5_000)
        codes[who].append((await delete_topics.handle(node, context, request)).responses[0].error_code)

    for _ in range(10):
        assert await cluster.create("t") == [0]
        async with trio.open_nursery() as clients:
            for who in codes:
                clients.start_soon(delete, who)
        while "t" in cluster.controller.image.topics:  # noqa: ASYNC110 - its clean-up tells nobody
            await trio.sleep(0.001)
    gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert set(codes["stranger"]) <= {ErrorCode.POLICY_VIOLATION, gone}
    assert ErrorCode.POLICY_VIOLATION in codes["stranger"]
    for one, other in zip(codes["owner"], codes["friend"], strict=True):
        assert {one, other} <= {0, gone} and 0 in {one, other}


# ------------------------------------------------------------------ what others remove, replace and leave behind


async def test_configs_that_were_made_again_are_seen(cluster: SmallCluster, other: Store) -> None:
    """A znode that others delete and make again begins at version 0: what it says counts all the same once they tell of it."""
    await cluster.create("t")
    await cluster.change_config("t", "retention.ms", "5")
    await cluster.change_config("", "my.key", "1", resource_type=BROKER)
    for path in ("topics/t", "brokers/<default>"):
        await other.commit([Delete(f"/config/{path}"), Create(f"/config/{path}", LEFTOVER)])
        data = layout.encode_config_change(path)
        await other.commit([Create(layout.CONFIG_CHANGE_PREFIX, data, sequential=True)])
    image = cluster.controller
    await cluster.until(lambda: dict(image.image.topics["t"].configs) == {"segment.ms": "7"})
    await cluster.until(lambda: dict(image.image.configs["brokers/<default>"].configs) == {"segment.ms": "7"})
    assert await cluster.change_config("t", "retention.ms", "6") == ErrorCode.NONE
    assert await configs_in(other, "topics/t") == {"segment.ms": "7", "retention.ms": "6"}


async def test_a_topic_that_others_removed_is_gone(cluster: SmallCluster, other: Store) -> None:
    """Without a mark, by `deleteall`: nobody is shown it any more, nothing of it is acknowledged, and its name is free."""
    await cluster.start(2)
    await cluster.create("t", "u")
    paths = ["/partitions/0/state", "/partitions/0", "/partitions", ""]
    await other.commit([Delete(layout.topic_path("t") + path) for path in paths])
    await cluster.until(lambda: all("t" not in cluster.seen(broker_id).topics for broker_id in (1, 2)))
    assert set(cluster.controller.image.topics) == {"u"}
    assert await cluster.change_config("t", "retention.ms", "5") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await cluster.create("t") == [ErrorCode.NONE]


async def test_a_topic_that_others_replaced_is_the_same_everywhere(cluster: SmallCluster, other: Store) -> None:
    """With fewer partitions and without an id: every node shows what is there, and it gets an id."""
    await cluster.start(2)
    await cluster.create("t", partitions=3)
    old = cluster.controller.image.topics["t"]
    fewer = replace(old, partitions=old.partitions[:1], topic_id=NO_TOPIC_ID)
    paths = [f"/partitions/{index}{rest}" for index in range(3) for rest in ("/state", "")]
    await other.commit(
        [
            *(Delete(layout.topic_path("t") + path) for path in (*paths, "/partitions", "")),
            Create(layout.topic_path("t"), layout.encode_topic(fewer)),
        ]
    )
    await cluster.change_config("t", "retention.ms", "5")
    await cluster.grow("t", 5)

    def is_settled() -> bool:
        counts = {len(image.topics["t"].partitions) if "t" in image.topics else 0 for image in images()}
        return len(counts) == 1 and counts <= {1, 5}

    def images() -> list[Image]:
        return [cluster.controller.image, cluster.seen(1), cluster.seen(2)]

    await cluster.until(is_settled)
    await cluster.until(lambda: cluster.controller.image.topics["t"].topic_id not in (NO_TOPIC_ID, old.topic_id))


async def test_a_deletion_goes_on_where_others_left_something(cluster: SmallCluster, other: Store) -> None:
    """Kafka deletes recursively: foreign children, however deep, do not keep the name of a topic that was deleted."""
    await cluster.create("t")
    topic = layout.topic_path("t")
    for path in (f"{topic}/foreign", f"{topic}/partitions/0/state/deep", layout.topic_config_path("t") + "/foreign"):
        await other.ensure(f"{path}/more")
    assert await cluster.delete("t") == [ErrorCode.NONE]
    await cluster.until(lambda: "t" not in cluster.controller.image.topics)
    await other.sync()
    assert await other.get_many([topic, layout.topic_config_path("t"), layout.delete_topic_path("t")]) == [None] * 3
    assert await cluster.create("t") == [ErrorCode.NONE]


async def test_leftovers_in_a_large_batch(cluster: SmallCluster, other: Store) -> None:
    """A request that takes several commits is planned in as many parts: each meets what others left as a small one does."""
    names = [f"b{number}" for number in range(600)]
    for name in ("b0", "b150", "b599"):
        await other.commit([Create(layout.topic_config_path(name), LEFTOVER)])
    assert await cluster.create(*names, partitions=5, timeout_ms=60_000) == [ErrorCode.NONE] * 600
    assert await configs_in(other, "topics/b599") == {}


async def test_configs_that_cannot_be_read_are_not_wiped_out(cluster: SmallCluster, other: Store) -> None:
    """A change is refused that would write over what others wrote and nobody can read; deleted or mended, it goes on."""
    await cluster.create("t")
    await cluster.change_config("", "my.key", "1", resource_type=BROKER)
    for path in ("topics/t", "brokers/<default>"):
        await other.commit([SetData(f"/config/{path}", b'{"config":{"retention.ms":5}}')])
    assert await cluster.change_config("t", "retention.ms", "6") == ErrorCode.INVALID_CONFIG
    assert await cluster.change_config("", "my.key", "2", resource_type=BROKER) == ErrorCode.INVALID_CONFIG
    for path in ("topics/t", "brokers/<default>"):
        await other.commit([SetData(f"/config/{path}", LEFTOVER)])
        data = layout.encode_config_change(path)
        await other.commit([Create(layout.CONFIG_CHANGE_PREFIX, data, sequential=True)])
    image = cluster.controller
    await cluster.until(lambda: dict(image.image.topics["t"].configs) == {"segment.ms": "7"})
    await cluster.until(lambda: dict(image.image.configs["brokers/<default>"].configs) == {"segment.ms": "7"})
    assert await cluster.change_config("t", "retention.ms", "6") == ErrorCode.NONE


async def test_topics_of_others_that_are_not_whole(cluster: SmallCluster, other: Store) -> None:
    """One without partitions cannot grow, and says so; one whose replicas are all offline can."""
    await cluster.create("t")
    offline = Topic("offline", b"o" * 16, (Partition(replicas=(7,)),))
    await other.commit([Create(layout.topic_path("empty"), b'{"version":1,"partitions":{}}')])
    await other.commit([Create(layout.topic_path("offline"), layout.encode_topic(offline))])
    await cluster.until(lambda: {"empty", "offline"} <= set(cluster.controller.image.topics))
    assert await cluster.grow("empty", 2) == ErrorCode.INVALID_PARTITIONS
    assert await cluster.grow("offline", 2, timeout_ms=200) in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)
    await cluster.until(lambda: len(cluster.controller.image.topics["offline"].partitions) == 2)


@pytest.mark.parametrize(
    "path", [layout.DELETE_TOPICS, layout.CONFIG_CHANGES, layout.BROKER_CONFIGS, layout.ISR_CHANGE_NOTIFICATION]
)
async def test_a_parent_that_others_removed_is_made_again(cluster: SmallCluster, other: Store, path: str) -> None:
    """`rmr /admin/delete_topics` and the like: the reign goes on, every change is done, and a successor can rule."""
    await cluster.create("t", "u")
    controller = cluster.controller
    await other.commit([Delete(f"{path}/{child}") for child in await other.children(path)] + [Delete(path)])
    assert await cluster.change_config("t", "retention.ms", "5") == ErrorCode.NONE
    assert await cluster.change_config("", "my.key", "5", resource_type=BROKER) == ErrorCode.NONE
    assert await cluster.delete("u") == [ErrorCode.NONE]
    assert cluster.controller is controller
    controller.resign()
    await cluster.until_succeeded(controller.epoch)
    await cluster.until_quiet()
    assert await cluster.create("v") == [ErrorCode.NONE]
    assert await cluster.delete("t", "v") == [ErrorCode.NONE] * 2
