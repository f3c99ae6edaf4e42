"""The kinds of world that stores live in: this process, the same with answers that take their time,
and a real ZooKeeper server.

What happens to a session - its connection lost, its end - is done to it by the world, never by the
store itself. A test's fixture `world` is of the kind that its parameter names; the marks below set
it.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

import pytest
import trio
import trio.testing
from kazoo.client import KazooClient  # type: ignore[import-untyped]

from minicontroller.store.base import Answered, Operation, SessionState, Store, StoreError, WatchEvent
from minicontroller.store.memory import MemoryStore, MemoryTree
from minicontroller.store.zookeeper import ZooKeeperStore
from tests.support.proxy import Proxy
from tests.support.zookeeper import ZooKeeperServer

PATIENCE_SECONDS = 90.0
BOTH = ["memory", "zookeeper"]
on_zookeeper = pytest.mark.parametrize("world", ["zookeeper"], indirect=True)
in_both_worlds = pytest.mark.parametrize("world", BOTH, indirect=True)
in_three_worlds = pytest.mark.parametrize("world", ["memory", "travelling", "zookeeper"], indirect=True)


class World(Protocol):
    async def open(self) -> Store:
        """Another session; the world ends it."""

    async def suspend(self, store: Store) -> None:
        """Break the connection of this session, until `resume`."""

    async def resume(self, store: Store) -> None: ...

    async def expire(self, store: Store) -> None:
        """End this session as a server does; returns when the store has another one."""


class MemoryWorld:
    def __init__(self) -> None:
        self.tree = MemoryTree()

    async def open(self) -> Store:
        return MemoryStore(self.tree)

    async def suspend(self, store: Store) -> None:
        assert isinstance(store, MemoryStore)
        self.tree.suspend(store)
        await reaches(store, SessionState.SUSPENDED)

    async def resume(self, store: Store) -> None:
        assert isinstance(store, MemoryStore)
        self.tree.resume(store)
        await reaches(store, SessionState.CONNECTED)

    async def expire(self, store: Store) -> None:
        assert isinstance(store, MemoryStore)
        before = store.session_id
        self.tree.expire(store)
        await reaches(store, SessionState.CONNECTED, lambda: store.session_id != before)


class TravellingStore(MemoryStore):
    """What is sent takes effect at once, and its answer is on its way for some turns of the loop:
    two commits can be in flight.
    """

    def send(self, operations: Sequence[Operation], answered: Answered) -> None:
        super().send(operations, lambda outcome: travel(answered, outcome))


def travel(answered: Answered, outcome: StoreError | int) -> None:
    async def arrive() -> None:
        for _ in range(5):
            await trio.lowlevel.checkpoint()
        answered(outcome)

    trio.lowlevel.spawn_system_task(arrive)


class TravellingWorld(MemoryWorld):
    async def open(self) -> Store:
        return TravellingStore(self.tree)


class ZooKeeperWorld:
    """Each session has a wire of its own to the server."""

    def __init__(self, server: ZooKeeperServer, chroot: str, stack: AsyncExitStack) -> None:
        self._server = server
        self._chroot = chroot
        self._stack = stack
        self._proxies: dict[Store, Proxy] = {}

    async def open(self) -> Store:
        proxy = self._stack.enter_context(Proxy(self._server.port))
        store = await self._stack.enter_async_context(ZooKeeperStore(proxy.connect + self._chroot))
        self._proxies[store] = proxy
        return store

    async def suspend(self, store: Store) -> None:
        self._proxies[store].cut()
        await reaches(store, SessionState.SUSPENDED)

    async def resume(self, store: Store) -> None:
        self._proxies[store].mend()
        await reaches(store, SessionState.CONNECTED)

    async def expire(self, store: Store) -> None:
        assert isinstance(store, ZooKeeperStore)
        before = store.session_id
        identity = store._kazoo.identity
        assert identity is not None
        self._proxies[store].cut()  # or its owner could be back before the session ends
        await trio.to_thread.run_sync(end_session, self._server.connect, identity)
        self._proxies[store].mend()
        await reaches(store, SessionState.CONNECTED, lambda: store.session_id != before)


def end_session(connect: str, identity: tuple[int, bytes]) -> None:
    """Take a session over by its id and password, and close it: for its owner it has expired."""
    client = KazooClient(connect, client_id=identity)
    client.start(PATIENCE_SECONDS)
    client.stop()
    client.close()


async def reaches(store: Store, state: SessionState, also: Callable[[], bool] = lambda: True) -> None:
    """Wait until the session of this store is in this state."""
    reached = trio.Event()

    def look(_: SessionState) -> None:
        if store.session is state and also():
            reached.set()

    unsubscribe = store.on_session(look)
    look(store.session)
    with trio.fail_after(PATIENCE_SECONDS):
        await reached.wait()
    unsubscribe()


class Watcher:
    """A watch that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[WatchEvent] = []
        self._told = trio.Event()

    def __call__(self, event: WatchEvent) -> None:
        self.events.append(event)
        self._told.set()

    async def next(self) -> WatchEvent:
        """The event that comes, or has come since the last call."""
        with trio.fail_after(PATIENCE_SECONDS):
            await self._told.wait()
        self._told = trio.Event()
        return self.events[-1]


async def settle(store: Store) -> None:
    """Whatever this session was to be told by now, it has been told."""
    # A server answers a read after all events that are due before it.
    await store.sync()
    await store.get("/")
    await trio.testing.wait_all_tasks_blocked()


@asynccontextmanager
async def world_of(kind: str, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """The world of this kind for the test that asks; on ZooKeeper, what lies below its chroot."""
    match kind:
        case "memory":
            yield MemoryWorld()
        case "travelling":
            yield TravellingWorld()
        case _:
            async with zookeeper_world(
                request.getfixturevalue("zookeeper"), request.getfixturevalue("chroot")
            ) as world:
                yield world


@asynccontextmanager
async def zookeeper_world(server: ZooKeeperServer, chroot: str) -> AsyncIterator[ZooKeeperWorld]:
    async with AsyncExitStack() as stack:
        yield ZooKeeperWorld(server, chroot, stack)
