"""The store on a real ZooKeeper: what only it has, and what only a server can do to it."""

import gc
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing
from kazoo.client import KazooClient  # type: ignore[import-untyped]

from minicontroller.security.zookeeper_access import protected
from minicontroller.store.base import (
    HIDDEN,
    AccessDenied,
    Create,
    SessionState,
    SetData,
    StoreError,
    StoreUnavailable,
    WatchEvent,
    ZnodeChange,
    listed_below,
)
from minicontroller.store.watchdog import run_watchdog
from minicontroller.store.zookeeper import ZooKeeperStore
from tests.store.worlds import PATIENCE_SECONDS, Watcher, reaches
from tests.support.ports import free_port
from tests.support.proxy import Proxy
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.slow

SHORT_SESSION_MS = 3_000  # which a busy machine does not end


@pytest.fixture(name="own_server")
def own_server_fixture(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """A server that the test may kill."""
    with ZooKeeperServer(tmp_path) as server:
        yield server


@pytest.fixture(name="raw")
def raw_fixture(zookeeper: ZooKeeperServer) -> Iterator[KazooClient]:
    """A plain client of kazoo's that sees what is really there."""
    client = KazooClient(zookeeper.connect)
    client.start()
    yield client
    client.stop()
    client.close()


def kazoo_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "zookeeper"]


async def test_the_chroot_is_created_with_null_data(zookeeper: ZooKeeperServer, chroot: str, raw: KazooClient) -> None:
    """A missing chroot is made, parents and all, without data as Kafka makes it; everything lies
    below it.
    """
    async with ZooKeeperStore(f"{zookeeper.connect}{chroot}/deep/er/") as store:
        assert await store.commit([Create("/a"), Create("/n_", sequential=True)]) == ["/a", "/n_0000000001"]
        assert await store.children("/") == ["a", "n_0000000001"]
    assert [raw.get(chroot + path)[0] for path in ("", "/deep", "/deep/er", "/deep/er/a")] == [None] * 4


async def test_without_a_chroot_paths_are_the_server_s(zookeeper: ZooKeeperServer, raw: KazooClient) -> None:
    """A connect string without a chroot works on the root, and watches tell the same paths."""
    watcher = Watcher()
    async with ZooKeeperStore(zookeeper.connect) as store:
        assert "zookeeper" in await store.children("/")
        await store.get("/at-the-root", watcher)
        assert await store.commit([Create("/at-the-root", b"x")]) == ["/at-the-root"]
        assert (await watcher.next()).path == "/at-the-root"
    assert raw.get("/at-the-root")[0] == b"x"
    raw.delete("/at-the-root")


