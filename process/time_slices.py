"""Time slices for long work. The event loop runs one task at a time, so a long task must let others
run in between.

Work whose amount a client decides, or the size of the cluster, pauses between two parts of it. A
pause costs a look at the clock, and one round of the event loop per SLICE_SECONDS.
"""

import time
from collections.abc import Iterable
from typing import TypeVar

import trio

from .steps import Steps

T = TypeVar("T")

SLICE_SECONDS = 0.02
"""The length of a time slice. However many long tasks there are, one of them runs at a time and
then lets all others run, so that another connection is answered within a tenth of a second.
"""
STEPS_AT_ONCE = 100
"""The most steps that work may take before it lets other tasks run, and so needs a task itself.
They are counted and not timed, so that the load does not decide what is answered at once.
"""


_turn: trio.lowlevel.RunVar[trio.Lock] = trio.lowlevel.RunVar("the long task whose slice is next")


async def _next_turn() -> None:
    """Wait until the long tasks that came before have had a slice, and then for one round of the
    event loop.
    """
    try:
        turn = _turn.get()
    except LookupError:
        turn = trio.Lock()
        _turn.set(turn)
    async with turn:
        await trio.lowlevel.checkpoint()


class TimeSlice:
    """The time for which one task runs before it lets others run."""

    def __init__(self) -> None:
        self._ends = time.perf_counter() + SLICE_SECONDS

    async def pause(self) -> None:
        """Let other tasks run if the time slice is over."""
        if time.perf_counter() >= self._ends:
            await _next_turn()
            self._ends = time.perf_counter() + SLICE_SECONDS


async def in_time_slices(parts: Iterable[T]) -> list[T]:
    """Collect the parts into a list, letting other tasks run in between."""
    time_slice, made = TimeSlice(), []
    for part in parts:
        made.append(part)
        await time_slice.pause()
    return made


def at_once(steps: Steps[T]) -> T | Steps[T]:
    """Take the first steps. Return the result, or the steps if they are not over by then."""
    try:
        for _ in range(STEPS_AT_ONCE):
            next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    return steps


async def carried_out(steps: Steps[T], time_slice: TimeSlice | None = None) -> T:
    """Take all steps, letting other tasks run in between, and return the result."""
    time_slice = time_slice or TimeSlice()
    try:
        while True:
            next(steps)
            await time_slice.pause()
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
