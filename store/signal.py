"""A signal from a watch, or any other callback, to the task that waits for it."""

import trio


class Signal:
    """An event that resets itself when it has been waited for. Signals that are sent before anybody
    waits count as one.
    """

    def __init__(self) -> None:
        self._event = trio.Event()

    def send(self, _cause: object = None) -> None:
        """Wake the waiting task, or the next one. The argument is ignored, so that this can be
        passed as a `Watch`.
        """
        self._event.set()

    async def wait(self) -> None:
        """Wait until a signal is sent, and take it."""
        await self._event.wait()
        self._event = trio.Event()
