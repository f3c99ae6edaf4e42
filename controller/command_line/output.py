"""Who reads what a command prints: a terminal, a pipe whose other end may leave, or nobody.

Rule: a reader who leaves, as `head` does, is no accident, and changes nothing of what was done or of the code that tells it.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

STDOUT = 1


def is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def is_conversation() -> bool:
    """Somebody reads, and can answer."""
    return is_terminal() and sys.stdin is not None and sys.stdin.isatty()


@contextmanager
def readers_may_leave() -> Iterator[None]:
    """What is printed in the block ends with its reader; what comes after the block comes all the same."""
    try:
        yield
    except BrokenPipeError:
        nobody_reads()


def nobody_reads() -> None:
    """From now on stdout leads nowhere: else Python would complain of it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STDOUT)
    os.close(nowhere)
