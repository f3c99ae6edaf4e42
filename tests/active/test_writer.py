"""The one writer, on the embedded store with its faults."""

import math
from collections.abc import Awaitable, Callable, Sequence

import pytest
import trio
import trio.testing

from minicontroller.cluster.delta import NO_CHANGE, TopicBecomes, TopicDelta, TopicMarked, TopicRemoved
from minicontroller.cluster.entities import NO_TOPIC_ID, Broker, Partition, Topic
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes import layout
from minicontroller.controller.active.jobs import ControllerMoved, Draft, InDoubt, StagedElement
from minicontroller.controller.active.writer import Writer
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.store.base import Check, Create, Delete, SessionExpired, SetData
from minicontroller.store.memory import MemoryStore, MemoryTree
from minicontroller.store.sessions import wait_connected

FENCE = Check("/controller_epoch", 0)


class World:
    """A writer on a memory tree, with the changes that it reported."""

    def __init__(self) -> None:
        self.tree = MemoryTree()
        self.store = MemoryStore(self.tree)
        self.committed: list[list[str | None]] = []
        self.writer = Writer(self.store, FENCE, Image(), self._committed)

    async def count(self) -> int:
        await wait_connected(self.store)
        entry = await self.store.get(layout.COMMITS)
        assert entry is not None
        return entry.stat.version

    def _committed(self, _before: Image, _after: Image, elements: Sequence[StagedElement]) -> None:
        self.committed.append([element.topic for element in elements])


@pytest.fixture
async def world() -> World:
    world = World()
    await world.store.commit(
        [
            Create("/controller_epoch", b"1"),
            Create("/minicontroller"),
            Create(layout.COMMITS),
            Create("/topics"),
            Create("/config"),
            Create("/config/topics"),
        ]
    )
    return world


def creation(name: str, draft: Draft, size: int = 1, topic_id: bytes = b"") -> StagedElement:
    topic_id = topic_id or name.encode().ljust(16, b"\0")
    topic = Topic(name=name, topic_id=topic_id, partitions=(Partition(replicas=(1,)),))
    operations = [Create(f"/topics/{name}")] + [Create(f"/topics/{name}/{i}", b"x" * 1000) for i in range(size)]
    return draft.stage(TopicBecomes.of(topic), operations)


def creating(*names: str, size: int = 1) -> Callable[[Draft], Awaitable[list[StagedElement]]]:
    async def plan(draft: Draft) -> list[StagedElement]:
        return [creation(name, draft, size) for name in names]

    return plan


async def test_a_change_is_in_the_store_and_the_image_when_write_returns(world: World, nursery: trio.Nursery) -> None:
    """When write returns, the plan is committed and the image contains it."""
    nursery.start_soon(world.writer.run)
    await world.writer.write(creating("a", "b"))
    assert set(world.writer.image.topics) == {"a", "b"}
    assert await world.store.children("/topics") == ["a", "b"]


async def test_jobs_that_wait_share_a_commit(world: World, nursery: trio.Nursery) -> None:
    """Group commit: what has gathered before the writer looks is one transaction."""
    async with trio.open_nursery() as jobs:
        for name in "abcdef":
            jobs.start_soon(world.writer.write, creating(name))
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(world.writer.run)
    assert len(world.committed) == 1
    assert sorted(str(topic) for topic in world.committed[0]) == list("abcdef")


async def test_a_job_sees_what_was_planned_before_it(world: World, nursery: trio.Nursery) -> None:
    """A job sees what was planned before it within the same commit, too, so that nothing can be
    created twice by asking twice at once.
    """
    seen: list[list[str]] = []

    async def look(draft: Draft) -> None:
        seen.append(sorted(draft.image.topics))

    async with trio.open_nursery() as jobs:
        nursery.start_soon(world.writer.run)
        jobs.start_soon(world.writer.write, creating("a"))
        await trio.testing.wait_all_tasks_blocked()
        jobs.start_soon(world.writer.write, look)
    assert seen == [["a"]]


