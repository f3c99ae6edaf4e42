"""Places in the log: which sequence numbers of an epoch there are.

Rule: kept as runs without a gap, so it stays small however long the log is.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Self

import msgspec


class Run(msgspec.Struct, array_like=True):
    """Events of one epoch that follow each other without a gap."""

    first: int
    last: int
    first_ms: int
    """The time of the first one."""
    last_ms: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1


class Runs:
    """Runs of one epoch, in order, of which no two touch."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self.runs: list[Run] = []
        for run in runs:
            self.add(run)

    @classmethod
    def of(cls, runs: list[Run]) -> Self:
        """Make `Runs` of runs that are in order."""
        made = cls()
        made.runs = list(runs)
        return made

    def add(self, run: Run) -> None:
        begin = bisect_left(self.runs, run.first - 1, key=lambda each: each.last)
        end = bisect_right(self.runs, run.last + 1, key=lambda each: each.first)
        joined = [*self.runs[begin:end], run]
        low = min(joined, key=lambda each: each.first)
        high = max(joined, key=lambda each: each.last)
        self.runs[begin:end] = [Run(low.first, high.last, low.first_ms, high.last_ms)]

    def within(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return which of the places from `first` to `last` there are."""
        begin = bisect_left(self.runs, first, key=lambda each: each.last)
        end = bisect_right(self.runs, last, key=lambda each: each.first)
        return [(max(first, run.first), min(last, run.last)) for run in self.runs[begin:end]]

    def __contains__(self, sequence: int) -> bool:
        return bool(self.within(sequence, sequence))

    @property
    def count(self) -> int:
        return sum(run.count for run in self.runs)

    def gaps(self) -> Iterator[tuple[int, int, Run]]:
        """Yield the first and last place of each gap, from place 1 on, and the run after it."""
        expected = 1
        for run in self.runs:
            if run.first > expected:
                yield expected, run.first - 1, run
            expected = run.last + 1
