"""The store on ZooKeeper.

Rule: nothing is sent twice, and nothing is sent in another session than the caller knew of when it
asked. So a request is written to the one connection that the event loop has heard of, which belongs
to one session, and is never repeated: a connection that is lost fails what was under way on it.

ZooKeeper's watches belong to a connection. They are kept here, and after a reconnection they are
set again with the last transaction that this session has seen, so that the server sends the events
of what has changed since.
"""

import contextlib
import logging
import ssl
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

import trio

from . import jute
from .base import (
    HIDDEN,
    MAX_COMMIT_BYTES,
    Answered,
    CommitTooLarge,
    Create,
    Entry,
    NodeExists,
    NodeMissing,
    Operation,
    Result,
    SessionExpired,
    SessionState,
    StoreError,
    StoreUnavailable,
    Watch,
    weight,
)
from .digest_md5 import DigestLogin
from .kazoo_handler import ReachabilityLog
from .kazoo_session import KazooSession
from .loop_queue import LoopQueue
from .replies import Body, Reply
from .server_connection import ServerConnection
from .watches import KeptWatches

log = logging.getLogger("minicontroller.store")

ZNODES_IN_ONE = 256
"""Znodes in one request that reads or watches many."""
REQUESTS_IN_FLIGHT = 8
RESTART_PAUSE_SECONDS = 1.0
"""The pause before another try when kazoo ended by itself."""


