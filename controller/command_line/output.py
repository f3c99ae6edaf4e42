"""Who reads what a command prints: a terminal, a pipe whose other end may leave, or nobody.

Rule: a reader who leaves, as `head` does, is no accident, and changes nothing of what was done or
of the code that tells it.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

STDOUT = 1


def is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def is_conversation() -> bool:
    """Whether a person reads the output and can answer."""
    return is_terminal() and sys.stdin is not None and sys.stdin.isatty()


@contextmanager
def readers_may_leave() -> Iterator[None]:
    """End the block when the reader of its output leaves; what comes after the block
    is still done.
    """
    try:
        yield
    except BrokenPipeError:
        nobody_reads()


def nobody_reads() -> None:
    """Send stdout nowhere from now on, so that Python does not complain of it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STDOUT)
    os.close(nowhere)
