"""Long work in steps: a generator that yields wherever other tasks may run, and returns its result.

It says nothing about when they do. Who runs the work decides that (`time_slices.py`).
"""

from collections.abc import Generator, Iterable
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]


def one_by_one(parts: Iterable[T]) -> Steps[list[T]]:
    made = []
    for part in parts:
        made.append(part)
        yield
    return made


def finished(steps: Steps[T]) -> T:
    """Take all steps, one after the other, and return the result."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
