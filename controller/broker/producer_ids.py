"""The ids that a node gives to producers, from blocks of the active controller.

Rule: each id is given once. While the controller gives no block, producers are asked to come again,
as in Kafka.
"""

from collections.abc import Awaitable, Callable

import trio

PATIENCE_SECONDS = 5.0
"""How long a request waits for a block, well below the timeout of clients."""


class ProducerIds:
    """The ids that a node has left, and the way to more."""

    def __init__(self, ask: Callable[[], Awaitable[range | None]]) -> None:
        """`ask` asks the active controller for a block; it returns None if there is none now."""
        self._ask = ask
        self._left = range(0)
        self._asking = trio.Lock()

    async def next_id(self) -> int | None:
        """Return an id that nobody has, or None if the controller gives none in time."""
        with trio.move_on_after(PATIENCE_SECONDS):
            async with self._asking:
                if not self._left:
                    self._left = await self._ask() or range(0)
        if not self._left:
            return None
        first, self._left = self._left[0], self._left[1:]
        return first
