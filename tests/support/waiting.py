"""The one place where tests wait for another process: by asking it again, against a deadline, never
for a fixed time.
"""

import time
from collections.abc import Callable
from typing import TypeVar

Seen = TypeVar("Seen")

PAUSE_SECONDS = 0.02  # between two questions
PATIENCE_SECONDS = 90.0  # of a machine that has much else to do


def until(
    look: Callable[[], Seen],
    *,
    right: Callable[[Seen], bool] = bool,
    within: float = PATIENCE_SECONDS,
    pause: float = PAUSE_SECONDS,
) -> Seen:
    """What `look` returns as soon as it is right; at the deadline an error that shows what it was
    instead.
    """
    seen = at_last(look, right=right, within=within, pause=pause)
    assert right(seen), f"after {within} s it is still {seen!r}"
    return seen


def at_last(
    look: Callable[[], Seen], *, right: Callable[[Seen], bool], within: float, pause: float = PAUSE_SECONDS
) -> Seen:
    """Return what `look` returns as soon as it is right, or what it returns at the deadline."""
    deadline = time.monotonic() + within
    while not right(seen := look()) and time.monotonic() < deadline:
        time.sleep(pause)
    return seen
