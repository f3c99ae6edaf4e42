"""Ends a command within two seconds of Ctrl-C or SIGTERM, with a sentence and without leaving child
processes.

The first signal raises `Interrupted` in the main thread, which unwinds normally. If a library or a
policy blocks the main thread for GRACE_SECONDS, another thread kills the child processes and this
one; the next run ingests what was not committed.
"""

import logging
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import NoReturn

GRACE_SECONDS = 1.0
"""How long the main thread has until the process is ended without it."""
REMOVALS = 20
"""How often the removal of a folder is tried, within GRACE_SECONDS."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
SENTENCE = "Interrupted."


class Interrupted(KeyboardInterrupt):
    """A signal asks the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.code = 128 + number
        """The exit code that names the signal."""


class Ending:
    """What has to be ended with this process."""

    def __init__(self) -> None:
        self.began: float | None = None
        """When the signal came that ends the command, on the monotonic clock."""
        self.finishes: Callable[[], None] | None = None
        """What to do at the signal in place of raising: the work then ends by itself, soon."""
        self.folders: set[Path] = set()
        self._others: frozenset[int] | None = None

    @contextmanager
    def of_children(self) -> Iterator[None]:
        """End the processes that are started within the block, and theirs, if a signal ends it."""
        self._others = frozenset(children(os.getpid()))
        try:
            yield
        finally:
            if self.began is not None:
                self.kill()
            self._others = None

    def kill(self) -> None:
        """End the processes that were started within `of_children`, and theirs, at once."""
        if self._others is None:
            return
        own = set(children(os.getpid())) - self._others
        for process in [*(each for child in own for each in descendants(child)), *own]:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)


ending = Ending()
"""The end of this process: it has one."""


@contextmanager
def on_signals() -> Iterator[None]:
    """Have Ctrl-C and SIGTERM end the command that runs within the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ending.began = None
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = {number: signal.signal(number, _came) for number in SIGNALS}
    wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(reading, over), name="ending", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        logging.disable(logging.NOTSET)
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(writing)
        watcher.join()
        os.close(reading)


def _came(number: int, _frame: object) -> None:
    if ending.began is not None:
        return  # it is ending
    ending.began = monotonic()
    if ending.finishes is None:
        logging.disable()  # py4j would log what interrupts it, with a trace
        raise Interrupted(number)
    ending.finishes()


def _watch(reading: int, over: threading.Event) -> None:
    """Wait for a signal, and give the main thread its time."""
    while data := os.read(reading, 1):
        if data[0] in SIGNALS:
            if not over.wait(GRACE_SECONDS):
                _end(data[0])
            return


def _end(number: int) -> NoReturn:
    with suppress(OSError, ValueError):
        os.write(2, f"{SENTENCE}\n".encode())
    ending.kill()
    for folder in ending.folders:
        remove(folder)
    os._exit(128 + number)


def remove(folder: Path) -> None:
    """Remove a folder of processes that have been killed, which may write for a moment yet."""
    for _ in range(REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        sleep(GRACE_SECONDS / REMOVALS)


def children(process: int) -> list[int]:
    found = list[int]()
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found


def descendants(process: int) -> list[int]:
    """Return the processes below a process, the nearest first."""
    return [each for child in children(process) for each in (child, *descendants(child))]
