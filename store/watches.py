"""The watches that a session has set, and which of them a change calls.

Rule: a watch is removed before it is called. Both stores keep their watches in a `WatchTable`, so
that "once" means the same in both. Everything here runs in the event loop.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from .base import NodeMissing, StoreError, Watch, WatchEvent, ZnodeChange
from .replies import Body, Reply

Table = dict[str, dict[Watch, None]]
"""Watches by path, in the order in which they were set."""


class WatchTable:
    """The watches of one session."""

    def __init__(self) -> None:
        self.there: Table = {}
        """Watches on znodes, which a change of data or a deletion calls."""
        self.absent: Table = {}
        """Watches on missing znodes, which a creation calls."""
        self.listed: Table = {}
        """Watches that a change of the list of children or a deletion calls."""

    def by_kind(self) -> Iterable[tuple[Literal["there", "absent", "listed"], list[str]]]:
        return ("there", list(self.there)), ("absent", list(self.absent)), ("listed", list(self.listed))

    def __bool__(self) -> bool:
        return bool(self.there or self.absent or self.listed)

    def take(self, path: str, change: ZnodeChange) -> list[Watch]:
        if change is ZnodeChange.CHILDREN:
            return list(self.listed.pop(path, ()))
        if change is ZnodeChange.DELETED:
            return list({**self.there.pop(path, {}), **self.listed.pop(path, {})})
        return list((self.absent if change is ZnodeChange.CREATED else self.there).pop(path, ()))

    def forget(self, watch: Watch) -> None:
        for table in (self.there, self.absent, self.listed):
            for path in [path for path, watches in table.items() if watch in watches]:
                _remove(table, path, watch)

    def clear(self) -> None:
        for table in (self.there, self.absent, self.listed):
            table.clear()


class KeptWatches(WatchTable):
    """The watches of a ZooKeeper session, which outlive a lost connection."""

    def fire(self, path: str, change: ZnodeChange) -> None:
        for watch in self.take(path, change):
            watch(WatchEvent(path, change))

    def data_read(self, path: str, watch: Watch, reading: Reply, answer: Body | StoreError) -> None:
        """Keep this watch, if the read that sets it found the znode."""
        if not reading.abandoned and isinstance(answer, tuple):
            keep(self.there, path, watch)

    def absence_read(self, path: str, watch: Watch, reading: Reply, answer: Body | StoreError) -> None:
        """Keep this watch on a missing znode, or call it if the znode was created since the read
        that found nothing.
        """
        if reading.abandoned or not isinstance(reading.answer, NodeMissing) or isinstance(answer, StoreError):
            return
        if answer is None:
            keep(self.absent, path, watch)
        else:
            watch(WatchEvent(path, ZnodeChange.CREATED))

    def children_read(self, path: str, watch: Watch, reading: Reply, answer: Body | StoreError) -> None:
        if not reading.abandoned and isinstance(answer, tuple):
            keep(self.listed, path, watch)

    def keep_many(self, paths: Sequence[str], watch: Watch) -> None:
        for path in paths:
            keep(self.there, path, watch)

    def many_set(self, paths: Sequence[str], watch: Watch, answer: Body | StoreError) -> None:
        """Drop watches that were kept before the answer, if the server did not set them."""
        if isinstance(answer, StoreError):
            for path in paths:
                _remove(self.there, path, watch)


def keep(table: Table, path: str, watch: Watch) -> None:
    table.setdefault(path, {})[watch] = None


def _remove(table: Table, path: str, watch: Watch) -> None:
    watches = table.get(path, {})
    watches.pop(watch, None)
    if not watches:
        table.pop(path, None)
