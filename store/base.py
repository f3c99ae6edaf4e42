"""The interface of a store: a tree of znodes as ZooKeeper has it, with versions, atomic commits,
ephemeral znodes and one-shot watches.

Rule: all stores behave alike, and raise only the errors below. One suite in `tests/store/` runs on
each of them, and on a real ZooKeeper server.

Data is `bytes` or None, which differ: Kafka writes null into a znode without content, and some of
its readers take empty bytes for broken JSON.
"""
# ruff: noqa: N818 - errors have ZooKeeper's names

from collections.abc import Callable, Coroutine, Sequence
from enum import Enum
from typing import Any, Protocol

import msgspec

MAX_COMMIT_BYTES = 900_000
"""ZooKeeper cuts the connection on a request above `jute.maxbuffer`, 1 MiB by default. All stores
have this limit, so that what works on one works on each.
"""
ANY_VERSION = -1
"""Matches every version of a znode (ZooKeeper's own sentinel)."""


class StoreError(Exception):
    """An operation failed; `path` names the znode that caused it, if one did."""

    def __init__(self, text: str = "", *, path: str | None = None, index: int | None = None) -> None:
        super().__init__(text or type(self).__name__)
        self.path = path
        self.index = index
        """The index of the operation that failed in a commit; None outside of commits."""


class NodeMissing(StoreError):
    """The znode does not exist, or the parent of a znode to be created does not."""


class NodeExists(StoreError):
    """The znode to be created exists."""


class VersionConflict(StoreError):
    """The znode has another version than the operation expects."""


class NodeNotEmpty(StoreError):
    """The znode to be deleted has children."""


class AccessDenied(StoreError):
    """The store's access control refuses this session."""


class CommitTooLarge(StoreError):
    """The operations exceed `max_commit_bytes`; nothing was sent."""


class StoreUnavailable(StoreError):
    """No answer came, because the connection broke or the session is suspended. A write may have
    taken effect or not.
    """


class SessionExpired(StoreError):
    """The session has ended, with its ephemeral znodes and watches. The operation had no effect."""


class Stat(msgspec.Struct, frozen=True, gc=False):
    version: int
    """The number of changes of the data: 0 at creation."""
    czxid: int
    """The transaction that created the znode; a later one is larger. For a broker's registration it
    is the broker epoch.
    """
    mzxid: int
    ctime_ms: int
    ephemeral_owner: int = 0
    """The session that owns an ephemeral znode, 0 for a persistent one."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A znode's data and metadata at one moment."""

    data: bytes | None
    stat: Stat


HIDDEN = Entry(b"\xff hidden", Stat(version=-1, czxid=-1, mzxid=-1, ctime_ms=0))
"""Stands for a znode that the store's access control lets this session not read. Its data is no
text, so whoever decodes it finds it unreadable.
"""


class Create(msgspec.Struct, frozen=True, gc=False):
    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False


class SetData(msgspec.Struct, frozen=True, gc=False):
    path: str
    data: bytes | None
    version: int = ANY_VERSION


class Delete(msgspec.Struct, frozen=True, gc=False):
    path: str
    version: int = ANY_VERSION


class Check(msgspec.Struct, frozen=True, gc=False):
    """An operation that fails the commit unless the znode has this version."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check

Result = Stat | str | None
"""The result of an operation: `Create` gives the path, with its suffix if it is sequential;
`SetData` gives the new `Stat`; the others give None.
"""


class ZnodeChange(Enum):
    CREATED = "created"
    DELETED = "deleted"
    DATA = "data"
    CHILDREN = "children"


class WatchEvent(msgspec.Struct, frozen=True):
    path: str
    change: ZnodeChange


Answered = Callable[[StoreError | int], None]
"""A callable that is called with the error of a commit, or with the transaction that it became: the
`czxid` of every znode that it created.
"""

Watch = Callable[[WatchEvent], None]
"""A callable that is called once, in the event loop, for the first change after the read that set
it.