async def test_an_element_that_the_store_refuses_falls_alone(world: World, nursery: trio.Nursery) -> None:
    """K4-2: an element that the store refuses fails with its reason, and the other elements of the
    commit take effect.
    """
    await world.store.commit([Create("/topics/b")])
    nursery.start_soon(world.writer.run)
    elements = await world.writer.write(creating("a", "b", "c"))
    assert [element.refusal and element.refusal.code for element in elements] == [
        None,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        None,
    ]
    assert set(world.writer.image.topics) == {"a", "c"}


async def test_a_plan_that_fails_harms_nobody_else(world: World, nursery: trio.Nursery) -> None:
    """A failed plan's error is its caller's, nothing of it is written, and the writer goes on."""

    async def broken(draft: Draft) -> None:
        creation("half", draft)
        raise ValueError("a bug")

    nursery.start_soon(world.writer.run)
    with pytest.raises(ValueError, match="a bug"):
        await world.writer.write(broken)
    await world.writer.write(creating("a"))
    assert await world.store.children("/topics") == ["a"]


async def test_a_job_larger_than_a_commit_is_divided_between_topics(world: World, nursery: trio.Nursery) -> None:
    """No commit exceeds the store's limit, and no topic is divided that fits in one."""
    nursery.start_soon(world.writer.run)
    await world.writer.write(creating(*(f"t{i}" for i in range(30)), size=100))
    assert len(world.writer.image.topics) == 30
    assert len(world.committed) > 1


async def test_a_topic_larger_than_a_commit_takes_several(world: World, nursery: trio.Nursery) -> None:
    """A topic larger than a commit counts as done when its last part is committed."""
    nursery.start_soon(world.writer.run)
    await world.writer.write(creating("huge", size=2000))
    assert len(await world.store.children("/topics/huge")) == 2000
    assert "huge" in world.writer.image.topics


async def test_the_fence_stops_everything(world: World, nursery: trio.Nursery) -> None:
    """K590-2c: after another election nothing is written, and callers learn that nothing was."""
    await world.store.commit([SetData("/controller_epoch", b"2")])
    ended: list[str] = []
    nursery.start_soon(expect_moved, world, ended, "in flight")
    with pytest.raises(ControllerMoved):
        await world.writer.run()
    nursery.start_soon(expect_moved, world, ended, "waiting")
    await trio.testing.wait_all_tasks_blocked()
    world.writer.close(ControllerMoved())
    await expect_moved(world, ended, "late")
    await trio.testing.wait_all_tasks_blocked()
    assert sorted(ended) == ["in flight", "late", "waiting"]
    assert await world.store.children("/topics") == []


async def test_an_expired_session_stops_everything(world: World, nursery: trio.Nursery) -> None:
    """The ephemeral place is gone with it, and so is the right to write."""

    async def expire(draft: Draft) -> None:
        creation("in flight", draft)
        world.tree.expire(world.store)

    async def job() -> None:
        with pytest.raises(ControllerMoved):
            await world.writer.write(expire)

    world.writer._turn._ends = math.inf  # as soon as other tasks run, the store opens a new session
    nursery.start_soon(job)
    with pytest.raises(SessionExpired):
        await world.writer.run()
    world.writer.close(ControllerMoved())
    await trio.testing.wait_all_tasks_blocked()
    assert "in flight" not in world.writer.image.topics


async def test_a_lost_answer_is_settled_by_reading(world: World, nursery: trio.Nursery) -> None:
    """A commit whose answer is lost is neither success nor failure until the store has been read
    again.
    """
    world.tree.lose_reply(world.store)
    done: list[list[StagedElement]] = []

    async def job() -> None:
        done.append(await world.writer.write(creating("a")))

    nursery.start_soon(job)
    with pytest.raises(InDoubt):
        await world.writer.run()
    assert not done
    await load_again(world)
    await trio.testing.wait_all_tasks_blocked()
    assert [element.refusal for element in done[0]] == [None]


