"""The time of a process: one clock, which can be advanced.

Whatever a node or a gateway does by time follows the clock of its event loop. Deadlines, pauses and
ages read it by trio (`trio.current_time`, `trio.sleep`, `trio.move_on_at`), and timestamps that
outlive the process by `now` and `now_ms`. What no advance may change reads `time.perf_counter`: how
long work takes, and the timeouts of threads and of foreign programs, such as those of ZooKeeper's
sessions.

Rule: `python -m tests.structure` counts whoever reads another clock.
"""

import time

import trio

BEGINNING_SECONDS = 100_000.0
"""The time at which each clock begins, so that a moment that is set to 0 is long past."""


class Clock(trio.abc.Clock):
    """The clock of an event loop, given to `trio.run`: real time, and what it was advanced by."""

    def __init__(self) -> None:
        self.advanced = 0.0
        """The seconds that it is ahead of real time."""
        self._origin = BEGINNING_SECONDS - time.perf_counter()

    def start_clock(self) -> None:
        """Do nothing: the time before the event loop runs counts."""

    def current_time(self) -> float:
        return self._origin + time.perf_counter()

    def deadline_to_sleep_time(self, deadline: float) -> float:
        return deadline - self.current_time()

    def advance(self, seconds: float) -> None:
        """Move the time forward at once, as for a process that was stopped for so long: what was
        due meanwhile is due now, each deadline once. Called in the event loop.
        """
        if seconds < 0:
            raise ValueError(f"A clock cannot be set back, not by {-seconds:g} s either.")
        self.advanced += seconds
        self._origin += seconds


def now() -> float:
    """Return the seconds since 1970 by the clock of this event loop; outside of one, and under a
    clock that is none of ours, by the machine's.
    """
    return time.time() + _advanced()


def now_ms() -> int:
    """Return the milliseconds since 1970, as `now` counts."""
    return time.time_ns() // 1_000_000 + int(_advanced() * 1000)


def _advanced() -> float:
    try:
        clock = trio.lowlevel.current_clock()
    except RuntimeError:
        return 0.0
    return clock.advanced if isinstance(clock, Clock) else 0.0
