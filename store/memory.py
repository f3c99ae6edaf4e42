"""The embedded store: a tree of znodes in this process, for trying out and for tests.

Rule: it behaves as ZooKeeper does, and one suite runs on both. No method waits: a commit is a few
dictionary operations, and its result is there when the call returns. Watches and changes of the
session are announced by the event loop later, so that nobody is called back inside their own
commit.
"""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self

from .base import (
    MAX_COMMIT_BYTES,
    Answered,
    CommitTooLarge,
    Create,
    Delete,
    Entry,
    NodeMissing,
    Operation,
    Result,
    SessionExpired,
    SessionState,
    Stat,
    StoreError,
    StoreUnavailable,
    Watch,
    WatchEvent,
    ZnodeChange,
    weight,
)
from .loop_queue import LoopQueue
from .memory_transaction import APPLY, Transaction, Znode, parent_of
from .watches import WatchTable, keep


class MemoryTree:
    """The znodes that the sessions of one process share.

    `suspend`, `resume`, `expire`, `lose_request` and `lose_reply` do to a session what the network
    and a server may do to a session with ZooKeeper.
    """

    def __init__(self) -> None:
        self.zxid = 0
        self.nodes: dict[str, Znode] = {"/": Znode(None, Stat(0, 0, 0, 0))}
        self.sessions: dict[int, MemoryStore] = {}
        self._last_session_id = 0

    def suspend(self, store: "MemoryStore") -> None:
        """Break the connection of this session, which lives on."""
        store.enter(SessionState.SUSPENDED)

    def resume(self, store: "MemoryStore") -> None:
        """Restore a suspended session's connection. Watches that missed a change are called."""
        store.enter(SessionState.CONNECTED)

    def expire(self, store: "MemoryStore") -> None:
        """End the session. The store opens a new one after it has told its listeners."""
        self.end_session(store)
        store.enter(SessionState.EXPIRED)

    def lose_request(self, store: "MemoryStore") -> None:
        """Break the connection on the next commit of this session, which has no effect."""
        store.request_is_lost = True

    def lose_reply(self, store: "MemoryStore") -> None:
        """Break the connection on the next commit of this session, which takes effect."""
        store.reply_is_lost = True

    def open_session(self, store: "MemoryStore") -> int:
        self._last_session_id += 1
        self.sessions[self._last_session_id] = store
        return self._last_session_id

    def end_session(self, store: "MemoryStore") -> None:
        """Remove the session's watches and ephemerals."""
        if self.sessions.get(store.session_id) is not store:
            return
        store.watches.clear()
        self.apply(store, [Delete(path) for path in sorted(store.ephemerals)])
        del self.sessions[store.session_id]

    def owner(self, node: Znode) -> "MemoryStore":
        return self.sessions[node.stat.ephemeral_owner]

    def apply(self, store: "MemoryStore", operations: Sequence[Operation]) -> list[Result]:
        """Carry out all of the operations or none, and then fire the watches."""
        transaction = Transaction(self, store)
        results: list[Result] = []
        try:
            for operation in operations:
                results.append(APPLY[type(operation)](transaction, operation))  # noqa: PERF401 - the index of a failure
        except StoreError as error:
            transaction.roll_back()
            error.index = len(results)
            raise
        self.zxid = transaction.zxid
        for session in self.sessions.values():
            if session.watches:
                session.notice(transaction.changes)
        return results


