"""Places in the log: which sequence numbers of an epoch there are.

Rule: kept as runs without a gap, so it stays small however long the log is.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec


class Run(msgspec.Struct, array_like=True):
    """Events of one epoch that follow each other without a gap."""

    first: int
    last: int
    first_ms: int
    """The time of the first event, in milliseconds since 1970."""
    last_ms: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1


def add(runs: list[Run], run: Run) -> None:
    """Add a run to the runs of an epoch, which are in order, and of which no two touch."""
    begin = bisect_left(runs, run.first - 1, key=lambda each: each.last)
    end = bisect_right(runs, run.last + 1, key=lambda each: each.first)
    joined = [*runs[begin:end], run]
    low = min(joined, key=lambda each: each.first)
    high = max(joined, key=lambda each: each.last)
    runs[begin:end] = [Run(low.first, high.last, low.first_ms, high.last_ms)]


def within(runs: Sequence[Run], first: int, last: int) -> list[tuple[int, int]]:
    """Return which of the places from `first` to `last` are in runs."""
    begin = bisect_left(runs, first, key=lambda each: each.last)
    end = bisect_right(runs, last, key=lambda each: each.first)
    return [(max(first, run.first), min(last, run.last)) for run in runs[begin:end]]


def gaps(runs: Iterable[Run]) -> Iterator[tuple[int, int, Run]]:
    """Yield the first and last place of each gap, from place 1 on, and the run after it."""
    expected = 1
    for run in runs:
        if run.first > expected:
            yield expected, run.first - 1, run
        expected = run.last + 1
