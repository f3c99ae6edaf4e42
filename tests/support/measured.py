"""Runs a command, and says how long it took and how much processor time.

`python -m tests.support.measured make unit` counts the processes below the command that a parent
waited for. Those that outlive their parents, such as Spark's Java, are not among them: to adopt
them would change what tests see that make orphans.
"""

import os
import resource
import sys
import time
from contextlib import suppress


def measured(command: list[str]) -> int:
    """Run a command to its end, print what it took, and return its exit code."""
    began = time.monotonic()
    code = _ended(os.spawnvp(os.P_NOWAIT, command[0], command))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall, processor = (seconds / 60 for seconds in (time.monotonic() - began, used.ru_utime + used.ru_stime))
    sys.stdout.write(f"This took {wall:.1f} minutes, and {processor:.1f} minutes of processor time.\n")
    return code


def _ended(process: int) -> int:
    """Wait for a process, and return its exit code."""
    while True:
        with suppress(KeyboardInterrupt):  # the process gets the signal, too
            return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


if __name__ == "__main__":
    sys.exit(measured(sys.argv[1:]))
