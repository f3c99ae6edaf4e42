"""The elected controller as a whole: what it does when it loses its place, and what it makes of
what it finds.
"""

import logging

import pytest
import trio
import trio.testing

from minicontroller.cluster.entities import NO_TOPIC_ID
from minicontroller.cluster.znodes.topics import decode_topic
from minicontroller.controller.node.cluster_paths import prepare
from minicontroller.store.base import Create, SetData, Store
from minicontroller.store.memory import MemoryStore
from tests.handlers.ruling import ruling
from tests.store.worlds import MemoryWorld
from tests.support.small_cluster import SmallCluster


async def test_a_raised_epoch_ends_the_term_and_not_the_node(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """K590-2c: a controller that finds the epoch raised by another one answers NOT_CONTROLLER,
    resigns, and stands for election again.
    """
    before = cluster.controller
    await other.commit([SetData("/controller_epoch", b"7")])
    assert await cluster.create("t") == [41]
    await cluster.until_quiet()
    assert cluster.controller is not before
    assert cluster.controller.epoch == 8
    assert await cluster.create("t") == [0]


async def test_an_ended_session_ends_the_term_and_not_the_node(cluster: SmallCluster, autojump_clock: object) -> None:
    """A controller whose session ends is replaced by another node; its own node registers again and
    follows the new controller.
    """
    before = cluster.controller.epoch
    await cluster.expire(1)
    await cluster.until_succeeded(before)
    assert cluster.controller.broker_id != 1
    assert await cluster.create("t", partitions=3, replication_factor=3) == [0]


async def test_what_died_with_its_node_is_offline(cluster: SmallCluster, autojump_clock: object) -> None:
    """Metadata names the replicas that are offline, on every node, also of partitions whose state
    the death did not change.
    """
    await cluster.create("t", partitions=3, replication_factor=3)
    await cluster.kill(3)
    await cluster.until_quiet()
    for broker_id in (1, 2):
        partitions = cluster.seen(broker_id).topics["t"].partitions
        assert [partition.offline_replicas for partition in partitions] == [(3,)] * 3
    await cluster.create("u", partitions=2, replication_factor=2)
    await cluster.start(3)
    await cluster.until_quiet()
    await cluster.until(lambda: all(len(p.isr) == 3 for p in cluster.seen(2).topics["t"].partitions))
    for broker_id in (1, 2, 3):
        partitions = cluster.seen(broker_id).topics["t"].partitions
        assert [partition.offline_replicas for partition in partitions] == [()] * 3


async def test_a_mark_that_was_not_told_is_told_by_the_successor(
    cluster: SmallCluster, memory: MemoryWorld, other: Store, autojump_clock: object
) -> None:
    """K4-D5: the new controller's own node forgets what its predecessor had marked, too, and a
    deletion of it succeeds.
    """
    await cluster.create("t")
    cluster.controller.resign()
    await other.commit([Create("/admin/delete_topics/t")])
    await cluster.until_quiet()
    await cluster.until(lambda: all("t" not in cluster.seen(broker_id).topics for broker_id in (1, 2, 3)))
    await cluster.until(lambda: "/brokers/topics/t" not in memory.tree.nodes)
    assert await cluster.create("t") == [0]


async def test_brokers_that_go_while_the_connection_breaks_are_noticed(
    cluster: SmallCluster, memory: MemoryWorld, autojump_clock: object
) -> None:
    """The list of brokers changes, and the connection is lost before it has been read: it is read
    when it is back.
    """
    controller = cluster.controller
    store = controller.store
    assert isinstance(store, MemoryStore)
    gone = next(broker_id for broker_id in cluster.members if broker_id != controller.broker_id)
    cluster.members[gone].scope.cancel()
    while f"/brokers/ids/{gone}" in memory.tree.nodes:
        await trio.lowlevel.checkpoint()
    memory.tree.suspend(store)
    await trio.testing.wait_all_tasks_blocked()
    memory.tree.resume(store)
    del cluster.members[gone]
    await cluster.until_quiet()
    assert cluster.controller is controller


async def test_a_topic_made_and_marked_in_one_commit_is_deleted(
    cluster: SmallCluster, memory: MemoryWorld, autojump_clock: object
) -> None:
    """A deletion is of a topic, not of a name: the end of one, the birth and the mark of the next
    may share a commit.
    """
    await cluster.create("t")
    async with trio.open_nursery() as clients:
        for _ in range(10):
            clients.start_soon(cluster.delete, "t")
            clients.start_soon(cluster.create, "t")
    await cluster.delete("t")
    await cluster.until(lambda: "/brokers/topics/t" not in memory.tree.nodes)
    assert "t" not in cluster.controller.image.topics


async def test_a_stray_mark_does_not_kill_a_topic_made_later(
    cluster: SmallCluster, memory: MemoryWorld, other: Store, autojump_clock: object
) -> None:
    """A deletion mark for a topic that does not exist, written while there was no controller, is
    removed at the election.
    """
    cluster.controller.resign()
    await other.commit([Create("/admin/delete_topics/ghost")])
    await cluster.until_quiet()
    await cluster.until(lambda: "/admin/delete_topics/ghost" not in memory.tree.nodes)


async def test_marks_are_removed_where_deletion_is_disabled(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """With delete.topic.enable=false, deletion marks that others wrote while there was no
    controller are removed as well.
    """
    cluster = SmallCluster(nursery, memory, settings={"delete.topic.enable": "false"})
    await cluster.start_in_turn(1)
    await cluster.create("t")
    other = await memory.open()
    cluster.controller.resign()
    await other.commit([Create("/admin/delete_topics/t")])
    await cluster.until_quiet()
    await cluster.until(lambda: "/admin/delete_topics/t" not in memory.tree.nodes)
    assert "t" in cluster.seen(1).topics


async def test_old_topics_are_given_ids(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """A topic from before Kafka 2.8, found at the election, gets an id, in the store and
    everywhere.
    """
    cluster.controller.resign()
    await other.commit([Create("/brokers/topics/old", b'{"version":1,"partitions":{"0":[2]}}')])
    await cluster.until_quiet()
    await cluster.until(lambda: all("old" in cluster.seen(broker_id).topics for broker_id in (1, 2, 3)))
    topic_id = cluster.controller.image.topics["old"].topic_id
    assert topic_id != NO_TOPIC_ID
    assert [cluster.seen(broker_id).topics["old"].topic_id for broker_id in (1, 2, 3)] == [topic_id] * 3
    entry = await other.get("/brokers/topics/old")
    assert entry is not None
    assert decode_topic("old", entry.data).topic_id == topic_id


async def test_topics_without_a_live_replica_are_told_to_nobody(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """A partition that never had a leader is on no node's list: not at the controller, not
    elsewhere.
    """
    cluster.controller.resign()
    await other.commit(
        [
            Create("/brokers/topics/nowhere", b'{"version":1,"partitions":{"0":[9]}}'),
            Create("/brokers/topics/half", b'{"version":1,"partitions":{"0":[9],"1":[1]}}'),
        ]
    )
    await cluster.until_quiet()
    await cluster.until(lambda: all("half" in cluster.seen(broker_id).topics for broker_id in (1, 2, 3)))
    for broker_id in (1, 2, 3):
        assert "nowhere" not in cluster.seen(broker_id).topics
        assert [bool(p.replicas) for p in cluster.seen(broker_id).topics["half"].partitions] == [False, True]


async def test_a_node_that_comes_back_forgets_what_was_deleted_meanwhile(
    cluster: SmallCluster, memory: MemoryWorld, autojump_clock: object
) -> None:
    """A session ends and another begins: the first word of the controller is complete, what it does
    not name is gone.
    """
    await cluster.create("kept", "deleted", replication_factor=1)
    other = next(broker_id for broker_id in cluster.members if broker_id != cluster.controller.broker_id)
    cluster.unreachable.add(other)
    deleted = trio.Event()

    async def delete() -> None:
        await cluster.delete("deleted")
        deleted.set()

    async with trio.open_nursery() as clients:
        clients.start_soon(delete)
        await cluster.until(lambda: "deleted" not in cluster.seen(cluster.controller.broker_id).topics)
        cluster.unreachable.discard(other)
        await cluster.expire(other)
        await deleted.wait()
    await cluster.until_quiet()
    await cluster.until(lambda: set(cluster.seen(other).topics) == {"kept"})


async def test_requests_that_wait_for_all_nodes_end_with_the_term(
    cluster: SmallCluster, autojump_clock: object
) -> None:
    """K590-2c: a controller that was replaced acknowledges nothing more, and its waiting requests
    end at once.
    """
    other = next(broker_id for broker_id in cluster.members if broker_id != cluster.controller.broker_id)
    cluster.unreachable.add(other)
    codes: list[int] = []

    async def create() -> None:
        codes.extend(await cluster.create("t", timeout_ms=1_000_000))

    async with trio.open_nursery() as clients:
        clients.start_soon(create)
        await cluster.until(lambda: "t" in cluster.controller.image.topics)
        cluster.controller.resign()
        await cluster.until(lambda: bool(codes))
    assert codes == [7]


async def test_a_node_starts_although_the_connection_breaks(memory: MemoryWorld, autojump_clock: object) -> None:
    """A store that goes away just when a node begins is waited for; the node does not
    end with it.
    """
    store = MemoryStore(memory.tree)
    memory.tree.suspend(store)
    ids: list[str] = []

    async def start() -> None:
        ids.append(await prepare(store))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(start)
        await trio.testing.wait_all_tasks_blocked()
        assert ids == []
        memory.tree.resume(store)
    assert len(ids[0]) == 22


async def test_a_node_that_is_ended_at_once_logs_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """A node that is ended by a second signal logs the end of its controller's term without an
    error.
    """
    caplog.set_level(logging.INFO)
    async with ruling():
        pass
    assert "no longer the controller of epoch 1: its node stopped at once" in caplog.text
    assert "unexpected error" not in caplog.text
