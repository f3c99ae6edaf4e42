"""The store on ZooKeeper; the only module that knows kazoo.

Rules: nothing is sent twice, and nothing is sent in another session than the caller knew of when it
asked. So requests go to kazoo's queue directly (its public calls retry and re-queue), under a lock
that kazoo's changes of state take too, and are refused at once while the connection is not the one
that the event loop has heard of.

kazoo forgets its watches whenever a connection breaks. They are kept here, and set again by a read
that also tells what has changed meanwhile.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

import trio
from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.protocol.serialization import CloseInstance, GetChildren2  # type: ignore[import-untyped]
from kazoo.protocol.states import EventType, KazooState, KeeperState  # type: ignore[import-untyped]
from kazoo.retry import KazooRetry  # type: ignore[import-untyped]

from . import jute
from .base import (
    Change,
    CommitTooLarge,
    Create,
    Entry,
    NodeExists,
    NodeMissing,
    Operation,
    Result,
    Session,
    SessionExpired,
    StoreError,
    StoreUnavailable,
    Watch,
    weight,
)
from .crossing import Crossing
from .kept_watches import KeptWatches
from .link import Failures, LinkHandler
from .replies import Body, Reply

log = logging.getLogger("minicontroller.store")

MAX_COMMIT_BYTES = 900_000
"""ZooKeeper cuts the connection on a request above `jute.maxbuffer`, 1 MiB by default."""
READS_IN_ONE = 256
"""Znodes in one multi-read."""
REQUESTS_IN_FLIGHT = 8
CLOSE_SECONDS = 2.0
"""How long a server may take to end the session in good order."""
RETRY_SECONDS = 0.5
"""Between two rounds of connection attempts, at most."""
RESTART_PAUSE_SECONDS = 1.0
"""Before another try when kazoo's thread failed."""

CHANGES = {
    EventType.CREATED: Change.CREATED,
    EventType.DELETED: Change.DELETED,
    EventType.CHANGED: Change.DATA,
    EventType.CHILD: Change.CHILDREN,
}


class Request:
    """A request as kazoo's connection wants it: bytes to send; the answer's bytes are decoded by
    whoever waits.
    """

    __slots__ = ("body", "path", "type", "watcher")

    def __init__(self, kind: int, body: bytes, path: str = "", watcher: Callable[[Any], None] | None = None) -> None:
        self.type = kind
        self.body = body
        self.path = path
        self.watcher = watcher

    def serialize(self) -> bytes:
        return self.body

    def deserialize(self, buffer: bytes, offset: int) -> tuple[bytes, int]:
        return buffer, offset


class ChildrenRequest(GetChildren2):  # type: ignore[misc]
    """A request for children: kazoo tells a watch on children by the class of the request."""

    @classmethod
    def deserialize(cls, buffer: bytes, offset: int) -> tuple[bytes, int]:
        return buffer, offset


class Client(KazooClient):  # type: ignore[misc]
    """kazoo's client, with a gate that no request passes while the state changes."""

    def __init__(self, hosts: str, **options: Any) -> None:
        self.gate = threading.RLock()
        self.generation = 0
        """Counts the connections. A request names the one that it is meant for."""
        self.abandoned = False
        super().__init__(hosts, **options)

    def submit(self, request: Request | ChildrenRequest, reply: Reply, generation: int) -> None:
        with self.gate:
            if self.abandoned:
                raise SessionExpired("The session has been given up")
            if generation != self.generation or self._state != KeeperState.CONNECTED:
                raise StoreUnavailable("The connection to ZooKeeper is lost")
            self._call(request, reply)

    def hang_up(self) -> None:
        """End the session behind what is queued already, without waiting for it (the first half of
        kazoo's `stop`).
        """
        with self.gate:
            if not self._stopped.is_set():
                self._stopped.set()
                self._queue.append((CloseInstance, None))
                self._connection._write_sock.send(b"\0")  # noqa: SLF001

    def finish(self) -> None:
        """Wait for the end of kazoo's thread; the connection is cut if the server
        does not answer.
        """
        stopped = self._connection.connection_stopped
        if not stopped.wait(CLOSE_SECONDS):
            self.handler.cut()
        if stopped.wait(CLOSE_SECONDS):
            self._connection.stop()
            self.close()

    def _session_callback(self, state: str) -> None:
        with self.gate:
            if state == KeeperState.CONNECTING and self._state == KeeperState.CONNECTED:
                # Before kazoo fails what is under way: who learns that no answer comes finds the
                # session suspended.
                self._make_state_change(KazooState.SUSPENDED)
            super()._session_callback(state)


