"""The watches that a session has set, and which of them a change calls.

Rule: a watch is removed before it is called. Both stores keep their watches here, so that "once"
means the same in both.
"""

from .base import Watch, ZnodeChange


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
        """Remove a watch wherever it is set."""
        for table in (self.data, self.children):
            for path in [path for path, watches in table.items() if watch in watches]:
                del table[path][watch]
                if not table[path]:
                    del table[path]

    def clear(self) -> None:
        self.data.clear()
        self.children.clear()
