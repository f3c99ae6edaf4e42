"""Answers on their way from kazoo's thread to the task that waits.

Rule: an answer is taken once, in the event loop, in the order in which the server gave it - before
any watch that fired later. That the task which asked has been cancelled meanwhile disturbs nobody.
"""

from collections.abc import Callable
from functools import partial

import trio

from .base import StoreError
from .crossing import Crossing
from .jute import error_of

Body = tuple[bytes, int] | None
"""The bytes of an answer and where it begins in them; None where the question was whether a znode
exists, and it does not.
"""


class Reply:
    """The answer to one request. kazoo's thread calls `set` or `set_exception`; at most one task
    waits.
    """

    __slots__ = ("_arrived", "_crossing", "_path", "_task", "abandoned", "answer", "on_arrival")

    def __init__(self, crossing: Crossing, path: str) -> None:
        self._crossing = crossing
        self._path = path
        self.answer: Body | StoreError = None
        """Meaningful once it has arrived."""
        self._arrived = False
        self._task: trio.lowlevel.Task | None = None
        self.abandoned = False
        """The task that asked was cancelled."""
        self.on_arrival: Callable[[Body | StoreError], None] | None = None
        """Called in the loop before the task wakes: for what must not let a later event pass by."""

    def set(self, value: Body) -> None:
        self._crossing.post(partial(self._arrive, value))

    def set_exception(self, error: Exception) -> None:
        self._crossing.post(partial(self._arrive, translated(error, self._path)))

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

    def _cancel(self, _: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        self._task = None
        self.abandoned = True
        return trio.lowlevel.Abort.SUCCEEDED

    def _arrive(self, answer: Body | StoreError) -> None:
        # kazoo may report one failure twice; the first word counts.
        if self._arrived:
            return
        self._arrived = True
        self.answer = answer
        if self.on_arrival is not None:
            self.on_arrival(answer)
        if self._task is not None:
            trio.lowlevel.reschedule(self._task)


def translated(error: Exception, path: str) -> StoreError:
    """Return an exception of kazoo's as one of ours: it carries the server's number."""
    code = getattr(error, "code", None)
    if isinstance(code, int):
        return error_of(code, path)
    return StoreError(f"{type(error).__name__}: {error}", path=path)
