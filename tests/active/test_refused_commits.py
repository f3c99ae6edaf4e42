"""The elements of a commit that the store refuses, and those that were planned behind it."""

import sys
from pathlib import Path
from typing import Any

import trio

from minicontroller.admin.recording import records
from minicontroller.cluster.delta import NO_CHANGE, TopicBecomes, TopicDelta
from minicontroller.cluster.entities import NO_TOPIC_ID, Topic
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes import layout
from minicontroller.controller.active.jobs import Draft, StagedElement
from minicontroller.controller.active.writer import Writer
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.store.base import Check, Create, Delete, SetData, Store, StoreError
from minicontroller.store.memory import MemoryTree
from tests.store.worlds import MemoryWorld, TravellingStore
from tests.support.small_cluster import SmallCluster


async def a_writer(nursery: trio.Nursery) -> tuple[Writer, Store]:
    store = TravellingStore(MemoryTree())
    for path in ("/controller_epoch", layout.COMMITS, "/topics", "/shared"):
        await store.ensure(path)
    writer = Writer(store, Check("/controller_epoch", 0), Image(), lambda *_told: None)
    nursery.start_soon(writer.run)
    return writer, store


def creation(name: str, draft: Draft) -> StagedElement:
    return draft.stage(TopicBecomes.of(Topic(name=name)), [Create(f"/topics/{name}")])


async def test_the_order_is_kept_behind_a_refusal(nursery: trio.Nursery) -> None:
    """Two commits are in flight and the first is refused: the second takes effect after what is
    left of the first.
    """
    writer, store = await a_writer(nursery)
    await store.commit([Create("/topics/a")])

    async def first(draft: Draft) -> None:
        creation("a", draft)
        draft.stage(NO_CHANGE, [SetData("/shared", b"first")])

    async def second(draft: Draft) -> None:
        draft.stage(NO_CHANGE, [SetData("/shared", b"second")])

    async with trio.open_nursery() as clients:
        clients.start_soon(writer.write, first)
        while not writer.in_flight:
            await trio.lowlevel.checkpoint()
        clients.start_soon(writer.write, second)
    entry = await store.get("/shared")
    assert entry is not None
    assert entry.data == b"second"


async def test_what_others_take_back_refuses_nothing(nursery: trio.Nursery) -> None:
    """If another program writes where a commit is about to and undoes it at once, the element is
    planned again and takes effect.
    """
    store = TravellingStore(MemoryTree())
    for path in ("/controller_epoch", layout.COMMITS, "/topics", "/topics/a"):
        await store.ensure(path)

    async def taken_back(_image: Image, error: StoreError) -> list[StagedElement]:
        assert error.path == "/topics/a"
        await store.commit([Delete(error.path)])
        return []

    fence = Check("/controller_epoch", 0)
    writer = Writer(store, fence, Image(), lambda *_told: None, reread=taken_back)
    nursery.start_soon(writer.run)

    async def plan(draft: Draft) -> StagedElement:
        return creation("a", draft)

    assert (await writer.write(plan)).refusal is None
    assert "a" in writer.image.topics


async def test_an_element_without_operations_is_settled_once(nursery: trio.Nursery) -> None:
    """An element without operations beside one that the store refuses goes the same way as all."""
    writer, _store = await a_writer(nursery)

    async def plan(draft: Draft) -> list[StagedElement]:
        return [
            draft.stage(TopicDelta("a", NO_TOPIC_ID), [Delete("/topics/a")]),
            draft.stage(TopicDelta("a", NO_TOPIC_ID)),
            draft.decide(),
            creation("b", draft),
        ]

    async def one_more(draft: Draft) -> list[StagedElement]:
        return [creation("c", draft)]

    codes = [each.refusal and each.refusal.code for each in await writer.write(plan)]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, None]
    assert set(writer.image.topics) == {"b"}
    (element,) = await writer.write(one_more)
    assert element.refusal is None


async def test_a_refusal_is_told_when_what_it_rests_on_is_safe(nursery: trio.Nursery) -> None:
    """K590-2a: a decision that writes nothing is behind what it saw, and behind the fence."""
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


async def test_a_refused_commit_compares_images_once(
    memory: MemoryWorld, other: Store, nursery: trio.Nursery, tmp_path: Path
) -> None:
    """With the audit log on, elements planned behind a refused commit are recorded without
    comparing every topic of the cluster for each of them.
    """
    cluster = SmallCluster(nursery, memory, settings={"audit.dir": str(tmp_path)})
    await cluster.start_in_turn(1)
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
