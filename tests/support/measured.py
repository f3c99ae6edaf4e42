"""Runs a command, and says how long it took and how much processor time.

`python -m tests.support.measured make unit` counts all processes below the command. On Linux that
includes those that end after their parents, such as Spark's Java, which ends after its Python.
"""

import ctypes
import os
import resource
import sys
import time
from contextlib import suppress

PR_SET_CHILD_SUBREAPER = 36
"""The option of prctl(2) by which orphans below this process become its children."""


def measured(command: list[str]) -> int:
    """Run a command to its end, print what it took, and return its exit code."""
    began = time.monotonic()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    code = _ended(os.spawnvp(os.P_NOWAIT, command[0], command))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall, processor = (seconds / 60 for seconds in (time.monotonic() - began, used.ru_utime + used.ru_stime))
    sys.stdout.write(f"This took {wall:.1f} minutes, and {processor:.1f} minutes of processor time.\n")
    return code


def _ended(process: int) -> int:
    """Wait for a process, and for the orphans that end before it; return its exit code."""
    while True:
        with suppress(KeyboardInterrupt):  # the process gets the signal, too
            ended, status = os.wait()
            if ended == process:
                return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(measured(sys.argv[1:]))
