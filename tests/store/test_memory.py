"""What only the memory store has: its tree is shared by hand, and a test may do to a session what a
network would.
"""

import tracemalloc

import pytest
import trio.testing

from minicontroller.store.base import Create, SessionExpired, SessionState, StoreUnavailable
from minicontroller.store.memory import MemoryStore, MemoryTree
from tests.store.worlds import Watcher


async def test_a_lost_reply_leaves_the_commit_in_force() -> None:
    """lose_reply: the next commit raises StoreUnavailable and suspends the session, but it has
    taken effect.
    """
    tree = MemoryTree()
    store, other = MemoryStore(tree), MemoryStore(tree)
    tree.lose_reply(store)
    with pytest.raises(StoreUnavailable):
        await store.commit([Create("/a")])
    assert store.session is SessionState.SUSPENDED
    assert await other.children("/") == ["a"]
    tree.resume(store)
    await trio.testing.wait_all_tasks_blocked()
    assert await store.commit([Create("/b")]) == ["/b"]


async def test_a_lost_request_has_no_effect() -> None:
    """lose_request: the next commit raises StoreUnavailable and suspends the session, and nobody
    sees anything of it.
    """
    tree = MemoryTree()
    store, other = MemoryStore(tree), MemoryStore(tree)
    tree.lose_request(store)
    with pytest.raises(StoreUnavailable):
        await store.commit([Create("/a")])
    assert store.session is SessionState.SUSPENDED
    assert await other.children("/") == []
    tree.resume(store)
    await trio.testing.wait_all_tasks_blocked()
    assert await store.commit([Create("/a")]) == ["/a"]


async def test_an_expired_session_answers_nothing_before_the_next_is_told() -> None:
    """Between its end and the news of the next session every call raises SessionExpired, as on
    ZooKeeper.
    """
    tree = MemoryTree()
    store = MemoryStore(tree)
    await store.commit([Create("/e", ephemeral=True)])
    tree.expire(store)
    with pytest.raises(SessionExpired):
        await store.commit([Create("/e", ephemeral=True)])
    await trio.testing.wait_all_tasks_blocked()
    assert await store.children("/") == []


async def test_the_end_of_a_session_is_one_change_for_others() -> None:
    """All ephemeral znodes of a session are deleted in one transaction, with one event each."""
    tree = MemoryTree()
    store, other = MemoryStore(tree), MemoryStore(tree)
    await store.commit([Create("/e1", ephemeral=True), Create("/e2", ephemeral=True)])
    zxid = tree.zxid
    watchers = [Watcher(), Watcher(), Watcher()]
    await other.get("/e1", watchers[0])
    await other.get("/e2", watchers[1])
    await other.children("/", watchers[2])
    async with store:
        pass
    await trio.testing.wait_all_tasks_blocked()
    assert [len(watcher.events) for watcher in watchers] == [1, 1, 1]
    assert tree.zxid == zxid + 1


async def test_a_commit_needs_no_turn_of_the_loop() -> None:
    """A commit's result is there when the call returns: thousands of creates a second
    depend on it.
    """
    store = MemoryStore(MemoryTree())
    await store.commit([Create("/t")])
    with pytest.raises(StopIteration) as done:
        store.commit([Create("/t/a"), Create("/t/a/b")]).send(None)
    assert done.value.value == ["/t/a", "/t/a/b"]


async def test_a_znode_costs_little_memory() -> None:
    """A topic's worth of znodes takes well under a kilobyte each, so that an embedded cluster stays
    small.
    """
    store = MemoryStore(MemoryTree())
    await store.commit([Create("/t")])
    tracemalloc.start()
    for i in range(1000):
        await store.commit(
            [Create(f"/t/topic-{i}"), Create(f"/t/topic-{i}/partitions"), Create(f"/t/topic-{i}/partitions/0")]
        )
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size / 3000 < 600
