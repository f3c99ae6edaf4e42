"""The answer that a machine gives later."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio

T = TypeVar("T")


class LaterAnswer(Generic[T]):
    """Called once, by the machine that has the answer."""

    def __init__(self, adapt: Callable[[T], T] = lambda answer: answer) -> None:
        """`adapt` makes of the machine's answer the one that is sent."""
        self._adapt = adapt
        self._answer: T | None = None
        self._given = trio.Event()

    def __call__(self, answer: T) -> None:
        self._answer = self._adapt(answer)
        self._given.set()

    def now_or_later(self) -> T | Awaitable[T]:
        """Return the answer if it is there, so that it costs no task, or else wait for it."""
        return self._later() if self._answer is None else self._answer

    async def _later(self) -> T:
        await self._given.wait()
        assert self._answer is not None
        return self._answer
