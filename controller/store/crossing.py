"""From any thread into the event loop, in order.

Rule: what is posted runs in the event loop's thread, one after the other, never inside the call that posted it. A burst of
posts wakes the loop once: the wake-up is a system call, the posts are an append each.
"""

from collections import deque
from collections.abc import Callable

import trio


class Crossing:
    """A queue of calls into one event loop."""

    def __init__(self, token: trio.lowlevel.TrioToken) -> None:
        self._token = token
        self._calls: deque[Callable[[], object]] = deque()
        self._woken = False

    def post(self, call: Callable[[], object]) -> None:
        """Run `call` in the event loop soon. A loop that has ended needs no news."""
        self._calls.append(call)
        if not self._woken:
            self._woken = True
            try:
                self._token.run_sync_soon(self._run)
            except trio.RunFinishedError:
                self._calls.clear()

    def _run(self) -> None:
        # Cleared first: a post from now on wakes the loop again, so none is left behind if a call raises.
        self._woken = False
        calls = self._calls
        while calls:
            calls.popleft()()
