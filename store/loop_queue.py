"""Calls from any thread into the event loop.

Rule: posted calls run in the event loop in the order in which they were posted, and never inside
the call that posted them. A burst of posts wakes the loop once, since waking it takes a system
call.
"""

from collections import deque
from collections.abc import Callable

import trio


class LoopQueue:
    """A queue of calls that run in the event loop in which `attach` was called."""

    def __init__(self) -> None:
        self._token: trio.lowlevel.TrioToken | None = None
        self._calls: deque[Callable[[], object]] = deque()
        self._woken = False

    def attach(self) -> None:
        """Post calls to the caller's event loop from now on; nothing can be posted before."""
        if self._token is None:
            self._token = trio.lowlevel.current_trio_token()

    def post(self, call: Callable[[], object]) -> None:
        """Run `call` in the event loop soon. If the loop has ended, the call is dropped."""
        assert self._token is not None, "no event loop is attached"
        self._calls.append(call)
        if not self._woken:
            self._woken = True
            try:
                self._token.run_sync_soon(self._run)
            except trio.RunFinishedError:
                self._calls.clear()

    def _run(self) -> None:
        # Cleared first: a post from now on wakes the loop again, so none is left behind if a call
        # raises.
        self._woken = False
        calls = self._calls
        while calls:
            calls.popleft()()