async def test_ten_thousand_znodes_take_few_requests(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """Loading a large cluster is some dozens of requests, not one for each znode; so is watching
    it, and watching it again on another connection.
    """
    paths, watcher = [f"/{i}" for i in range(10_000)], Watcher()

    def received() -> int:
        return next(int(line.split()[1]) for line in zookeeper.status().splitlines() if line.startswith("Received"))

    with Proxy(zookeeper.port) as proxy:
        async with ZooKeeperStore(proxy.connect + chroot) as store:
            for start in range(0, 10_000, 2_500):
                await store.commit([Create(path, b"x" * 50) for path in paths[start : start + 2_500]])
            before = received()
            entries = await store.get_many(paths, watcher)
            assert received() - before < 100
            proxy.cut()
            await reaches(store, SessionState.SUSPENDED)
            proxy.mend()
            await reaches(store, SessionState.CONNECTED)
            await store.commit([SetData(paths[-1], b"y")])
            assert (await watcher.next()).path == paths[-1]
            assert received() - before < 200
    assert sum(entry is not None and entry.data == b"x" * 50 for entry in entries) == 10_000


async def test_a_store_costs_one_thread_and_leaves_none(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """Where kazoo takes three threads there is one; after close no thread and no socket is left."""
    assert kazoo_threads() == []
    async with ZooKeeperStore(zookeeper.connect + chroot) as store:
        await store.sync()
        assert kazoo_threads() == ["zookeeper"]
    assert kazoo_threads() == []
    gc.collect()


async def test_a_dead_zookeeper_is_told_in_one_sentence(
    own_server: ZooKeeperServer, caplog: pytest.LogCaptureFixture
) -> None:
    """While no server answers the store keeps trying and says so once, without a trace; it connects
    when one comes up.
    """
    own_server.kill()
    store = ZooKeeperStore(f"{own_server.connect}/kafka")
    with caplog.at_level(logging.INFO):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.connect)
            await trio.to_thread.run_sync(until, lambda: caplog.records)
            await trio.to_thread.run_sync(own_server.start)
    assert await store.get("/") is not None
    await store.close()
    first, second = [record.getMessage() for record in caplog.records if record.name.startswith("minicontroller")]
    assert first == (
        f"ZooKeeper at {own_server.connect} cannot be reached (Connection refused): trying again until it answers"
    )
    assert second == f"ZooKeeper at {own_server.connect} answers again"
    assert not any(record.exc_info for record in caplog.records)


async def test_a_name_that_does_not_resolve_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """A host that nobody knows is named, and waiting for it can be cancelled."""
    with trio.move_on_after(PATIENCE_SECONDS) as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ZooKeeperStore("no-such-host.invalid:2181").__aenter__)
            await trio.to_thread.run_sync(until, lambda: caplog.records)
            nursery.cancel_scope.cancel()
    assert not scope.cancelled_caught
    assert "no-such-host.invalid" in caplog.text
    assert kazoo_threads() == []


async def test_a_server_s_restart_keeps_the_session(own_server: ZooKeeperServer) -> None:
    """When the server is killed and comes back within the session's time, session and ephemerals
    are those of before.
    """
    async with ZooKeeperStore(f"{own_server.connect}/kafka", session_timeout_ms=60_000) as store:
        session_id = store.session_id
        await store.commit([Create("/e", ephemeral=True)])
        own_server.kill()
        await reaches(store, SessionState.SUSPENDED)
        with pytest.raises(StoreUnavailable):
            await store.commit([Create("/a")])
        await trio.to_thread.run_sync(own_server.start)
        await reaches(store, SessionState.CONNECTED)
        assert store.session_id == session_id
        assert await store.children("/") == ["e"]


async def test_a_server_that_may_have_lost_data_calls_the_watches(own_server: ZooKeeperServer) -> None:
    """A session that outlives its time, since the servers were away, finds perhaps an older state:
    every watch on a znode is called.
    """
    data, children, absent = Watcher(), Watcher(), Watcher()
    async with ZooKeeperStore(own_server.connect, session_timeout_ms=1_000) as store:
        session_id = store.session_id
        await store.commit([Create("/a"), Create("/a/b")])
        await store.get("/a", data)
        await store.children("/a", children)
        await store.get("/absent", absent)
        own_server.kill()
        await reaches(store, SessionState.SUSPENDED)
        with trio.fail_after(PATIENCE_SECONDS):
            while store._kazoo._client.last_zxid:  # noqa: ASYNC110
                await trio.sleep(0.05)
        await trio.to_thread.run_sync(own_server.start)
        await reaches(store, SessionState.CONNECTED)
        assert store.session_id == session_id
        assert await data.next() == WatchEvent("/a", ZnodeChange.DATA)
        assert await children.next() == WatchEvent("/a", ZnodeChange.CHILDREN)
        assert absent.events == []


async def test_a_server_that_lost_its_data_gets_a_new_session(own_server: ZooKeeperServer) -> None:
    """A server refuses sessions that have seen more than it has; once the session must be over, the
    store opens another one and finds what is there.
    """
    async with ZooKeeperStore(own_server.connect, session_timeout_ms=SHORT_SESSION_MS) as store:
        session_id = store.session_id
        await store.commit([Create("/lost")])
        own_server.kill()
        await trio.to_thread.run_sync(own_server.wipe)
        await trio.to_thread.run_sync(own_server.start)
        with trio.fail_after(PATIENCE_SECONDS):
            while store.session is not SessionState.CONNECTED or store.session_id == session_id:  # noqa: ASYNC110
                await trio.sleep(0.05)
        assert await store.get("/lost") is None


