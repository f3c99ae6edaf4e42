"""What a command costs with all processes that it starts: wall time, processor time, and the memory
of the largest Python worker of Spark.

Rule: processes are looked at while they run, and each one counts as it was last seen. What the
system adds up for their parents would be less: Spark's daemon does not wait for its workers.
Whoever loses its parent becomes a child of this process, which waits for all of them.
"""

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

SAMPLE_SECONDS: Final = 0.1
PR_SET_CHILD_SUBREAPER: Final = 36


class Run(NamedTuple):
    """One command."""

    seconds: float
    processor_seconds: float
    worker_bytes: int
    """The most that any Python worker of Spark held (its resident set); 0 where there was none."""
    output: str


class _Watch(threading.Thread):
    """Looks at all descendants of this process until it is told to end."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ended = threading.Event()
        self._seconds: dict[int, float] = {}
        self.largest = 0

    def run(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            for pid in _descendants(os.getpid()):
                with suppress(OSError):  # it has ended
                    self._seconds[pid] = _processor_seconds(pid)
                    self.largest = max(self.largest, _worker_bytes(pid))

    def end(self) -> float:
        """End, and return the processor time of all that ran."""
        self._ended.set()
        self.join()
        return sum(self._seconds.values())


def run(*arguments: str) -> Run:
    """Raises CalledProcessError with what it said."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    watch, began = _Watch(), time.monotonic()
    watch.start()
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        output, errors = process.communicate()
        seconds = time.monotonic() - began
    with suppress(ChildProcessError):  # there is none left
        while True:
            os.wait()
    processor_seconds = watch.end()
    if process.returncode:
        print(errors, file=sys.stderr)
        raise subprocess.CalledProcessError(process.returncode, arguments, output, errors)
    return Run(seconds, processor_seconds, watch.largest, output)


def _processor_seconds(pid: int) -> float:
    """Processor time of a process so far, without that of its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _descendants(pid: int) -> Iterator[int]:
    try:
        children = Path(f"/proc/{pid}/task").glob("*/children")
        numbers = [int(number) for file in children for number in file.read_text().split()]
    except OSError:
        return
    for number in numbers:
        yield number
        yield from _descendants(number)


def _worker_bytes(pid: int) -> int:
    """Largest resident set of a worker of PySpark's so far; 0 for anything else."""
    place = Path(f"/proc/{pid}")
    if b"pyspark" not in (place / "cmdline").read_bytes() or b"java" in (place / "comm").read_bytes():
        return 0
    [peak] = [line for line in (place / "status").read_text().splitlines() if line.startswith("VmHWM:")] or ["VmHWM: 0"]
    return int(peak.split()[1]) << 10
