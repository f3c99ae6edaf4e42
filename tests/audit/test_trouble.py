"""The audit log when its disk is slow, when connections break during a commit, and when an event
cannot be encoded.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest
import trio

from minicontroller.admin.recording.log import AuditLog, AuditSettings
from minicontroller.admin.recording.recorder import AuditRecorder
from minicontroller.admin.recording.records import EventOrigin
from minicontroller.audit.event import Decision, Dropped, Effect, SnapshotBegin, SnapshotEnd, decode, encode
from minicontroller.audit.replay import Replay
from minicontroller.cluster.entities import Topic
from minicontroller.cluster.image import Image
from minicontroller.policies import CreateTopicRequest, TopicManagementPolicy
from minicontroller.policies.interface import ClusterState
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.store.base import SessionState
from minicontroller.store.memory import MemoryStore
from tests.audit.logs import CLUSTER, a_creation, a_state, decisions_in, events_in, found, replayed, shown, told
from tests.audit.test_replay import a_cluster, end
from tests.handlers.ruling import Ruling, creating, ruling, wanted
from tests.store.worlds import MemoryWorld
from tests.support.small_cluster import SmallCluster

MANY = 40
PATIENCE_SECONDS = 20.0


def slow(folder: Path, on_failure: str, queue: int) -> Mapping[str, str]:
    """Hardly anything may wait to be written, and all of it waits for a while."""
    return {
        "audit.dir": str(folder),
        "audit.queue.events": str(queue),
        "audit.flush.interval.ms": "500",
        "audit.on.failure": on_failure,
    }


async def create(world: Ruling, name: str) -> tuple[int, str]:
    (row,) = (await world.ask(creating(wanted(name, 1, 1)), 7)).topics
    return row.error_code, row.error_message or ""


async def test_a_full_queue_refuses(tmp_path: Path) -> None:
    """`audit.on.failure=refuse`: where too much waits nothing is changed, with a reason, until it
    is written; what was decided is all there.
    """
    async with ruling(slow(tmp_path, "refuse", 10)) as world:
        answers = {f"t{number}": await create(world, f"t{number}") for number in range(MANY)}
        refused = {name: text for name, (code, text) in answers.items() if code == ErrorCode.POLICY_VIOLATION}
        assert 0 < len(refused) < MANY
        assert set(refused.values()) == {"The audit log's queue is full; changes are refused until it has room."}
        with trio.fail_after(PATIENCE_SECONDS):
            while (await create(world, "after"))[0]:  # noqa: ASYNC110 - a client can only ask again
                await trio.sleep(0.05)
        image = world.image
    assert set(image.topics) == answers.keys() - refused.keys() | {"after"}
    assert found(tmp_path) == []
    assert told(replayed(events_in(tmp_path)).topics) == shown(image)


@pytest.mark.parametrize("flush", ["always", "interval"])
async def test_the_open_file_is_removed(tmp_path: Path, flush: str) -> None:
    """`audit.on.failure=refuse`: while the open file is gone nothing is changed, also where nothing
    was to be written; then all of it is there.
    """
    folder = tmp_path / "audit"
    async with ruling({"audit.dir": str(folder), "audit.flush": flush, "audit.flush.interval.ms": "1"}) as world:
        assert await create(world, "before") == (ErrorCode.NONE, "")
        audit = await _flushed(world)
        lost = folder.rename(tmp_path / "elsewhere")
        for file in lost.iterdir():
            file.unlink()
        with trio.fail_after(PATIENCE_SECONDS):
            while audit.refusal is None:  # noqa: ASYNC110 - files tell nobody
                await trio.sleep(0.01)
        code, text = await create(world, "refused")
        assert code == ErrorCode.POLICY_VIOLATION
        assert text.startswith("The audit log cannot be written (")
        folder.mkdir()
        with trio.fail_after(PATIENCE_SECONDS):
            while (await create(world, "after"))[0]:  # noqa: ASYNC110 - a client can only ask again
                await trio.sleep(0.05)
        image = world.image
    assert set(image.topics) == {"before", "after"}
    assert found(folder) == []
    assert told(replayed(events_in(folder)).topics) == shown(image)


async def _flushed(world: Ruling) -> AuditLog:
    assert world.node.audit is not None
    assert await world.node.audit.flush(PATIENCE_SECONDS) == 0
    return world.node.audit


async def test_a_full_queue_drops(tmp_path: Path) -> None:
    """`audit.on.failure=drop`: everything is answered; what found no room is named, and a snapshot
    follows, though it is larger than the queue.
    """
    async with ruling(slow(tmp_path, "drop", 2)) as world:
        for number in range(MANY):
            assert await create(world, f"t{number}") == (ErrorCode.NONE, "")
        with trio.fail_after(PATIENCE_SECONDS):
            while not any(isinstance(event, Dropped) for event in events_in(tmp_path)):  # noqa: ASYNC110 - files tell nobody
                await trio.sleep(0.05)
        image = world.image
    events = events_in(tmp_path)
    dropped = [event for event in events if isinstance(event, Dropped)]
    assert {each.reason for each in dropped} == {"the queue was full"}
    lost = sum(each.last_sequence - each.first_sequence + 1 for each in dropped)
    assert events[-1].sequence == len(events) + lost
    assert set(found(tmp_path)) == {"gap", "dropped"}
    assert any(isinstance(event, SnapshotBegin) and event.reason == "recovered" for event in events)
    replay = Replay()
    for event in events:
        list(replay.apply(event))
    assert told(replay.topics) == shown(image)


async def test_a_commit_whose_answer_was_lost(tmp_path: Path, nursery: trio.Nursery, autojump_clock: object) -> None:
    """After a lost answer the controller reloads its state, and the log records what took effect
    and then a snapshot, without another epoch.
    """
    cluster = await a_cluster(tmp_path, nursery, 1)
    await cluster.create("before")
    await lose_a_reply(cluster, resumes=True)
    await cluster.until_quiet()
    await cluster.create("after")
    image = cluster.controller.image
    await end(cluster)
    events = events_in(tmp_path)
    kinds = [
        (event.name, event.error, event.effect) if isinstance(event, Decision) else event.reason
        for event in events
        if isinstance(event, (Decision, SnapshotBegin))
    ]
    assert kinds == [
        "elected",
        ("before", "NONE", Effect.APPLIED),
        ("t", "NONE", Effect.APPLIED),
        "reread",
        ("after", "NONE", Effect.APPLIED),
    ]
    assert {event.epoch for event in events} == {1}
    assert found(tmp_path) == []
    assert told(replayed(events).topics) == shown(image)


async def test_a_commit_of_which_nobody_knows(tmp_path: Path, nursery: trio.Nursery, autojump_clock: object) -> None:
    """The controller is gone before it can look: the effect is unknown, and the snapshot of the
    next one shows that it took effect.
    """
    cluster = await a_cluster(tmp_path, nursery, 1, 2)
    controller = cluster.controller
    await lose_a_reply(cluster, resumes=False)
    await cluster.kill(controller.broker_id)
    await cluster.until_succeeded(controller.epoch)
    image = cluster.controller.image
    await end(cluster)
    (decision,) = decisions_in(tmp_path)
    assert (decision.name, decision.effect, decision.error) == ("t", Effect.UNKNOWN, "REQUEST_TIMED_OUT")
    assert set(image.topics) == {"t"}
    assert found(tmp_path) == []
    assert told(replayed(events_in(tmp_path)).topics) == shown(image)


async def lose_a_reply(cluster: SmallCluster, *, resumes: bool) -> None:
    """Write topic `t` and drop the answer to the controller."""
    store = cluster.controller.store
    assert isinstance(store, MemoryStore) and isinstance(cluster.world, MemoryWorld)
    cluster.world.tree.lose_reply(store)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cluster.create, "t")
        await cluster.until(lambda: store.session is SessionState.SUSPENDED)
        if resumes:
            cluster.world.tree.resume(store)
        else:
            nursery.cancel_scope.cancel()


class Babbling(TopicManagementPolicy):
    """Fails with what is no Unicode."""

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:
        raise ValueError(f"\udcff is the matter with {request.topic} among {cluster.cluster_size}")


async def test_whatever_a_policy_says(tmp_path: Path) -> None:
    """A policy's text that cannot be encoded is recorded with replacements, and the log goes on."""
    async with ruling({"audit.dir": str(tmp_path)}, policy=Babbling()) as world:
        await world.ask(creating(wanted("t", 1, 1)), 7)
        await world.ask(creating(wanted("a/b", 1, 1)), 7)
    first, second = decisions_in(tmp_path)
    assert first.policy is not None and first.policy.decision == "broken"
    assert (first.policy.message or "").endswith("ValueError: ? is the matter with t among 3\n")
    assert second.error == "INVALID_TOPIC_EXCEPTION"


