"""Handles the reader of a command's output: a terminal, a pipe that may close, or nobody.

Rule: a closed pipe, as with `head`, is not an error. It changes neither the effects of a command
nor its exit code.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

STDOUT = 1


def is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def is_conversation() -> bool:
    """Return whether a person reads the output and can answer."""
    return is_terminal() and sys.stdin is not None and sys.stdin.isatty()


@contextmanager
def readers_may_leave() -> Iterator[None]:
    """End the block if the reader of its output closes the pipe. The code after it still runs."""
    try:
        yield
    except BrokenPipeError:
        nobody_reads()


def nobody_reads() -> None:
    """Redirect stdout to the null device, so that Python's final flush does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STDOUT)
    os.close(nowhere)


def print_json(document: object) -> None:
    import json  # ASCII only, so that no text can control a terminal

    click.echo(json.dumps(document, indent=2))