class MemoryStore:
    """One session with a `MemoryTree`."""

    def __init__(self, tree: MemoryTree) -> None:
        self.tree = tree
        self.watches = WatchTable()
        self.ephemerals: set[str] = set()
        self.request_is_lost = self.reply_is_lost = False
        self._session = SessionState.CONNECTED
        self._session_id = tree.open_session(self)
        self._closed = False
        self._listeners: list[Callable[[SessionState], None]] = []
        self._missed: list[Callable[[], None]] = []
        self._loop = LoopQueue()
        with suppress(RuntimeError):  # made before its event loop runs: then the first watch attaches it
            self._loop.attach()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def session(self) -> SessionState:
        return self._session

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def max_commit_bytes(self) -> int:
        return MAX_COMMIT_BYTES

    def on_session(self, listener: Callable[[SessionState], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def get(self, path: str, watch: Watch | None = None) -> Entry | None:
        self._require_session()
        if watch is not None:
            self._loop.attach()
            keep(self.watches.there if path in self.tree.nodes else self.watches.absent, path, watch)
        return self._entry(path)

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[Entry | None]:
        self._require_session()
        entries = [self._entry(path) for path in paths]
        if watch is not None:
            self._loop.attach()
            for path, entry in zip(paths, entries, strict=True):
                if entry is not None:
                    keep(self.watches.there, path, watch)
        return entries

    def forget(self, watch: Watch) -> None:
        self.watches.forget(watch)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        self._require_session()
        names = self._names(path)
        if names is None:
            raise NodeMissing(f"{path} does not exist", path=path)
        if watch is not None:
            self._loop.attach()
            keep(self.watches.listed, path, watch)
        return names

    async def children_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        self._require_session()
        return [self._names(path) for path in paths]

    def commit(self, operations: Sequence[Operation]) -> Coroutine[Any, Any, list[Result]]:
        try:
            return succeeded(self._commit(operations))
        except StoreError as error:
            return failed(error)

    def send(self, operations: Sequence[Operation], answered: Answered) -> None:
        try:
            self._commit(operations)
        except StoreError as error:
            answered(error)
        else:
            answered(self.tree.zxid)

    async def sync(self) -> None:
        self._require_session()

    async def ensure(self, path: str) -> None:
        self._require_session()
        missing = []
        while path not in self.tree.nodes:
            missing.append(path)
            path = parent_of(path)
        self.tree.apply(self, [Create(each) for each in reversed(missing)])

    def abandon(self) -> None:
        self._loop.post(partial(self.tree.expire, self))

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.tree.end_session(self)
            self._session = SessionState.EXPIRED

    def enter(self, state: SessionState) -> None:
        """Enter another state of the session. It is in force at once; listeners are called soon."""
        if self._closed:
            return
        if state is not SessionState.CONNECTED:
            self._session = state
        self._loop.attach()
        self._loop.post(partial(self._announce, state))

    def notice(self, changes: Sequence[tuple[str, ZnodeChange, str]]) -> None:
        """Call the watches on znodes that a commit has changed, in the order of the changes."""
        watched = self.watches
        for path, change, parent in changes:
            if path in watched.there or path in watched.absent or path in watched.listed:
                self._wake(path, change)
            if parent in watched.listed:
                self._wake(parent, ZnodeChange.CHILDREN)

    def _wake(self, path: str, change: ZnodeChange) -> None:
        for watch in self.watches.take(path, change):
            call = partial(self._fire, watch, WatchEvent(path, change))
            if self._session is SessionState.CONNECTED:
                self._loop.post(call)
            else:
                self._missed.append(call)

    def _fire(self, watch: Watch, event: WatchEvent) -> None:
        if not self._closed:
            watch(event)

    def _announce(self, state: SessionState) -> None:
        if self._closed:
            return
        self._session = state
        for listener in tuple(self._listeners):
            listener(state)
        if state is SessionState.EXPIRED:
            self._missed.clear()
            self._session_id = self.tree.open_session(self)
            self.enter(SessionState.CONNECTED)
        elif state is SessionState.CONNECTED:
            missed, self._missed = self._missed, []
            for call in missed:
                call()

    def _commit(self, operations: Sequence[Operation]) -> list[Result]:
        self._require_session()
        if sum(map(weight, operations)) > MAX_COMMIT_BYTES:
            raise CommitTooLarge(f"{len(operations)} operations weigh more than {MAX_COMMIT_BYTES} bytes")
        results = [] if self.request_is_lost else self.tree.apply(self, operations)
        if self.request_is_lost or self.reply_is_lost:
            self.request_is_lost = self.reply_is_lost = False
            self.tree.suspend(self)
            raise StoreUnavailable("The connection broke before the answer came")
        return results

    def _require_session(self) -> None:
        if self._session is SessionState.CONNECTED:
            return
        if self._session is SessionState.SUSPENDED:
            raise StoreUnavailable("The connection to the store is lost")
        raise SessionExpired("The session has ended")

    def _entry(self, path: str) -> Entry | None:
        node = self.tree.nodes.get(path)
        return None if node is None else Entry(node.data, node.stat)

    def _names(self, path: str) -> list[str] | None:
        node = self.tree.nodes.get(path)
        if node is None:
            return None
        skip = len(path) + 1 if path != "/" else 1
        return sorted(child[skip:] for child in node.children or ())


async def succeeded(results: list[Result]) -> list[Result]:
    return results


async def failed(error: StoreError) -> list[Result]:
    raise error
