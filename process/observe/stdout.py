"""What a process tells whoever started it: lines on its standard output."""

import os
import sys


def say(line: str) -> None:
    """Print a line on stdout. A closed stdout does not stop the process."""
    try:
        print(line, flush=True)  # noqa: T201
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python's final flush fails