async def test_what_did_not_take_effect_times_out(world: World, nursery: trio.Nursery) -> None:
    """A commit in doubt that is not found afterwards is answered REQUEST_TIMED_OUT,
    never success.
    """
    done: list[list[StagedElement]] = []

    async def job() -> None:
        done.append(await world.writer.write(creating("a")))

    world.tree.lose_reply(world.store)
    nursery.start_soon(job)
    with pytest.raises(InDoubt):
        await world.writer.run()
    world.tree.resume(world.store)
    world.writer.reset(Image(), await world.count())
    await trio.testing.wait_all_tasks_blocked()
    assert [element.refusal and element.refusal.code for element in done[0]] == [ErrorCode.REQUEST_TIMED_OUT]


async def test_what_another_element_writes_shares_its_outcome(world: World, nursery: trio.Nursery) -> None:
    """A change that is written by another element, and one that rests on a topic which another
    request has marked, did not take effect either if that write was lost.
    """
    done: list[list[StagedElement]] = []

    async def plan(draft: Draft) -> list[StagedElement]:
        made = creation("a", draft)
        return [made, draft.stage(made.delta), draft.stage(TopicMarked("b", NO_TOPIC_ID)), draft.decide()]

    async def job() -> None:
        done.append(await world.writer.write(plan))

    await world.store.commit([Create("/topics/b")])
    world.tree.lose_request(world.store)
    nursery.start_soon(job)
    with pytest.raises(InDoubt):
        await world.writer.run()
    await load_again(world)
    nursery.start_soon(world.writer.run)
    await trio.testing.wait_all_tasks_blocked()
    timed_out = ErrorCode.REQUEST_TIMED_OUT
    assert [each.refusal and each.refusal.code for each in done[0]] == [timed_out, timed_out, timed_out, None]


async def test_nothing_is_sent_while_the_session_is_suspended(world: World, nursery: trio.Nursery) -> None:
    """A change requested while the connection is lost waits for it, and is not in doubt
    afterwards.
    """
    world.tree.suspend(world.store)
    nursery.start_soon(world.writer.run)
    with trio.testing.assert_checkpoints():
        await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(resume_when_blocked, world)
    (element,) = await world.writer.write(creating("a"))
    assert element.refusal is None
    assert await world.store.children("/topics") == ["a"]


async def test_what_was_planned_and_not_sent_is_planned_again(world: World, nursery: trio.Nursery) -> None:
    """A lost connection harms only what was in flight: a job of which nothing was sent is done
    after the reload, by a new plan.
    """
    plans: list[int] = []
    outcomes: dict[str, list[StagedElement]] = {}

    async def many(draft: Draft) -> list[StagedElement]:
        plans.append(len(draft.image.topics))
        return [creation(f"t{i}", draft, size=800) for i in range(6)]  # each fills a commit

    async def first(draft: Draft) -> list[StagedElement]:
        world.tree.lose_reply(world.store)
        return [creation("first", draft, size=300)]  # a full commit would be sent before `many` is planned

    async def job(name: str, plan: Callable[[Draft], Awaitable[list[StagedElement]]]) -> None:
        outcomes[name] = await world.writer.write(plan)

    nursery.start_soon(job, "first", first)
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(job, "many", many)
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(InDoubt):
        await world.writer.run()
    await load_again(world)
    nursery.start_soon(world.writer.run)
    await trio.testing.wait_all_tasks_blocked()
    assert [element.refusal for element in outcomes["first"] + outcomes["many"]] == [None] * 7
    assert len(await world.store.children("/topics")) == 7
    assert plans == [1, 1]


