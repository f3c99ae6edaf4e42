"""Tests that every store must pass when the connection breaks or the session ends."""

import pytest
import trio
import trio.testing

from minicontroller.store.base import (
    Create,
    Delete,
    SessionExpired,
    SessionState,
    SetData,
    Store,
    StoreError,
    StoreUnavailable,
    WatchEvent,
    ZnodeChange,
)
from tests.store.worlds import PATIENCE_SECONDS, Watcher, World, reaches, settle


async def test_a_store_begins_connected(store: Store) -> None:
    """A store is connected when it is opened, and its session has an id."""
    assert store.session is SessionState.CONNECTED
    assert store.session_id != 0


async def test_nothing_is_answered_while_the_session_is_suspended(world: World, store: Store) -> None:
    """Every call fails at once with StoreUnavailable, and none takes effect later."""
    await store.commit([Create("/a")])
    await world.suspend(store)
    commit = store.commit([Create("/never")])
    answers: list[StoreError | int] = []
    store.send([Create("/never")], answers.append)
    assert [type(answer) for answer in answers] == [StoreUnavailable]
    for call in (
        commit,
        store.get("/a"),
        store.children("/"),
        store.get_many(["/a"]),
        store.sync(),
        store.ensure("/b"),
    ):
        with pytest.raises(StoreUnavailable), trio.fail_after(PATIENCE_SECONDS):
            await call
    await world.resume(store)
    assert await store.children("/") == ["a"]


async def test_a_suspended_session_lives_on(world: World, store: Store) -> None:
    """After a lost connection the session is the same, and its ephemerals are still there."""
    news: list[SessionState] = []
    unsubscribe = store.on_session(news.append)
    session_id = store.session_id
    await store.commit([Create("/e", ephemeral=True)])
    await world.suspend(store)
    assert store.session is SessionState.SUSPENDED
    await world.resume(store)
    assert news == [SessionState.SUSPENDED, SessionState.CONNECTED]
    assert store.session_id == session_id
    assert await store.children("/") == ["e"]
    unsubscribe()
    await world.suspend(store)
    await world.resume(store)
    assert len(news) == 2


async def test_watches_outlive_a_lost_connection(world: World, store: Store) -> None:
    """Changes during a lost connection are reported when it is back, after the session's event."""
    other = await world.open()
    await store.commit([Create("/data", b"0"), Create("/gone"), Create("/list"), Create("/list-gone")])
    order: list[object] = []
    store.on_session(order.append)
    for path in ("/data", "/gone", "/born"):
        await store.get(path, order.append)
    for path in ("/list", "/list-gone"):
        await store.children(path, order.append)
    await world.suspend(store)
    await other.commit(
        [SetData("/data", b"1"), Delete("/gone"), Create("/born"), Create("/list/x"), Delete("/list-gone")]
    )
    await world.resume(store)
    await settle(store)
    assert order[:2] == [SessionState.SUSPENDED, SessionState.CONNECTED]
    assert sorted(order[2:], key=lambda event: event.path if isinstance(event, WatchEvent) else "") == [
        WatchEvent("/born", ZnodeChange.CREATED),
        WatchEvent("/data", ZnodeChange.DATA),
        WatchEvent("/gone", ZnodeChange.DELETED),
        WatchEvent("/list", ZnodeChange.CHILDREN),
        WatchEvent("/list-gone", ZnodeChange.DELETED),
    ]


async def test_a_lost_connection_alone_wakes_no_watch(world: World, store: Store) -> None:
    """A watch whose znode has not changed stays set over a lost connection, and fires at the change
    that comes.
    """
    other = await world.open()
    await store.commit([Create("/a"), Create("/list"), Create("/list/x")])
    data, absent, children = Watcher(), Watcher(), Watcher()
    await store.get("/a", data)
    await store.get("/absent", absent)
    await store.children("/list", children)
    for _ in range(2):
        await world.suspend(store)
        await world.resume(store)
    await settle(store)
    assert data.events == absent.events == children.events == []
    await other.commit([SetData("/a", b"1"), Create("/absent"), Delete("/list/x")])
    assert await data.next() == WatchEvent("/a", ZnodeChange.DATA)
    assert await absent.next() == WatchEvent("/absent", ZnodeChange.CREATED)
    assert await children.next() == WatchEvent("/list", ZnodeChange.CHILDREN)