def test_a_text_that_is_no_unicode() -> None:
    """Text with lone surrogates is recorded with replacements, wherever it stands in the event."""
    event = a_creation(3, "\ud800", message="\udcff", after=a_state(configs={"\ud800": "x"}))
    read = decode(encode(event))
    assert isinstance(read, Decision) and read.after is not None
    assert (read.name, read.message, read.after.configs) == ("?", "?", {"?": "x"})


class Unspeakable(Topic, frozen=True):
    """A topic that raises while an event about it is made."""

    @property
    def is_internal(self) -> bool:
        raise ZeroDivisionError


async def test_an_event_that_cannot_be_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An event that cannot be encoded is replaced by a note, and later events are recorded."""
    log = AuditLog(AuditSettings(folder=tmp_path), cluster_id=CLUSTER, node=1)
    recorder = AuditRecorder(log, EventOrigin(CLUSTER, 1, 1))
    recorder.reloaded(Image())
    recorder.reloaded(Image().with_topics((Unspeakable("bad"),)))
    recorder.reloaded(Image())
    await log.close()
    events = events_in(tmp_path)
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    dropped = [event for event in events if isinstance(event, Dropped)]
    assert dropped and all(each.first_sequence == each.last_sequence == each.sequence for each in dropped)
    assert isinstance(events[-1], SnapshotEnd)
    assert caplog.record_tuples[0][:2] == ("minicontroller.audit", logging.ERROR)
