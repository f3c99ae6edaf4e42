"""Time slices of long work: the event loop runs one task at a time, so a task that works through
something long lets others run in between.

Work whose amount somebody else decides, such as the topics of a request or of the cluster, pauses
between two parts of it. A pause costs a look at a clock, and once in SLICE_SECONDS a round of the
event loop.
"""

import time
from collections.abc import Iterable
from typing import TypeVar

import trio

T = TypeVar("T")

SLICE_SECONDS = 0.02
"""With a few such tasks at once another connection is still answered within a tenth of a second."""


class TimeSlice:
    """The time for which one task works before it lets others run."""

    def __init__(self) -> None:
        self._ends = time.perf_counter() + SLICE_SECONDS

    async def pause(self) -> None:
        """Let others run if the time is over, else do nothing."""
        if time.perf_counter() >= self._ends:
            await trio.lowlevel.checkpoint()
            self._ends = time.perf_counter() + SLICE_SECONDS


async def in_time_slices(parts: Iterable[T]) -> list[T]:
    """Collect what is made part by part, letting others run in between."""
    time_slice, made = TimeSlice(), []
    for part in parts:
        made.append(part)
        await time_slice.pause()
    return made
