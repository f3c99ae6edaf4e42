"""Where the `minicontroller` command begins: before anything that takes time, so that Ctrl-C is quiet from the first moment on.

Rule: until somebody else listens to signals there is nothing to undo, and SIGINT and SIGTERM end the process with code 0. So this
module imports nothing but what is needed for that; `commands.py` has the commands.
"""

import gc
import os
import signal
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
COLLECT_AFTER = (20_000, 50, 100)
"""New objects, and the two rarer rounds. What is loaded, and what a server makes, is kept: Python's default, a collection after every
700, cost a tenth of a command's start and a quarter of a bulk creation."""


def main() -> None:
    gc.set_threshold(*COLLECT_AFTER)
    for number in SIGNALS:
        signal.signal(number, _end)
    from .commands import commands

    commands()


def _end(_number: int, _frame: FrameType | None) -> None:
    """At once: an exception would surface wherever Python happens to be, and some of that code swallows it."""
    os._exit(0)