async def test_the_rest_of_a_job_is_sent_after_the_connection_broke(world: World, nursery: trio.Nursery) -> None:
    """When the connection breaks during a batch, only the commit in flight is in doubt; the topics
    after it are created as planned.
    """
    done: list[list[StagedElement]] = []

    async def many(draft: Draft) -> list[StagedElement]:
        elements = [creation(f"t{i}", draft, size=800) for i in range(6)]  # each fills a commit
        world.tree.lose_reply(world.store)
        return elements

    async def job() -> None:
        done.append(await world.writer.write(many))

    nursery.start_soon(job)
    with pytest.raises(InDoubt):
        await world.writer.run()
    world.tree.resume(world.store)
    world.writer.reset(Image(), await world.count())  # as if the lost one had not taken effect
    nursery.start_soon(world.writer.run)
    await trio.testing.wait_all_tasks_blocked()
    codes = [element.refusal and element.refusal.code for element in done[0]]
    assert codes == [ErrorCode.REQUEST_TIMED_OUT, None, None, None, None, None]
    assert set(world.writer.image.topics) == {"t1", "t2", "t3", "t4", "t5"}


async def test_a_plan_that_cannot_read_is_made_again(world: World, nursery: trio.Nursery) -> None:
    """The connection breaks while a plan reads: nothing was done, so it is planned again after the
    reload, and its caller waits.
    """
    attempts: list[str] = []
    done: list[list[StagedElement]] = []

    async def reads(draft: Draft) -> list[StagedElement]:
        attempts.append("")
        if len(attempts) == 1:
            world.tree.suspend(world.store)
        await world.store.get("/topics")
        return [creation("a", draft)]

    async def job() -> None:
        done.append(await world.writer.write(reads))

    nursery.start_soon(job)
    with pytest.raises(InDoubt):
        await world.writer.run()
    await load_again(world)
    nursery.start_soon(world.writer.run)
    await trio.testing.wait_all_tasks_blocked()
    assert len(attempts) == 2
    assert [element.refusal for element in done[0]] == [None]


async def test_brokers_that_come_while_a_plan_is_made_are_not_forgotten(world: World, nursery: trio.Nursery) -> None:
    """A policy may think for seconds: what was adopted meanwhile is what the next plan sees."""
    thinking = trio.Event()
    seen: list[list[int]] = []

    async def slow(draft: Draft) -> list[StagedElement]:
        await thinking.wait()
        return [creation("a", draft)]

    async def look(draft: Draft) -> None:
        seen.append(sorted(draft.image.brokers))

    nursery.start_soon(world.writer.run)
    nursery.start_soon(world.writer.write, slow)
    await trio.testing.wait_all_tasks_blocked()
    world.writer.adopt(world.writer.image.with_brokers([Broker(7)]))
    nursery.start_soon(world.writer.write, look)
    thinking.set()
    await trio.testing.wait_all_tasks_blocked()
    assert seen == [[7]]
    assert sorted(world.writer.image.brokers) == [7]


async def test_whoever_steps_down_finishes_what_he_began(world: World, nursery: trio.Nursery) -> None:
    """`finish`: what was begun is acknowledged, what waits goes to the next controller, and nothing
    new is taken.
    """
    thinking = trio.Event()
    ended: list[str] = []

    async def slow(draft: Draft) -> list[StagedElement]:
        await thinking.wait()
        return [creation("begun", draft)]

    async def begun() -> None:
        (element,) = await world.writer.write(slow)
        assert element.refusal is None
        ended.append("begun")

    async def finish() -> None:
        await world.writer.finish()
        ended.append("finish")

    nursery.start_soon(world.writer.run)
    nursery.start_soon(begun)
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(expect_moved, world, ended, "waiting")
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(finish)
    await trio.testing.wait_all_tasks_blocked()
    await expect_moved(world, ended, "late")
    assert sorted(ended) == ["late", "waiting"]
    thinking.set()
    await trio.testing.wait_all_tasks_blocked()
    assert sorted(ended) == ["begun", "finish", "late", "waiting"]
    assert await world.store.children("/topics") == ["begun"]


async def resume_when_blocked(world: World) -> None:
    await trio.testing.wait_all_tasks_blocked()
    world.tree.resume(world.store)


