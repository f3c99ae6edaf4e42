"""The queue of the writer: its order, its limit, and jobs whose clients no longer wait."""

from collections.abc import Awaitable, Callable, Sequence

import pytest
import trio
import trio.testing

from minicontroller.cluster.delta import TopicBecomes
from minicontroller.cluster.entities import Topic
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes import layout
from minicontroller.controller.active.jobs import ControllerMoved, Draft, InDoubt, StagedElement
from minicontroller.controller.active.writer import MAX_PLANNED_JOBS, Writer
from minicontroller.store.base import Check, Create
from minicontroller.store.memory import MemoryStore, MemoryTree

FENCE = Check("/controller_epoch", 0)
ROOM = 4

Plan = Callable[[Draft], Awaitable[None]]


class World:
    """A writer with little room, and the names in the order in which they were planned."""

    def __init__(self) -> None:
        self.tree = MemoryTree()
        self.store = MemoryStore(self.tree)
        self.planned: list[str] = []
        self.committed: list[str | None] = []
        self.writer = Writer(self.store, FENCE, Image(), self._committed, room=ROOM)

    def _committed(self, _before: Image, _after: Image, elements: Sequence[StagedElement]) -> None:
        self.committed += [element.topic for element in elements]

    def creating(self, name: str) -> Plan:
        async def plan(draft: Draft) -> None:
            self.planned.append(name)
            draft.stage(TopicBecomes.of(Topic(name=name)), [Create(f"/{name}")])

        return plan

    def looking(self, name: str) -> Plan:
        async def plan(_draft: Draft) -> None:
            self.planned.append(name)

        return plan


@pytest.fixture
async def world() -> World:
    world = World()
    await world.store.commit([Create("/controller_epoch", b"1"), Create("/minicontroller"), Create(layout.COMMITS)])
    return world


async def test_what_was_planned_is_sent_whatever_comes_after_it(world: World, nursery: trio.Nursery) -> None:
    """Jobs that write nothing, of which there is always one more, keep no planned change from the
    store.
    """
    looks = 0

    async def look_again(_draft: Draft) -> None:
        nonlocal looks
        looks += 1
        assert looks <= 2 * MAX_PLANNED_JOBS, "they starve the change before them"
        nursery.start_soon(world.writer.write, look_again)
        await trio.testing.wait_all_tasks_blocked()

    nursery.start_soon(world.writer.write, look_again)
    await trio.testing.wait_all_tasks_blocked()
    async with trio.open_nursery() as writing:
        writing.start_soon(world.writer.run)
        await world.writer.write(world.creating("t"))
        writing.cancel_scope.cancel()
    nursery.cancel_scope.cancel()


async def test_urgent_jobs_pass(world: World, nursery: trio.Nursery) -> None:
    """An election that comes while jobs are planned is the next that is planned."""

    async def plan(_draft: Draft) -> None:
        nursery.start_soon(lambda: world.writer.write(world.looking("election"), urgent=True))
        await trio.testing.wait_all_tasks_blocked()

    async with trio.open_nursery() as jobs:
        jobs.start_soon(world.writer.write, plan)
        await trio.testing.wait_all_tasks_blocked()
        for name in "abc":
            jobs.start_soon(world.writer.write, world.looking(name))
            await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(world.writer.run)
    assert world.planned == ["election", "a", "b", "c"]


async def test_a_job_is_not_begun_when_nobody_waits_for_it_any_more(world: World, nursery: trio.Nursery) -> None:
    """No part of a job is carried out once its client was answered with a timeout or has
    disconnected.
    """
    with trio.move_on_after(0):
        await world.writer.write(world.creating("late"))
    assert len(world.writer.queue) == 0
    nursery.start_soon(world.writer.run)
    await world.writer.write(world.creating("t"))
    assert world.planned == ["t"]
    assert world.writer.queue.given_up == 1


async def test_a_job_is_carried_out_in_any_case_if_it_is_to_be(world: World, nursery: trio.Nursery) -> None:
    """K4-C6: a job with a timeout of 0 is carried out although its client does not wait."""
    with trio.move_on_after(0):
        await world.writer.write(world.creating("trigger"), in_any_case=True)
    nursery.start_soon(world.writer.run)
    await world.writer.write(world.creating("t"))
    assert world.committed == ["trigger", "t"]


async def test_nothing_comes_of_a_plan_for_which_nobody_waits(world: World, nursery: trio.Nursery) -> None:
    """A job that is given up while it is planned is not sent, and what was planned after it has not
    seen it.
    """
    gate = trio.Event()

    async def slow(draft: Draft) -> None:
        await world.creating("slow")(draft)
        await gate.wait()

    seen: list[list[str]] = []

    async def look(draft: Draft) -> None:
        seen.append(sorted(draft.image.topics))

    async with trio.open_nursery() as jobs:
        nursery.start_soon(world.writer.run)
        jobs.start_soon(world.writer.write, slow)
        await trio.testing.wait_all_tasks_blocked()
        jobs.cancel_scope.cancel()
    gate.set()
    await world.writer.write(look)
    assert (seen, world.committed) == ([[]], [])


async def test_what_was_given_up_in_doubt_is_not_planned_again(world: World) -> None:
    """Elements that were planned but not sent when the connection broke are not carried out later
    if their client has already been answered.
    """

    async def breaking(draft: Draft) -> None:
        await world.creating("unsent")(draft)
        world.tree.suspend(world.store)

    async with trio.open_nursery() as jobs:
        jobs.start_soon(world.writer.write, breaking)
        with pytest.raises(InDoubt):
            await world.writer.run()
        jobs.cancel_scope.cancel()
    world.tree.resume(world.store)
    world.writer.reset(Image(), 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.writer.run)
        await world.writer.write(world.creating("t"))
        nursery.cancel_scope.cancel()
    assert world.committed == ["t"]


async def test_there_is_room_for_so_many(world: World, nursery: trio.Nursery) -> None:
    """Those beyond wait outside, are called in in their order, and one that leaves makes room;
    urgent ones need none.
    """
    async with trio.open_nursery() as jobs:
        scopes: list[trio.CancelScope] = []

        async def asking(name: str) -> None:
            with trio.CancelScope() as scope:
                scopes.append(scope)
                await world.writer.write(world.looking(name))

        for name in "abcdefgh":
            jobs.start_soon(asking, name)
            await trio.testing.wait_all_tasks_blocked()
        jobs.start_soon(lambda: world.writer.write(world.looking("election"), urgent=True))
        await trio.testing.wait_all_tasks_blocked()
        assert (len(world.writer.queue), world.writer.queue.outside) == (ROOM + 1, 4)
        scopes[1].cancel()
        scopes[6].cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert (len(world.writer.queue), world.writer.queue.outside) == (ROOM + 1, 2)
        nursery.start_soon(world.writer.run)
    assert world.planned == ["election", *"acdefh"]


async def test_whoever_waits_outside_is_told_that_another_rules(world: World) -> None:
    """K590-2b: nothing of it was done, so another controller may be asked."""
    told: list[str] = []

    async def asking(name: str) -> None:
        with pytest.raises(ControllerMoved):
            await world.writer.write(world.looking(name))
        told.append(name)

    async with trio.open_nursery() as jobs:
        for name in "abcdefgh":
            jobs.start_soon(asking, name)
        await trio.testing.wait_all_tasks_blocked()
        world.writer.close(ControllerMoved())
    assert sorted(told) == list("abcdefgh")
    assert world.planned == []