A callable that is set on the same znode again before it was called is still called once. A watch
outlives a lost connection: if its znode changed meanwhile, it is called after
`SessionState.CONNECTED`. So is each on a znode that is there if the server may have lost data. When
the session expires its watches are dropped without a call.
"""


class SessionState(Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """The connection is lost and the session may still live; no write can be acknowledged."""
    EXPIRED = "expired"
    """The session's ephemeral znodes and watches are gone. The store opens a new session by itself,
    and CONNECTED follows.
    """


class Store(Protocol):
    """One session with a tree of znodes. Paths are absolute, and do not contain the store's chroot.

    Every method that reads or writes raises `StoreUnavailable` and `SessionExpired`, and where it
    does not say otherwise `AccessDenied`, besides the errors that its docstring names. Operations
    take effect in the order in which they were started, whether or not the earlier ones have been
    awaited.
    """

    @property
    def session(self) -> SessionState: ...

    @property
    def session_id(self) -> int:
        """The id of the current session, as `Stat.ephemeral_owner` has it."""

    def on_session(self, listener: Callable[[SessionState], None]) -> Callable[[], None]:
        """Call `listener` in the event loop at each change of the session's state. Returns a
        function that unsubscribes it.
        """

    async def get(self, path: str, watch: Watch | None = None) -> Entry | None:
        """Return the znode, or None if it is missing. The watch is called on its creation, change
        of data or deletion.
        """

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[Entry | None]:
        """Return many znodes in the order of `paths`, None for each that is missing, and HIDDEN for
        each that this session may not read. The requests are pipelined. The watch is called for
        each of the znodes that were read, on a change of its data or its deletion.
        """

    def forget(self, watch: Watch) -> None:
        """Call this watch no more, wherever it is set."""

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Return the names of the children, sorted. The watch is called when the list changes.
        Raises NodeMissing, and then sets no watch.
        """

    async def children_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        """Return the children of many znodes in the order of `paths`, None for each that is
        missing. Raises AccessDenied if this session may not read one of them.
        """

    def commit(self, operations: Sequence[Operation]) -> Coroutine[Any, Any, list[Result]]:
        """Carry out all of the operations in their order, or none of them.

        The call starts the commit, and awaiting it gives one result for each operation; so several
        commits can be under way, in the order of the calls. Every commit must be awaited, since its
        errors are raised there: NodeMissing, NodeExists, VersionConflict, NodeNotEmpty or
        AccessDenied, with `index` and `path` of the operation that failed, or CommitTooLarge.
        """

    def send(self, operations: Sequence[Operation], answered: Answered) -> None:
        """Start a commit for whose results no task waits. `answered` is called once, in the event
        loop; it may be called before `send` returns.
        """

    async def sync(self) -> None:
        """Wait until reads of this session see every change that was acknowledged to any session
        before this call.
        """

    async def ensure(self, path: str) -> None:
        """Create a persistent znode with null data, and its parents, unless they exist."""

    @property
    def max_commit_bytes(self) -> int:
        """The limit of the operations of one commit, as `weight` measures them."""

    def abandon(self) -> None:
        """Give the session up at once; may be called in any thread. EXPIRED follows, then a new
        session.
        """

    async def close(self) -> None:
        """End the session for good. Its ephemeral znodes are deleted, and every later call raises
        SessionExpired.
        """


def weight(operation: Operation) -> int:
    """Return an upper limit of an operation's bytes in a commit (in ZooKeeper path, data, access
    list and 40 bytes around them).
    """
    data = getattr(operation, "data", None)
    return len(operation.path) + (len(data) if data else 0) + 100


async def listed_below(store: Store, parents: Sequence[str]) -> dict[str, list[str]]:
    """Return the paths of the children of those of these znodes that exist. Raises StoreError."""
    entries = zip(parents, await store.get_many(parents), strict=True)
    there = {path: entry is not HIDDEN for path, entry in entries if entry is not None}
    readable = [path for path, is_readable in there.items() if is_readable]
    names = dict(zip(readable, await store.children_many(readable), strict=True))
    return {path: [f"{path}/{name}" for name in names.get(path) or ()] for path in there}


async def whole_trees(store: Store, roots: Sequence[str]) -> list[str]:
    """Return the paths of those of these znodes that exist, and of all that lie below them; each
    comes before those below it. Raises StoreError.
    """
    found: list[str] = []
    level = list(roots)
    while level:
        below = await listed_below(store, level)
        found += below
        level = [path for paths in below.values() for path in paths]
    return found
