"""The ids that a node gives to producers, from blocks of the active controller.

Rule: each id is given once. While the controller gives no block, producers are asked to come again,
as in Kafka.
"""

from collections.abc import Awaitable, Callable

import trio

PATIENCE_SECONDS = 5.0
"""How long a request waits for a block, well below the timeout of clients."""


async def _nobody() -> None:
    await trio.lowlevel.checkpoint()


class ProducerIds:
    """The ids that a node has left, and the way to more."""

    def __init__(self) -> None:
        self.ask: Callable[[], Awaitable[range | None]] = _nobody
        """Asks the active controller for a block; None if there is none now."""
        self._left = range(0)
        self._asking = trio.Lock()

    async def next_id(self) -> int | None:
        """Return an id that nobody has, or None if the controller gives none in time."""
        with trio.move_on_after(PATIENCE_SECONDS):
            async with self._asking:
                if not self._left:
                    self._left = await self.ask() or range(0)
        if not self._left:
            return None
        first, self._left = self._left[0], self._left[1:]
        return first
