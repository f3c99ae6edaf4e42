"""The clocks that tests run on: one that a test advances, and one that jumps by itself."""

from math import inf

import trio
from trio.testing import wait_all_tasks_blocked

from minicontroller.clock import Clock

BLOCKED_SECONDS = 1e-6
"""For so long every task waits before the clock jumps. Tests that wait until all tasks are blocked
go on first.
"""
LOOK_SECONDS = 0.001


class JumpingClock(Clock):
    """Jumps to the next deadline as soon as every task waits, as trio's clock for tests does.
    Timestamps move with it, and real time goes on as well.
    """

    def start_clock(self) -> None:
        trio.lowlevel.current_trio_token().run_sync_soon(trio.lowlevel.spawn_system_task, self._jump)

    async def _jump(self) -> None:
        while True:
            await wait_all_tasks_blocked(BLOCKED_SECONDS)
            left = trio.lowlevel.current_statistics().seconds_to_next_deadline
            if left < inf:
                self.advance(max(left, 0))
            else:  # something outside of the event loop is awaited
                await wait_all_tasks_blocked(LOOK_SECONDS)