class ZooKeeperStore:
    """One session at a time with a ZooKeeper ensemble: `async with
    ZooKeeperStore("host:2181,host:2181/chroot") as store`.

    `authentication` is ZooKeeper's own: pairs such as ("digest", "user:password"). `login` is sent
    by SASL. `access` returns the encoded access list (`jute.encode_access`) of a new znode by its
    path without the chroot.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int = 18_000,
        access: Callable[[str], bytes] = jute.open_to_all,
        authentication: Iterable[tuple[str, str]] = (),
        tls: ssl.SSLContext | None = None,
        login: DigestLogin | None = None,
    ) -> None:
        hosts, slash, chroot = connect.partition("/")
        self._chroot = (slash + chroot).rstrip("/")
        self._access = access
        self._watches = KeptWatches()
        self._listeners: list[Callable[[SessionState], None]] = []
        self._session = SessionState.SUSPENDED
        self._session_id = 0
        self._connection: ServerConnection | None = None
        """The connection that requests are sent on; None while the session is not connected."""
        self._seen_zxid = 0
        """The newest transaction that an answer showed. All events of those up to it have come,
        since the first requests on a connection set the watches.
        """
        self._closed = False
        self._is_refused = False
        """Whether the last session ended because the server refused this node's identity."""
        self._connected = trio.Event()
        self._loop = LoopQueue()
        self._open_session = partial(
            KazooSession,
            hosts,
            self,
            self._loop.post,
            timeout_ms=session_timeout_ms,
            authentication=tuple(authentication),
            log=ReachabilityLog(hosts),
            tls=tls,
            login=login,
        )
        try:
            if any(len(host.split()) != 1 for host in hosts.split(",")):
                raise ValueError("a host is empty, or has a space in it")
            _check_chroot(self._chroot)
            self._kazoo = self._open_session()
        except ValueError as error:
            raise ValueError(f"{connect!r} is no list of host:port with a chroot behind it ({error})") from None

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
        """Wait for ZooKeeper, however long it takes, and create the chroot if it is missing. Raises
        AccessDenied if ZooKeeper refuses this node's identity or its creation of the chroot.
        """
        self._loop.attach()
        self._kazoo.start()
        while True:
            await self._connected.wait()
            try:
                await self.ensure("/")
            except (StoreUnavailable, SessionExpired):
                if self._is_refused:
                    raise jute.error_of(jute.AUTHENTICATION_FAILED, "/") from None
                continue
            return

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._session = SessionState.EXPIRED
        self._watches.clear()
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(self._kazoo.finish)

    def abandon(self) -> None:
        self._kazoo.end()

    @property
    def session(self) -> SessionState:
        return self._session

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def max_commit_bytes(self) -> int:
        # `weight` leaves room for some 36 characters of a chroot with each path.
        return MAX_COMMIT_BYTES * 100 // (100 + max(0, len(self._chroot) - 36))

    def on_session(self, listener: Callable[[SessionState], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def get(self, path: str, watch: Watch | None = None) -> Entry | None:
        reading = self._read(jute.GET_DATA, path, watched=watch is not None)
        guard: Reply | None = None
        if watch is not None:
            reading.on_arrival = partial(self._watches.data_read, path, watch, reading)
            # Reading sets no watch on a znode that is missing; asking whether it exists does.
            guard = self._read(jute.EXISTS, path, watched=True)
            guard.on_arrival = partial(self._watches.absence_read, path, watch, reading)
        try:
            return jute.decode_entry(*await reading.body())[0]
        except NodeMissing:
            if guard is not None:
                await guard.wait()
            return None

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[Entry | None]:
        return await self._many(jute.GET_DATA, paths, watch)

    def forget(self, watch: Watch) -> None:
        self._watches.forget(watch)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        reading = self._read(jute.GET_CHILDREN, path, watched=watch is not None)
        if watch is not None:
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

    def send(self, operations: Sequence[Operation], answered: Answered) -> None:
        try:
            reply = self._multi(operations)
        except StoreError as error:
            answered(error)
        else:
            reply.on_arrival = partial(report, answered, operations)

    def _multi(self, operations: Sequence[Operation]) -> Reply:
        if sum(map(weight, operations)) > self.max_commit_bytes:
            raise CommitTooLarge(f"{len(operations)} operations weigh more than {self.max_commit_bytes} bytes")
        body = jute.encode_multi(operations, self._full, self._access)
        return self._send(jute.MULTI, body, operations[0].path if operations else "/")

    async def sync(self) -> None:
        await self._send(jute.SYNC, jute.encode_string(self._full("/")), "/").wait()

    async def ensure(self, path: str) -> None:
        names = self._full(path).split("/")[1:]
        prefixes = ["/" + "/".join(names[: i + 1]) for i in range(len(names)) if names[i]] or ["/"]
        while True:
            with contextlib.suppress(NodeMissing):  # another program has removed a parent meanwhile
                return await self._ensure_all(prefixes)

    async def _ensure_all(self, prefixes: Sequence[str]) -> None:
        questions = [self._ask(jute.EXISTS, prefix, prefix, watched=False) for prefix in prefixes]
        found = [await question.wait() for question in questions]
        missing = [prefix for prefix, body in zip(prefixes, found, strict=True) if body is None]
        for prefix, reply in [(prefix, self._create(prefix)) for prefix in missing]:
            with contextlib.suppress(NodeExists):
                jute.decode_multi(*await reply.body(), [Create(prefix)], self._chroot)

    def _create(self, full: str) -> Reply:
        access = self._access(full.removeprefix(self._chroot) or "/")
        body = jute.encode_multi([Create(full)], str, lambda _: access)
        return self._send(jute.MULTI, body, full)

    def _full(self, path: str) -> str:
        return self._chroot + path if path != "/" else self._chroot or "/"

    def _read(self, kind: int, path: str, *, watched: bool) -> Reply:
        return self._ask(kind, self._full(path), path, watched=watched)

    def _ask(self, kind: int, full: str, path: str, *, watched: bool) -> Reply:
        body = jute.encode_string(full) + (b"\1" if watched else b"\0")
        return self._send(kind, body, path)

    def _send(self, kind: int, body: bytes, path: str) -> Reply:
        if self._session is SessionState.EXPIRED:
            raise SessionExpired("The ZooKeeper session has ended", path=path)
        if self._connection is None:
            raise StoreUnavailable("The connection to ZooKeeper is lost", path=path)
        if self._kazoo.is_ending:
            raise SessionExpired("The session has been given up", path=path)
        reply = Reply(kind, path)
        self._connection.request(kind, body, reply)
        return reply

    async def _many(self, kind: int, paths: Sequence[str], watch: Watch | None = None) -> list[Any]:
        """Read many znodes in parts, several of them under way at a time. A multi-read sets no
        watches: they are set behind it, from the transaction that it shows.
        """
        under_way: deque[tuple[Reply, Sequence[str]]] = deque()
        watching: list[Reply] = []
        results: list[Any] = []

        async def arrives(reply: Reply, part: Sequence[str]) -> None:
            frame, start = await reply.body()
            found = jute.decode_multi_read(kind, frame, start, part)
            results.extend(found)
            if watch is not None:
                there = [path for path, entry in zip(part, found, strict=True) if entry not in (None, HIDDEN)]
                if there:
                    watching.append(self._watch_since(jute.zxid_of(frame), there, watch))

        for part in parts_of(paths):
            if len(under_way) == REQUESTS_IN_FLIGHT:
                await arrives(*under_way.popleft())
            body = jute.encode_multi_read(kind, part, self._full)
            under_way.append((self._send(jute.MULTI_READ, body, part[0]), part))
        for reply, part in under_way:
            await arrives(reply, part)
        for reply in watching:
            await reply.wait()
        return results

    def _watch_since(self, zxid: int, there: Sequence[str], watch: Watch) -> Reply:
        """Have this watch called for each of these znodes that changes behind a transaction."""
        reply = self._send(jute.SET_WATCHES, jute.encode_set_watches(zxid, there=map(self._full, there)), "")
        reply.on_arrival = partial(self._watches.many_set, there, watch)
        self._watches.keep_many(there, watch)  # the events of what has changed come before the answer
        return reply

    # ------------------------------------------------------------------ news of the session

    def connected(self, connection: ServerConnection, session_id: int, *, may_be_behind: bool) -> None:
        if self._closed:
            return
        self._connection, self._session_id = connection, session_id
        self._session = SessionState.CONNECTED
        self._connected.set()
        if may_be_behind:
            self._seen_zxid = 0  # then every watch is called
        self._watch_again()
        self._announce(SessionState.CONNECTED)

    def received(self, connection: ServerConnection, frames: list[bytes]) -> None:
        for frame in frames:
            xid, zxid, error = jute.REPLY_HEADER.unpack_from(frame)
            if xid == jute.WATCH_XID:
                self._fire(frame)
                continue
            self._seen_zxid = max(self._seen_zxid, zxid)
            reply = connection.take_reply(xid)
            if reply is None:
                log.error("ZooKeeper answers out of order: connecting again")
                connection.cut()
                return
            if error == 0:
                reply.arrive((frame, jute.REPLY_HEADER.size))
            elif error == jute.NO_NODE and reply.kind == jute.EXISTS:
                reply.arrive(None)
            else:
                reply.arrive(jute.error_of(error, reply.path))

    def disconnected(self, state: SessionState, error: int) -> None:
        connection, self._connection = self._connection, None
        self._is_refused = error == jute.AUTHENTICATION_FAILED
        if not self._closed and self._session is not state:
            if self._session is SessionState.CONNECTED:
                self._connected = trio.Event()
            if state is SessionState.EXPIRED:
                log.warning("The ZooKeeper session %#x has ended: opening a new one", self._session_id)
                self._watches.clear()
            self._session = state
            self._announce(state)
        if self._is_refused:  # `connect` looks at it
            self._connected.set()
            self._connected = trio.Event()
        # Only now: a task that learns that no answer comes finds the session suspended.
        if connection is not None:
            for _, reply in connection.unanswered:
                reply.arrive(jute.error_of(error, reply.path))
            connection.unanswered.clear()

    def ended(self, failure: Exception | None) -> None:
        """Open another session: this one was given up, or kazoo failed."""
        if self._closed:
            return
        if failure is not None:
            log.error("The connection to ZooKeeper failed, starting again", exc_info=failure)
        pause = 0.0 if self._kazoo.is_ending else RESTART_PAUSE_SECONDS
        self._kazoo.end()
        self._kazoo = self._open_session(pause_seconds=pause)
        self._kazoo.start()

    def _fire(self, frame: bytes) -> None:
        """Call the watches of an event; after `close` there are none."""
        change, path = jute.decode_event(frame, jute.REPLY_HEADER.size)
        if change is not None:
            self._watches.fire(path[len(self._chroot) :] or "/", change)

    def _watch_again(self) -> None:
        with contextlib.suppress(SessionExpired):  # it was given up before the loop heard of the connection
            for kind, paths in self._watches.by_kind():
                for part in parts_of(paths):
                    body = jute.encode_set_watches(self._seen_zxid, **{kind: map(self._full, part)})
                    self._send(jute.SET_WATCHES, body, "")

    def _announce(self, state: SessionState) -> None:
        for listener in tuple(self._listeners):
            listener(state)


def parts_of(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    return (paths[start : start + ZNODES_IN_ONE] for start in range(0, len(paths), ZNODES_IN_ONE))


def _check_chroot(chroot: str) -> None:
    """Raise ValueError for a chroot that no server takes."""
    for name in chroot.split("/")[1:]:
        if not name:
            raise ValueError("the chroot has an empty name in it")
        if name in {".", ".."} or not name.isprintable():
            raise ValueError(f"no path of ZooKeeper has the name {name!r} in it")


async def results_of(reply: Reply, operations: Sequence[Operation], chroot: str) -> list[Result]:
    return jute.decode_multi(*await reply.body(), operations, chroot)


def report(answered: Answered, operations: Sequence[Operation], answer: Body | StoreError) -> None:
    """Call `answered` with what a commit's answer means."""
    if isinstance(answer, StoreError):
        answered(answer)
    else:
        assert answer is not None, "a multi has an answer"
        answered(jute.refusal_in_multi(*answer, operations) or jute.zxid_of(answer[0]))


async def refused(error: StoreError) -> list[Result]:
    raise error
