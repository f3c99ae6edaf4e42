"""What becomes of changes when others write to the same place at the same time: in memory, on a store whose answers take their time, and on
a real ZooKeeper.
"""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from minicontroller.controller.audit import records
from minicontroller.controller.cluster.image import Image, Topic
from minicontroller.controller.cluster.jobs import Draft, Element
from minicontroller.controller.cluster.writer import Writer
from minicontroller.controller.handlers import delete_topics
from minicontroller.controller.policy_runner import PolicyRunner
from minicontroller.controller.store import layout
from minicontroller.controller.store.base import Check, Create, Delete, SetData, Store
from minicontroller.controller.store.memory import MemoryTree
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.cluster.small_cluster import BROKER, SmallCluster, context_for
from tests.cluster.three_worlds import KINDS, LEFTOVER, TravellingStore, configs_in, opened
from tests.rules.reading import rules
from tests.store.worlds import MemoryWorld, World


@pytest.fixture(name="world", params=KINDS)
async def world_fixture(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with opened(request) as world:
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
