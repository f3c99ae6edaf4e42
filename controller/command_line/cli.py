"""Where the `minicontroller` command begins: before anything that takes time, so that Ctrl-C is
quiet from the first moment on.

Rule: what runs until it is ended (`STAYING`) ends by SIGINT and SIGTERM with code 0, and until it
has something to undo at once. Everything else dies of them, as programs do: what was interrupted
must not look like a yes. So this module imports nothing but what is needed for that; `commands.py`
has the commands.
"""

import gc
import os
import signal
import sys
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STAYING = frozenset({"audit", "demo", "serve", "up"})
COLLECT_AFTER = (20_000, 50, 100)
"""New objects, and the two rarer rounds. What is loaded, and what a server makes, is kept: Python's
default, a collection after every 700, cost a tenth of a command's start and a quarter of a bulk
creation.
"""


def main() -> None:
    gc.set_threshold(*COLLECT_AFTER)
    for number in SIGNALS:
        signal.signal(number, _end if STAYING.intersection(sys.argv[1:2]) else signal.SIG_DFL)
    from .commands import run

    run()


def _end(_number: int, _frame: FrameType | None) -> None:
    """End the process at once: an exception would surface wherever Python happens to be, and some
    of that code swallows it.
    """
    os._exit(0)
