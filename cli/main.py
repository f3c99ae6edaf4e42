"""The entry point of the `minicontroller` command, which sets signal handlers before anything slow
is imported, so that Ctrl-C never prints a traceback.

Rule: a command that runs until it is ended (`STAYING`) exits with code 0 on SIGINT and SIGTERM, and
at once until it has something to clean up. All other commands die from the signal, so that an
interruption cannot look like success. Therefore this module imports only what that needs; the
commands are in `commands.py`.
"""

import gc
import os
import signal
import sys
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STARTED_BY = os.getppid()
"""The process that started this one, unless it ended before. Read as early as possible."""
STAYING = frozenset({"audit", "demo", "gateway", "serve", "up"})
COLLECT_AFTER = (20_000, 50, 100)
"""The thresholds of the garbage collector, for `gc.set_threshold`. Most objects of this program
live long: with Python's default of 700, collections took a tenth of a command's start and a quarter
of a bulk creation.
"""


def main() -> None:
    gc.set_threshold(*COLLECT_AFTER)
    for number in SIGNALS:
        signal.signal(number, _end if STAYING.intersection(sys.argv[1:2]) else signal.SIG_DFL)
    from .commands import run

    run(STARTED_BY)


def _end(_number: int, _frame: FrameType | None) -> None:
    """End the process at once. An exception could be raised in code that swallows it."""
    os._exit(0)
