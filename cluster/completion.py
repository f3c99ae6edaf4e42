"""Tasks that wait for a change of a topic or of the cluster.

Rule: a waiter is woken by a change and never polls. A cancelled waiter leaves nothing behind.
"""

from collections.abc import Iterable

import trio

_CLUSTER = ""
"""The key of waiters for brokers and controllers; no topic has this name."""


class Waiters:
    """Waiting tasks by the name of their topic."""

    def __init__(self) -> None:
        self._lots: dict[str, trio.lowlevel.ParkingLot] = {}

    def __len__(self) -> int:
        return sum(len(lot) for lot in self._lots.values())

    async def wait(self, name: str) -> None:
        """Wait until the topic is named in `wake`. Cancellable."""
        lot = self._lots.get(name)
        if lot is None:
            lot = self._lots[name] = trio.lowlevel.ParkingLot()
        try:
            await lot.park()
        finally:
            if not lot and self._lots.get(name) is lot:
                del self._lots[name]

    def wake(self, names: Iterable[str]) -> None:
        """Wake all tasks that wait for one of these topics."""
        if not self._lots:
            return
        for name in names:
            lot = self._lots.get(name)
            if lot is not None:
                lot.unpark_all()

    async def wait_cluster(self) -> None:
        """Wait until `wake_cluster`. Cancellable."""
        await self.wait(_CLUSTER)

    def wake_cluster(self) -> None:
        self.wake((_CLUSTER,))