async def load_again(world: World) -> None:
    """Do what the controller does after InDoubt."""
    world.tree.resume(world.store)
    await wait_connected(world.store)
    found = await world.store.children("/topics")
    world.writer.reset(
        Image().with_topics(
            [
                Topic(name=name, topic_id=name.encode().ljust(16, b"\0"), partitions=(Partition(replicas=(1,)),))
                for name in found
            ]
        ),
        await world.count(),
    )


async def expect_moved(world: World, ended: list[str], name: str) -> None:
    with pytest.raises(ControllerMoved):
        await world.writer.write(creating(name))
    ended.append(name)


async def test_the_image_has_the_transaction_that_created_a_topic(world: World, nursery: trio.Nursery) -> None:
    """It is the czxid of the topic's znode, also if the topic was deleted and created again in one
    commit. The last commit of a topic that takes several does not tell it, and neither does the
    commit of a former topic of that name.
    """

    def deletion(name: str, draft: Draft) -> None:
        operations = [Delete(f"/topics/{name}/0"), Delete(f"/topics/{name}")]
        draft.stage(TopicRemoved(name, NO_TOPIC_ID), operations)

    async def replace(draft: Draft) -> None:
        deletion("a", draft)
        creation("a", draft, topic_id=b"the second topic")

    async def replace_by_a_huge_one(draft: Draft) -> None:
        creation("c", draft)
        deletion("c", draft)
        creation("c", draft, size=2000, topic_id=b"the second topic")

    async def stored(name: str) -> int:
        entry = await world.store.get(f"/topics/{name}")
        assert entry is not None
        return entry.stat.czxid

    nursery.start_soon(world.writer.run)
    await world.writer.write(creating("a", "b"))
    first = await stored("a")
    await world.writer.write(replace)
    await world.writer.write(replace_by_a_huge_one)
    czxids = {name: topic.czxid for name, topic in world.writer.image.topics.items()}
    assert czxids == {"a": await stored("a"), "b": first, "c": -1}
    assert first < czxids["a"]


async def test_a_divided_topic_stands_on_its_beginning(world: World, nursery: trio.Nursery) -> None:
    """Where the first part of a topic too large for one commit is refused, nothing of the others is
    sent, and it falls alone.
    """
    await world.store.commit([Create("/topics/huge")])
    nursery.start_soon(world.writer.run)
    elements = await world.writer.write(creating("before", "huge", "after", size=2000))
    assert [element.refusal and element.refusal.code for element in elements] == [
        None,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        None,
    ]
    assert await world.store.children("/topics/huge") == []
    assert set(world.writer.image.topics) == {"before", "after"}


async def test_a_version_that_is_not_there_any_more_is_told(world: World, nursery: trio.Nursery) -> None:
    """A conditional write on a version that another program has changed is answered
    INVALID_UPDATE_VERSION.
    """
    nursery.start_soon(world.writer.run)

    async def plan(draft: Draft) -> StagedElement:
        return draft.stage(NO_CHANGE, [SetData("/topics", b"", 7)])

    element = await world.writer.write(plan)
    assert element.refusal is not None
    assert element.refusal.code == ErrorCode.INVALID_UPDATE_VERSION


async def test_what_was_built_upon_a_refused_element_is_refused(world: World, nursery: trio.Nursery) -> None:
    """A topic that others made meanwhile is not changed by what was planned for ours: that was
    judged for another topic.
    """
    await world.store.commit([Create("/topics/a"), Create("/topics/b")])

    async def plan(draft: Draft) -> list[StagedElement]:
        return [
            creation("a", draft),
            draft.stage(TopicDelta("a", NO_TOPIC_ID), [SetData("/topics/a", b"grown")]),
            draft.stage(TopicDelta("b", NO_TOPIC_ID), [SetData("/topics/b", b"grown")]),
        ]

    nursery.start_soon(world.writer.run)
    made = await world.writer.write(plan)
    assert [element.refusal and element.refusal.code for element in made] == [
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        None,
    ]
    assert [entry and entry.data for entry in await world.store.get_many(["/topics/a", "/topics/b"])] == [
        None,
        b"grown",
    ]