async def test_a_watch_that_fired_is_not_set_again(world: World, store: Store) -> None:
    """A lost connection does not bring back a watch that was called before."""
    other = await world.open()
    await store.commit([Create("/a")])
    watcher = Watcher()
    await store.get("/a", watcher)
    await other.commit([SetData("/a", b"1")])
    await watcher.next()
    await world.suspend(store)
    await other.commit([SetData("/a", b"2")])
    await world.resume(store)
    await settle(store)
    assert len(watcher.events) == 1


async def test_an_expired_session_is_replaced(world: World, store: Store) -> None:
    """EXPIRED is reported, then CONNECTED with a new session, which has no ephemeral znodes of the
    old one.
    """
    other = await world.open()
    news: list[tuple[SessionState, bool]] = []
    before = store.session_id
    store.on_session(lambda state: news.append((state, store.session_id == before)))
    await store.commit([Create("/e", ephemeral=True), Create("/p")])
    watcher = Watcher()
    await other.get("/e", watcher)
    await world.expire(store)
    assert [state for state, _ in news if state is not SessionState.SUSPENDED] == [
        SessionState.EXPIRED,
        SessionState.CONNECTED,
    ]
    assert news[-2:] == [(SessionState.EXPIRED, True), (SessionState.CONNECTED, False)]
    assert await watcher.next() == WatchEvent("/e", ZnodeChange.DELETED)
    assert await store.children("/") == ["p"]
    await store.commit([Create("/e", ephemeral=True)])
    entry = await other.get("/e")
    assert entry is not None and entry.stat.ephemeral_owner == store.session_id


async def test_watches_die_with_their_session(world: World, store: Store) -> None:
    """No watch fires at the end of its session or after it."""
    other = await world.open()
    await store.commit([Create("/a"), Create("/e", ephemeral=True)])
    data, children = Watcher(), Watcher()
    await store.get("/a", data)
    await store.get("/e", data)
    await store.children("/", children)
    await world.expire(store)
    await other.commit([SetData("/a", b"1"), Create("/b")])
    await settle(store)
    assert data.events == children.events == []


async def test_listeners_may_use_the_store(world: World, store: Store) -> None:
    """A listener of CONNECTED may call the store, in the announced session."""
    commits = []

    def on_session(state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            commits.append(store.commit([Create("/e", ephemeral=True)]))

    store.on_session(on_session)
    await world.expire(store)
    assert [await commit for commit in commits] == [["/e"]]
    entry = await store.get("/e")
    assert entry is not None and entry.stat.ephemeral_owner == store.session_id


async def test_abandon_ends_the_session_from_any_thread(world: World, store: Store) -> None:
    """The session and its ephemerals are gone at once, and the store opens another one."""
    other = await world.open()
    watcher = Watcher()
    before = store.session_id
    await store.commit([Create("/e", ephemeral=True)])
    await other.get("/e", watcher)
    news: list[SessionState] = []
    store.on_session(news.append)
    await trio.to_thread.run_sync(store.abandon)
    assert await watcher.next() == WatchEvent("/e", ZnodeChange.DELETED)
    await reaches(store, SessionState.CONNECTED, lambda: store.session_id != before)
    assert news == [SessionState.EXPIRED, SessionState.CONNECTED]
    assert await store.commit([Create("/e", ephemeral=True)]) == ["/e"]


async def test_a_closed_store_answers_nothing(store: Store) -> None:
    """After close every call raises SessionExpired, closing again is no error, and no event is
    reported.
    """
    news: list[SessionState] = []
    store.on_session(news.append)
    await store.close()
    await store.close()
    for call in (
        store.commit([Create("/a")]),
        store.get("/a"),
        store.children("/"),
        store.sync(),
        store.get_many(["/a"]),
    ):
        with pytest.raises(SessionExpired):
            await call
    store.abandon()
    await trio.testing.wait_all_tasks_blocked()
    assert news == []
    assert store.session is SessionState.EXPIRED
