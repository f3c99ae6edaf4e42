"""The watches of a ZooKeeper session, kept over a lost connection.

Rule: no change is missed and none is told twice. kazoo forgets its watches whenever a connection
breaks, though the session lives on; so each is kept with the transaction that its read saw, and
after a reconnection a read that sets it again tells whether that has changed. Everything here runs
in the event loop.
"""

from .base import NodeMissing, StoreError, Watch, WatchEvent, ZnodeChange
from .jute import children_zxid, decode_entry, decode_stat
from .replies import Body, Reply
from .watches import WatchTable

MISSING = -1
"""What was seen of a znode that did not exist."""


class KeptWatches(WatchTable):
    """Watches that outlive a lost connection: a read after it tells which of them have missed
    something.
    """

    def fire(self, path: str, change: ZnodeChange) -> None:
        for watch in self.take(path, change):
            watch(WatchEvent(path, change))

    def data_read(self, path: str, watch: Watch, reading: Reply, answer: Body | StoreError) -> None:
        """Take the answer to the read that sets this watch."""
        if not reading.abandoned and isinstance(answer, tuple):
            self.data.setdefault(path, {})[watch] = data_zxid(answer)

    def absence_read(self, path: str, watch: Watch, reading: Reply, answer: Body | StoreError) -> None:
        """Take the answer to the question that followed that read: it counts if the read found
        nothing.
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
        """Compare the state of a znode after a reconnection; this read has set ZooKeeper's watch
        again.
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
