"""Whoever works through something long lets others have their turns: the event loop serves one task
at a time.

Rule: work whose amount somebody else decides (elements of a request, topics of a cluster) ends its
turn between two parts of it. That costs a look at a clock, and once in TURN_SECONDS a round of the
loop.
"""

import time
from collections.abc import Iterable
from typing import TypeVar

import trio

T = TypeVar("T")

TURN_SECONDS = 0.02
"""With a few such tasks at once another connection is still answered within a tenth of a second."""


class Turn:
    """The time for which one task works before it lets others work."""

    def __init__(self) -> None:
        self._ends = time.perf_counter() + TURN_SECONDS

    async def pause(self) -> None:
        """Let others work if the turn is over, between two parts of the work; else this does
        nothing.
        """
        if time.perf_counter() >= self._ends:
            await trio.lowlevel.checkpoint()
            self._ends = time.perf_counter() + TURN_SECONDS


async def in_turns(parts: Iterable[T]) -> list[T]:
    """Collect what is made part by part, letting others work in between."""
    turn, made = Turn(), []
    for part in parts:
        made.append(part)
        await turn.pause()
    return made
