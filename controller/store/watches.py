"""Which watches a session has set, and which of them a change wakes.

Rule: a watch is taken out before it is called. Both stores keep their watches here, so both mean
the same by "once".
"""

from .base import Watch, ZnodeChange


class WatchTable:
    """The watches of one session by path, each with the transaction that last changed what its read
    saw.
    """

    def __init__(self) -> None:
        self.data: dict[str, dict[Watch, int]] = {}
        """Woken by creation, change of data, and deletion."""
        self.children: dict[str, dict[Watch, int]] = {}
        """Woken by a change of the list, and by deletion."""

    def take(self, path: str, change: ZnodeChange) -> list[Watch]:
        """Remove and return the watches that this change wakes."""
        if change is ZnodeChange.CHILDREN:
            woken = self.children.pop(path, None)
        elif change is ZnodeChange.DELETED:
            woken = {**self.data.pop(path, {}), **self.children.pop(path, {})}
        else:
            woken = self.data.pop(path, None)
        return list(woken) if woken else []

    def clear(self) -> None:
        self.data.clear()
        self.children.clear()