async def test_a_frozen_server_suspends_the_session(
    own_server: ZooKeeperServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that holds the connection and answers nothing suspends the session within its time,
    and what was under way fails.
    """
    async with ZooKeeperStore(f"{own_server.connect}/kafka", session_timeout_ms=SHORT_SESSION_MS) as store:
        own_server.freeze()
        answers: list[StoreError | int] = []
        store.send([Create("/in-doubt-too")], answers.append)
        with pytest.raises(StoreUnavailable):
            await store.commit([Create("/in-doubt")])
        assert [type(answer) for answer in answers] == [StoreUnavailable]
        assert store.session is SessionState.SUSPENDED
        assert not caplog.records
        own_server.thaw()
        await reaches(store, SessionState.CONNECTED)
        assert await store.commit([Create("/a")]) == ["/a"]


async def test_a_session_away_for_longer_than_its_time_expires(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """The server ends it by itself; back again, the store says EXPIRED and goes on with another
    session.
    """
    watcher = Watcher()
    news: list[SessionState] = []
    with Proxy(zookeeper.port) as proxy:
        async with (
            ZooKeeperStore(zookeeper.connect + chroot) as other,
            ZooKeeperStore(proxy.connect + chroot, session_timeout_ms=SHORT_SESSION_MS) as store,
        ):
            await store.commit([Create("/e", ephemeral=True)])
            entry = await other.get("/e", watcher)
            assert entry is not None
            store.on_session(news.append)
            proxy.cut()
            await watcher.next()
            proxy.mend()
            await reaches(store, SessionState.CONNECTED, lambda: store.session_id != entry.stat.ephemeral_owner)
            assert await store.children("/") == []
    assert news == [SessionState.SUSPENDED, SessionState.EXPIRED, SessionState.CONNECTED]


async def test_a_commit_whose_answer_is_lost_is_not_sent_again(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """It raises StoreUnavailable although it took effect; that is settled by reading back. It took
    effect once.
    """
    with Proxy(zookeeper.port) as proxy:
        async with ZooKeeperStore(proxy.connect + chroot) as store:
            proxy.swallow_answers()
            commit = store.commit([Create("/n_", b"x", sequential=True)])
            later = store.commit([Create("/n_", b"y", sequential=True)])
            async with ZooKeeperStore(zookeeper.connect + chroot) as other:
                await trio.to_thread.run_sync(until, lambda: "n_0000000001" in names(zookeeper, chroot))
                proxy.cut()
                for each in (commit, later):
                    with pytest.raises(StoreUnavailable):
                        await each
                proxy.mend()
                await reaches(store, SessionState.CONNECTED)
                await store.sync()
                assert await store.children("/") == await other.children("/") == ["n_0000000000", "n_0000000001"]


def names(server: ZooKeeperServer, path: str) -> list[str]:
    client = KazooClient(server.connect)
    client.start()
    try:
        return list(client.get_children(path))
    finally:
        client.stop()
        client.close()


async def test_a_write_is_refused_before_the_loop_hears_of_the_loss(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """Between kazoo's thread seeing a change and the event loop hearing of it nothing is sent or
    queued.

    Not even when the connection is back already, for it might be another session's.
    """
    with Proxy(zookeeper.port) as proxy:
        async with ZooKeeperStore(proxy.connect + chroot) as store:
            kazoo, connection = store._kazoo, store._connection
            assert connection is not None
            proxy.cut()
            until(lambda: kazoo.identity is None)
            assert store.session is SessionState.CONNECTED
            lost = store.commit([Create("/lost", ephemeral=True)])
            proxy.mend()
            until(lambda: kazoo.identity is not None)
            assert store.session is SessionState.CONNECTED
            early = store.commit([Create("/early", ephemeral=True)])
            assert store._connection is connection
            for each in (lost, early):
                with pytest.raises(StoreUnavailable):
                    await each
            await trio.testing.wait_all_tasks_blocked()
            await reaches(store, SessionState.CONNECTED)
            assert await store.children("/") == []


async def test_a_hanging_loop_gives_its_session_up(zookeeper: ZooKeeperServer, chroot: str, raw: KazooClient) -> None:
    """When the event loop stands still the watchdog ends the session long before its time.

    What the loop does when it wakes is refused: it would be in another session.
    """
    connect = zookeeper.connect + chroot
    async with ZooKeeperStore(connect, session_timeout_ms=60_000) as store, trio.open_nursery() as nursery:
        nursery.start_soon(run_watchdog, store, 1_500)
        for _ in range(2):
            assert await store.commit([Create("/controller", ephemeral=True)]) == ["/controller"]
            before = store.session_id
            await trio.testing.wait_all_tasks_blocked(0.01)
            # The loop stands still as long as this takes, which is less than the session's time.
            until(lambda: not raw.exists(f"{chroot}/controller"))
            with pytest.raises(StoreError):
                await store.commit([Create("/controller", ephemeral=True)])
            await reaches(store, SessionState.CONNECTED, lambda: store.session_id != before)  # noqa: B023
        nursery.cancel_scope.cancel()


async def test_a_turning_loop_keeps_its_session(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """The watchdog leaves a loop alone that gives signs of life, and 0 means never."""
    async with ZooKeeperStore(zookeeper.connect + chroot) as store, trio.open_nursery() as nursery:
        before = store.session_id
        nursery.start_soon(run_watchdog, store, 5_000)
        nursery.start_soon(run_watchdog, store, 0)
        for _ in range(50):
            await store.sync()
        assert store.session_id == before
        nursery.cancel_scope.cancel()


OWNER = ("digest", "kafka:secret")
OTHER = ("digest", "other:secret")


async def test_protected_znodes_are_the_creator_s(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """zookeeper.set.acl: others may read but not write, and may not even read where credentials
    lie.
    """
    connect = zookeeper.connect + chroot
    secrets = ["/config/users/alice", "/config/brokers/1"]
    async with ZooKeeperStore(connect, access=protected, authentication=[OWNER]) as store:
        for path in ("/config/users", "/config/brokers", "/brokers"):
            await store.ensure(path)
        await store.commit([Create("/brokers/x", b"x"), *(Create(path, b"secret") for path in secrets)])
        assert [entry and entry.data for entry in await store.get_many(secrets)] == [b"secret"] * 2
        for authentication in ([OTHER], []):
            async with ZooKeeperStore(connect, authentication=authentication) as stranger:
                entry = await stranger.get("/brokers/x")
                assert entry is not None and entry.data == b"x"
                for operation in (SetData("/brokers/x", b""), Create("/brokers/y"), Create("/y")):
                    with pytest.raises(AccessDenied) as caught:
                        await stranger.commit([operation])
                    assert (caught.value.index, caught.value.path) == (0, operation.path)
                for secret in secrets:
                    with pytest.raises(AccessDenied):
                        await stranger.get(secret)
                for watch in (None, lambda _event: None):
                    found = await stranger.get_many([secrets[0], "/brokers/x", secrets[1], "/brokers/y"], watch)
                    assert found == [HIDDEN, entry, HIDDEN, None]
                with pytest.raises(AccessDenied):
                    await stranger.children_many(["/brokers", "/config/users"])
                assert await listed_below(stranger, ["/brokers", "/config/users", "/x"]) == {
                    "/brokers": ["/brokers/x"],
                    "/config/users": [],
                }
        async with ZooKeeperStore(connect, access=protected, authentication=[OWNER]) as colleague:
            await colleague.commit([SetData("/brokers/x", b"y"), SetData(secrets[0], b"y")])


async def test_access_lists_are_kafka_s(zookeeper: ZooKeeperServer, chroot: str, raw: KazooClient) -> None:
    """Creator-all and world-read, creator-only at the credentials, open at /consumers; open
    everywhere without protection.
    """
    paths = ["", "/brokers", "/config", "/config/users", "/config/users/a", "/consumers", "/consumers/g"]
    root = f"{chroot}/protected"
    async with ZooKeeperStore(f"{zookeeper.connect}{chroot}/open") as store:
        for path in paths[1:]:
            await store.ensure(path)
    async with ZooKeeperStore(zookeeper.connect + root, access=protected, authentication=[OWNER]) as store:
        for path in paths[1:]:
            await store.ensure(path)
    raw.add_auth(*OWNER)
    seen = {path: sorted((acl.perms, acl.id.scheme) for acl in raw.get_acls(root + path)[0]) for path in paths}
    creator_and_world, creator, world = [(1, "world"), (31, "digest")], [(31, "digest")], [(31, "world")]
    assert seen == {
        "": creator_and_world,
        "/brokers": creator_and_world,
        "/config": creator_and_world,
        "/config/users": creator,
        "/config/users/a": creator,
        "/consumers": world,
        "/consumers/g": creator_and_world,
    }
    assert all(raw.get_acls(f"{chroot}/open{path}")[0][0].id.scheme == "world" for path in paths)


async def test_protection_needs_an_identity(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """Protection without authentication is refused by the server, and told as such."""
    async with ZooKeeperStore(zookeeper.connect + chroot):
        pass
    async with ZooKeeperStore(zookeeper.connect + chroot, access=protected) as store:
        with pytest.raises(AccessDenied):
            await store.commit([Create("/a")])
    with pytest.raises(AccessDenied):
        async with ZooKeeperStore(f"{zookeeper.connect}{chroot}/b", access=protected):
            pass
    assert kazoo_threads() == []


async def test_an_unknown_scheme_is_refused(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """An identity that the server does not take is told as such, and no request goes out without
    it.
    """
    with pytest.raises(AccessDenied):
        async with ZooKeeperStore(zookeeper.connect + chroot, authentication=[("no-such-scheme", "x")]):
            pass
    async with ZooKeeperStore(zookeeper.connect) as store:
        assert chroot[1:] not in await store.children("/")


async def test_a_server_that_is_behind_is_not_joined(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """After a lost connection the next server is told which transaction the session has seen, so
    that one that is behind refuses it.
    """
    with Proxy(zookeeper.port) as proxy:
        async with ZooKeeperStore(proxy.connect + chroot) as store:
            await store.commit([Create("/a")])
            entry = await store.get("/a")
            assert entry is not None
            proxy.cut()
            await reaches(store, SessionState.SUSPENDED)
            assert store._kazoo._client.last_zxid >= entry.stat.mzxid
            proxy.mend()
            await reaches(store, SessionState.CONNECTED)
            assert await store.children("/") == ["a"]


async def test_close_does_not_wait_for_a_dead_server(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """Closing takes a few seconds at most when no server is there to end the session."""
    with Proxy(zookeeper.port) as proxy:
        store = ZooKeeperStore(proxy.connect + chroot)
        await store.connect()
        proxy.swallow_answers()
        with trio.fail_after(15):
            await store.close()
    assert kazoo_threads() == []


async def test_a_store_that_never_connected_can_be_closed() -> None:
    """Closing is safe before and during the first connection."""
    await ZooKeeperStore(f"127.0.0.1:{free_port()}").close()
    with trio.move_on_after(0.05):
        async with ZooKeeperStore(f"127.0.0.1:{free_port()}"):
            pass
    assert kazoo_threads() == []


def test_a_wrong_connect_string_is_refused() -> None:
    """What cannot be a list of hosts and ports is told before anything is tried."""
    with pytest.raises(ValueError, match="host:port/x"):
        ZooKeeperStore("host:port/x")
