"""The contract of a store: a ZooKeeper-shaped tree with versions, atomic commits, ephemerals and
one-shot watches.

Rule: whoever holds a `Store` cannot tell which one it is. The suite in `tests/store/` runs on every
store, ZooKeeper's on a real server. Errors of the library behind a store never escape: they are one
of the classes below.

Data is `bytes` or None, and the two differ: Kafka writes null where it has nothing to say, and some
of its readers take empty bytes for broken JSON.
"""
# ruff: noqa: N818 - an error is named after what is the case, in ZooKeeper's words

from collections.abc import Callable, Coroutine, Sequence
from enum import Enum
from typing import Any, Protocol

import msgspec

ANY_VERSION = -1
"""Matches every version of a znode (ZooKeeper's own sentinel)."""


class StoreError(Exception):
    """Something went wrong in the store; `path` names the znode if one is to blame."""

    def __init__(self, text: str = "", *, path: str | None = None, index: int | None = None) -> None:
        super().__init__(text or type(self).__name__)
        self.path = path
        self.index = index
        """Of the operation that failed in a commit; None outside of commits."""


class NodeMissing(StoreError):
    """The znode, or the parent of one to be created, does not exist."""


class NodeExists(StoreError):
    """The znode to be created exists."""


class VersionConflict(StoreError):
    """The znode has another version than the operation expects."""


class NodeNotEmpty(StoreError):
    """The znode to be deleted has children."""


class AccessDenied(StoreError):
    """The store's access control refuses this session."""


class CommitTooLarge(StoreError):
    """The operations weigh more than `max_commit_bytes`; nothing was sent."""


class StoreUnavailable(StoreError):
    """No answer came: the connection broke or the session is suspended. A write may or may not have
    taken effect.
    """


class SessionExpired(StoreError):
    """The session is gone, and with it its ephemerals and watches. The operation had no effect."""


class Stat(msgspec.Struct, frozen=True, gc=False):
    """What a store knows of a znode beside its data."""

    version: int
    """Counts the changes of the data: 0 at creation."""
    czxid: int
    """The transaction that created the znode; larger is later. Of a broker's registration it is the
    broker epoch.
    """
    mzxid: int
    ctime_ms: int
    ephemeral_owner: int = 0
    """The session that owns an ephemeral znode, 0 for a persistent one."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A znode as read."""

    data: bytes | None
    stat: Stat


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
"""Of an operation: the path created (with its suffix if sequential), the new `Stat` of the data
set, or None.
"""


class Change(Enum):
    CREATED = "created"
    DELETED = "deleted"
    DATA = "data"
    CHILDREN = "children"


class WatchEvent(msgspec.Struct, frozen=True):
    path: str
    change: Change


Watch = Callable[[WatchEvent], None]
"""Called once, in the event loop's thread, for the first change after the read that set it.

The same callable set again on the same znode before it fired is still called once. A watch outlives
a lost connection: what changed meanwhile is told after `Session.CONNECTED`. When the session ends
no watch fires: `Session.EXPIRED` is the news.
"""


class Session(Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """The connection is lost and the session may live on; no write can be acknowledged."""
    EXPIRED = "expired"
    """Ephemerals and watches of the session are gone. The store opens a new session by itself:
    CONNECTED follows.
    """


class Store(Protocol):
    """One session with a tree of znodes. Paths are absolute, within the chroot of the store.

    Every method that reads or writes raises `StoreUnavailable` or `SessionExpired` beside what its
    docstring names. Operations take effect in the order in which they were started, whether or not
    the earlier ones have been awaited.
    """

    @property
    def session(self) -> Session: ...

    @property
    def session_id(self) -> int:
        """The id of the current session, as in `Stat.ephemeral_owner`."""

    def on_session(self, listener: Callable[[Session], None]) -> Callable[[], None]:
        """Call `listener` in the event loop's thread at each change of the session's state; returns
        the unsubscription.
        """

    async def get(self, path: str, watch: Watch | None = None) -> Entry | None:
        """Return the znode, or None if it is missing; a watch fires on creation, change of data,
        and deletion.
        """

    async def get_many(self, paths: Sequence[str]) -> list[Entry | None]:
        """Return many znodes, pipelined: in the order of `paths`, None where one is missing."""

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Return the names of the children, sorted. A watch fires when the list changes. Raises
        NodeMissing (no watch is set).
        """

    async def children_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        """Return the children of many znodes, pipelined; None where one is missing."""

    def commit(self, operations: Sequence[Operation]) -> Coroutine[Any, Any, list[Result]]:
        """All of the operations take effect, in order, or none.

        The call starts the commit, the `await` fetches its results: one an operation. So several
        commits can be under way, in the order of the calls. Await each of them: whatever went wrong
        is raised there. Raises NodeMissing, NodeExists, VersionConflict, NodeNotEmpty or
        AccessDenied, with `index` and `path` of the operation that failed, or CommitTooLarge.
        """

    def send(self, operations: Sequence[Operation], answered: Callable[[StoreError | None], None]) -> None:
        """A commit of which nobody waits for the results, so that it needs no task: `answered` is
        called in the event loop, once, with what was wrong with it, if anything. Where a commit is
        done when the call returns, that is within the call.
        """

    async def sync(self) -> None:
        """Wait until the reads of this session will see whatever was acknowledged to anyone before
        this call.
        """

    async def ensure(self, path: str) -> None:
        """Create a persistent znode with null data, and its parents, where missing."""

    @property
    def max_commit_bytes(self) -> int:
        """The most that the operations of one commit may weigh, measured by `weight`."""

    def abandon(self) -> None:
        """Give the session up at once, from any thread: the last resort of a watchdog. EXPIRED
        follows, then a new session.
        """

    async def close(self) -> None:
        """End the session for good: its ephemerals go, and every later call raises
        SessionExpired.
        """


def weight(operation: Operation) -> int:
    """Return the bytes of an operation in a commit, on the safe side (ZooKeeper: path, data, access
    list and 40 bytes around them).
    """
    data = getattr(operation, "data", None)
    return len(operation.path) + (len(data) if data else 0) + 100
