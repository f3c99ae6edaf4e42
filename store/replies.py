"""The answer to a request of the store, on its way to the task that waits for it.

Rule: everything here runs in the event loop. An answer arrives once, in the order in which the
server gave it, and before any watch that fired later. It does no harm if the task that asked has
been cancelled meanwhile.
"""

from collections.abc import Callable

import trio

from .base import StoreError

Body = tuple[bytes, int] | None
"""A frame and where the answer begins in it; None if the request asked whether a znode exists, and
it does not.
"""


class Reply:
    """The answer to one request, for which at most one task waits."""

    __slots__ = ("_arrived", "_task", "abandoned", "answer", "kind", "on_arrival", "path")

    def __init__(self, kind: int, path: str) -> None:
        self.kind = kind
        """ZooKeeper's number of the request."""
        self.path = path
        self.answer: Body | StoreError = None
        """Meaningful once it has arrived."""
        self._arrived = False
        self._task: trio.lowlevel.Task | None = None
        self.abandoned = False
        """The task that asked was cancelled."""
        self.on_arrival: Callable[[Body | StoreError], None] | None = None
        """Called before the task wakes, for what must be done before a later event."""

    async def wait(self) -> Body:
        if not self._arrived:
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._cancel)
        if isinstance(self.answer, StoreError):
            raise self.answer
        return self.answer

    async def body(self) -> tuple[bytes, int]:
        """Return the answer to a request that always has one."""
        answer = await self.wait()
        assert answer is not None
        return answer

    def arrive(self, answer: Body | StoreError) -> None:
        self._arrived = True
        self.answer = answer
        if self.on_arrival is not None:
            self.on_arrival(answer)
        if self._task is not None:
            trio.lowlevel.reschedule(self._task)

    def _cancel(self, _: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        self._task = None
        self.abandoned = True
        return trio.lowlevel.Abort.SUCCEEDED
