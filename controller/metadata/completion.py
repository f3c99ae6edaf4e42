"""Who waits for which topic, and the waking of them.

Rule: a waiter is woken by a change of what it waits for, never by a clock, and leaves no trace when
it is cancelled.
"""

from collections.abc import Iterable

import trio

_CLUSTER = ""
"""No topic has this name: the key of those who wait for brokers and controllers."""


class Waiters:
    """Tasks that wait for a topic, by its name; empty places are not kept."""

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
        """Let everyone who waits for one of these topics look again."""
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
