"""The watches that a session has set, and which of them a change calls.

Rule: a watch is removed before it is called. Both stores keep their watches in a `WatchTable`, so
that "once" means the same in both.

Those of a ZooKeeper session are kept over a lost connection (`KeptWatches`): no change is missed
and none calls a watch twice. A watch is kept with the transaction that its read saw. After a
reconnection a read sets it again, and shows by the transaction whether the znode changed meanwhile.
Everything here runs in the event loop.
"""

from .base import NodeMissing, StoreError, Watch, WatchEvent, ZnodeChange
from .jute import children_zxid, decode_entry, decode_stat
from .replies import Body, Reply

MISSING = -1
"""The transaction that stands for a znode that did not exist."""


class WatchTable:
    """The watches of one session by path, each with the transaction that had last changed the znode
    when the watch was set.
    """

    def __init__(self) -> None:
        self.data: dict[str, dict[Watch, int]] = {}
        """Watches that a creation, a change of data or a deletion calls."""
        self.children: dict[str, dict[Watch, int]] = {}
        """Watches that a change of the list of children or a deletion calls."""

    def take(self, path: str, change: ZnodeChange) -> list[Watch]:
        if change is ZnodeChange.CHILDREN:
            woken = self.children.pop(path, None)
        elif change is ZnodeChange.DELETED:
            woken = {**self.data.pop(path, {}), **self.children.pop(path, {})}
        else:
            woken = self.data.pop(path, None)
        return list(woken) if woken else []

    def forget(self, watch: Watch) -> None:
        for table in (self.data, self.children):
            for path in [path for path, watches in table.items() if watch in watches]:
                del table[path][watch]
                if not table[path]:
                    del table[path]

    def clear(self) -> None:
        self.data.clear()
        self.children.clear()


class KeptWatches(WatchTable):
    """Watches that outlive a lost connection."""

    def fire(self, path: str, change: ZnodeChange) -> None:
        for watch in self.take(path, change):
            watch(WatchEvent(path, change))

    def data_read(self, path: str, watch: Watch, reading: Reply, answer: Body | StoreError) -> None:
        """Keep this watch, if the read that sets it found the znode."""
        if not reading.abandoned and isinstance(answer, tuple):
            self.data.setdefault(path, {})[watch] = data_zxid(answer)

    def absence_read(self, path: str, watch: Watch, reading: Reply, answer: Body | StoreError) -> None:
        """Keep this watch on a missing znode, or call it if the znode was created since the read
        that found nothing.
        """
        if reading.abandoned or not isinstance(reading.answer, NodeMissing) or isinstance(answer, StoreError):
            return
        if answer is None:
            self.data.setdefault(path, {})[watch] = MISSING
        else:
            watch(WatchEvent(path, ZnodeChange.CREATED))

    def children_read(self, path: str, watch: Watch, reading: Reply, answer: Body | StoreError) -> None:
        if not reading.abandoned and isinstance(answer, tuple):
            self.children.setdefault(path, {})[watch] = list_zxid(answer)

    def compare_data(self, path: str, answer: Body | StoreError) -> None:
        """Call the watches on a znode that changed while the connection was lost. The read that
        gave this answer has set ZooKeeper's watch again.
        """
        if isinstance(answer, StoreError):
            return
        now = MISSING if answer is None else decode_stat(*answer).mzxid
        for watch, seen in self._stale(self.data, path, now):
            change = (
                ZnodeChange.DELETED if now == MISSING else ZnodeChange.CREATED if seen == MISSING else ZnodeChange.DATA
            )
            watch(WatchEvent(path, change))

    def compare_children(self, path: str, answer: Body | StoreError) -> None:
        if isinstance(answer, StoreError) and not isinstance(answer, NodeMissing):
            return
        now = list_zxid(answer) if isinstance(answer, tuple) else MISSING
        for watch, _ in self._stale(self.children, path, now):
            watch(WatchEvent(path, ZnodeChange.DELETED if now == MISSING else ZnodeChange.CHILDREN))

    def _stale(self, table: dict[str, dict[Watch, int]], path: str, now: int) -> list[tuple[Watch, int]]:
        watches = table.get(path, {})
        stale = [(watch, seen) for watch, seen in watches.items() if seen != now]
        for watch, _ in stale:
            del watches[watch]
        if not watches:
            table.pop(path, None)
        return stale


def data_zxid(answer: tuple[bytes, int]) -> int:
    return decode_entry(*answer)[0].stat.mzxid


def list_zxid(answer: tuple[bytes, int]) -> int:
    return children_zxid(answer[0])
