"""The error of a policy that cannot be loaded, and exceptions of foreign code in one sentence.

Rule: a policy is somebody else's program. Whatever it raises while it is loaded becomes a
`PolicyLoadError` that names the exception and the policy's own line, so that its author needs no
traceback.
"""

import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb

OURS = str(Path(__file__).parent)
STDLIB = sysconfig.get_path("stdlib")


class PolicyLoadError(Exception):
    """The policy cannot be used. The message is a sentence for the person who configured it."""


@contextmanager
def as_load_error(what_failed: str) -> Iterator[None]:
    """Raise a PolicyLoadError that begins with `what_failed` for whatever the block raises."""
    try:
        yield
    except (KeyboardInterrupt, PolicyLoadError):
        raise
    except BaseException as error:  # a policy's `sys.exit()` is its fault, not our end
        raise PolicyLoadError(f"{what_failed}: {describe_exception(error)}") from error


def describe_exception(error: BaseException) -> str:
    """Describe an exception and its place: `ValueError: the text (config/policy.py:12)`."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    summary = f"{type(error).__name__}: {' '.join(text.split())}" if text else type(error).__name__
    place = _place(error)
    return f"{summary} ({place})" if place else summary


def _place(error: BaseException) -> str | None:
    """Return the innermost line of the policy itself, and not of a library that it called, at which
    an exception was raised.
    """
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{shown(error.filename)}:{error.lineno}"
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    foreign = [(file, line) for file, line in lines if not file.startswith((OURS, "<frozen "))]
    own = [(file, line) for file, line in foreign if not file.startswith(STDLIB)] or foreign
    return f"{shown(own[-1][0])}:{own[-1][1]}" if own else None


def shown(file: str) -> str:
    """Return a path relative to the working directory, if it lies in there."""
    here = Path.cwd()
    return str(Path(file).relative_to(here)) if Path(file).is_relative_to(here) else file
