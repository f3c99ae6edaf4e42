"""Where the `minicontroller` command begins: before anything that takes time, so that Ctrl-C is quiet from the first moment on.

Rule: until somebody else listens to signals there is nothing to undo, and SIGINT and SIGTERM end the process with code 0. So this
module imports nothing but what is needed for that; `commands.py` has the commands.
"""

import os
import signal
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> None:
    for number in SIGNALS:
        signal.signal(number, _end)
    from .commands import commands

    commands()


def _end(_number: int, _frame: FrameType | None) -> None:
    """At once: an exception would surface wherever Python happens to be, and some of that code swallows it."""
    os._exit(0)
