"""A bell: rung by a watch, waited for by a task. Ringing it twice before anyone looks is ringing it
once.
"""

import trio


class Bell:
    def __init__(self) -> None:
        self._event = trio.Event()

    def ring(self, _cause: object = None) -> None:
        self._event.set()

    async def wait(self) -> None:
        """Wait until the bell is rung; it is silent afterwards."""
        await self._event.wait()
        self._event = trio.Event()