class ZooKeeperStore:
    """One session at a time with a ZooKeeper ensemble: `async with
    ZooKeeperStore("host:2181,host:2181/chroot") as store`.

    `authentication` is ZooKeeper's own: pairs such as ("digest", "user:password"). `access` returns
    the encoded access list (`jute.encode_access`) of a new znode by its path without the chroot.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int = 18_000,
        access: Callable[[str], bytes] = jute.open_to_all,
        authentication: Iterable[tuple[str, str]] = (),
    ) -> None:
        hosts, slash, chroot = connect.partition("/")
        self._hosts = hosts
        self._chroot = (slash + chroot).rstrip("/")
        self._access = access
        self._watches = KeptWatches()
        self._listeners: list[Callable[[Session], None]] = []
        self._session = Session.SUSPENDED
        self._session_id = 0
        self._generation = 0
        self._closed = False
        self._connected = trio.Event()
        self._crossing = Crossing()
        self._failures = Failures(hosts)
        self._handler = LinkHandler(self._crossing.post, self._thread_ended)
        try:
            if any(len(host.split()) != 1 for host in hosts.split(",")):
                raise ValueError("a host is empty, or has a space in it")
            _check_chroot(self._chroot)
            self._client = Client(
                hosts,
                timeout=session_timeout_ms / 1000,
                handler=self._handler,
                auth_data=list(authentication),
                logger=self._failures,
                connection_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=RETRY_SECONDS),
                command_retry=KazooRetry(max_tries=0),
            )
        except ValueError as error:
            raise ValueError(f"{connect!r} is no list of host:port with a chroot behind it ({error})") from None
        self._client.add_listener(self._state_changed)

    async def __aenter__(self) -> Self:
        try:
            await self.connect()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def connect(self) -> None:
        """Wait for ZooKeeper, however long it takes, and create the chroot if it is missing."""
        self._crossing.enter_loop()
        self._client.start_async()
        while True:
            await self._connected.wait()
            try:
                await self.ensure("/")
            except (StoreUnavailable, SessionExpired):
                continue
            return

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._handler.closing.set()
        self._session = Session.EXPIRED
        self._watches.clear()
        self._client.hang_up()
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(self._client.finish)

    def abandon(self) -> None:
        with self._client.gate:
            if not self._closed and not self._client.abandoned:
                self._client.abandoned = True
                self._client.hang_up()

    @property
    def session(self) -> Session:
        return self._session

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def max_commit_bytes(self) -> int:
        # `weight` leaves room for some 36 characters of a chroot with each path.
        return MAX_COMMIT_BYTES * 100 // (100 + max(0, len(self._chroot) - 36))

    def on_session(self, listener: Callable[[Session], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def get(self, path: str, watch: Watch | None = None) -> Entry | None:
        reading = self._read(jute.GET_DATA, path, watched=watch is not None)
        guard: Reply | None = None
        if watch is not None:
            # Reading sets no watch on a znode that is missing; asking whether it exists does.
            guard = self._read(jute.EXISTS, path, watched=True)
            reading.on_arrival = partial(self._watches.data_read, path, watch, reading)
            guard.on_arrival = partial(self._watches.absence_read, path, watch, reading)
        try:
            return jute.decode_entry(*await reading.body())[0]
        except NodeMissing:
            if guard is not None:
                await guard.wait()
            return None

    async def get_many(self, paths: Sequence[str]) -> list[Entry | None]:
        return await self._many(jute.GET_DATA, paths)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        if watch is None:
            reading = self._read(jute.GET_CHILDREN, path, watched=False)
        else:
            reading = self._send(ChildrenRequest(self._full(path), self._notify), path)
            reading.on_arrival = partial(self._watches.children_read, path, watch, reading)
        return jute.decode_names(*await reading.body())[0]

    async def children_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        return await self._many(jute.GET_CHILDREN, paths)

    def commit(self, operations: Sequence[Operation]) -> Coroutine[Any, Any, list[Result]]:
        try:
            reply = self._multi(operations)
        except StoreError as error:
            return refused(error)
        return results_of(reply, operations, self._chroot)

    def send(self, operations: Sequence[Operation], answered: Callable[[StoreError | None], None]) -> None:
        try:
            reply = self._multi(operations)
        except StoreError as error:
            answered(error)
        else:
            reply.on_arrival = partial(tell, answered, operations)

    def _multi(self, operations: Sequence[Operation]) -> Reply:
        if sum(map(weight, operations)) > self.max_commit_bytes:
            raise CommitTooLarge(f"{len(operations)} operations weigh more than {self.max_commit_bytes} bytes")
        body = jute.encode_multi(operations, self._full, self._access)
        return self._send(Request(jute.MULTI, body), operations[0].path if operations else "/")

    async def sync(self) -> None:
        await self._send(Request(jute.SYNC, jute.encode_string(self._full("/"))), "/").wait()

    async def ensure(self, path: str) -> None:
        names = self._full(path).split("/")[1:]
        prefixes = ["/" + "/".join(names[: i + 1]) for i in range(len(names)) if names[i]]
        questions = [self._ask(jute.EXISTS, prefix, prefix, watched=False) for prefix in prefixes]
        found = [await question.wait() for question in questions]
        missing = [prefix for prefix, body in zip(prefixes, found, strict=True) if body is None]
        for prefix, reply in [(prefix, self._create(prefix)) for prefix in missing]:
            try:
                jute.decode_multi(*await reply.body(), [Create(prefix)], self._chroot)
            except NodeExists:
                continue

    def _create(self, full: str) -> Reply:
        access = self._access(full.removeprefix(self._chroot) or "/")
        body = jute.encode_multi([Create(full)], str, lambda _: access)
        return self._send(Request(jute.MULTI, body), full)

    def _full(self, path: str) -> str:
        return self._chroot + path if path != "/" else self._chroot or "/"

    def _read(self, kind: int, path: str, *, watched: bool) -> Reply:
        return self._ask(kind, self._full(path), path, watched=watched)

    def _ask(self, kind: int, full: str, path: str, *, watched: bool) -> Reply:
        body = jute.encode_string(full) + (b"\1" if watched else b"\0")
        return self._send(Request(kind, body, full, self._notify if watched else None), path)

    def _send(self, request: Request | ChildrenRequest, path: str) -> Reply:
        if self._session is Session.SUSPENDED:
            raise StoreUnavailable("The connection to ZooKeeper is lost", path=path)
        if self._session is Session.EXPIRED:
            raise SessionExpired("The ZooKeeper session has ended", path=path)
        reply = Reply(self._crossing, path)
        self._client.submit(request, reply, self._generation)
        return reply

    async def _many(self, kind: int, paths: Sequence[str]) -> list[Any]:
        """Read many znodes in parts, several of them under way at a time."""
        parts = [paths[start : start + READS_IN_ONE] for start in range(0, len(paths), READS_IN_ONE)]
        under_way: deque[tuple[Reply, Sequence[str]]] = deque()
        results: list[Any] = []
        for part in parts:
            if len(under_way) == REQUESTS_IN_FLIGHT:
                results += await part_of(*under_way.popleft())
            body = jute.encode_multi_read(kind, part, self._full)
            under_way.append((self._send(Request(jute.MULTI_READ, body), part[0]), part))
        for reply, part in under_way:
            results += await part_of(reply, part)
        return results

    def _notify(self, event: Any) -> None:
        """Fire watches for an event of kazoo's; when a connection breaks it calls them all, which
        means nothing to us.
        """
        if event.type in CHANGES:
            self._watches.fire(event.path[len(self._chroot) :] or "/", CHANGES[event.type])

    def _state_changed(self, state: str) -> None:
        """Post a change of kazoo's state from its thread."""
        if state == KazooState.CONNECTED:
            self._failures.connected()
            self._client.generation += 1
            session_id = self._client.client_id[0]
            self._crossing.post(partial(self._connected_again, self._client.generation, session_id))
        else:
            self._failures.lost()
            news = Session.SUSPENDED if state == KazooState.SUSPENDED else Session.EXPIRED
            self._crossing.post(partial(self._disconnected, news))

    def _connected_again(self, generation: int, session_id: int) -> None:
        if self._closed:
            return
        self._generation, self._session_id = generation, session_id
        self._session = Session.CONNECTED
        self._connected.set()
        self._watch_again()
        self._announce(Session.CONNECTED)

    def _disconnected(self, news: Session) -> None:
        if self._closed or self._session is news:
            return
        if self._session is Session.CONNECTED:
            self._connected = trio.Event()
        if news is Session.EXPIRED:
            log.warning("The ZooKeeper session %#x has ended: opening a new one", self._session_id)
            self._watches.clear()
        self._session = news
        self._announce(news)

    def _watch_again(self) -> None:
        try:
            for path in self._watches.data:
                self._read(jute.EXISTS, path, watched=True).on_arrival = partial(self._watches.compare_data, path)
            for path in self._watches.children:
                reply = self._send(ChildrenRequest(self._full(path), self._notify), path)
                reply.on_arrival = partial(self._watches.compare_children, path)
        except (StoreUnavailable, SessionExpired):
            # Lost again before the loop heard of it: the next connection does it.
            return

    def _announce(self, state: Session) -> None:
        for listener in tuple(self._listeners):
            listener(state)

    def _thread_ended(self, failure: Exception | None) -> None:
        """Post, as the last act of kazoo's thread, why it ended."""
        self._crossing.post(partial(self._restart, failure))

    def _restart(self, failure: Exception | None) -> None:
        """Start again: the session was given up, or kazoo did not know any further."""
        if self._closed:
            return
        if failure is not None:
            log.error("The connection to ZooKeeper failed, starting again", exc_info=failure)
        self._handler.pause_seconds = 0 if self._client.abandoned else RESTART_PAUSE_SECONDS
        self._client.abandoned = False
        self._client.start_async()


async def part_of(reply: Reply, paths: Sequence[str]) -> list[Any]:
    return jute.decode_multi_read(*await reply.body(), paths)


def _check_chroot(chroot: str) -> None:
    """Raise ValueError for a chroot that no server takes."""
    for name in chroot.split("/")[1:]:
        if not name:
            raise ValueError("the chroot has an empty name in it")
        if name in {".", ".."} or not name.isprintable():
            raise ValueError(f"no path of ZooKeeper has the name {name!r} in it")


async def results_of(reply: Reply, operations: Sequence[Operation], chroot: str) -> list[Result]:
    return jute.decode_multi(*await reply.body(), operations, chroot)


def tell(
    answered: Callable[[StoreError | None], None], operations: Sequence[Operation], answer: Body | StoreError
) -> None:
    """Call `answered` with the error that a commit's answer means, or with None."""
    if isinstance(answer, StoreError):
        answered(answer)
    else:
        assert answer is not None, "a multi has an answer"
        answered(jute.refusal_in_multi(*answer, operations))


async def refused(error: StoreError) -> list[Result]:
    raise error
