"""Sets of sequence numbers of an epoch, as sorted lists of ranges that neither overlap nor touch.

A set has one range more than the epoch has gaps, however long the log is.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec

Position = tuple[int, int]
"""An event's epoch and sequence."""


class SequenceRange(msgspec.Struct, array_like=True):
    """Consecutive sequence numbers of one epoch, `first` and `last` included."""

    first: int
    last: int
    first_ms: int
    """The time of the first event, in milliseconds since 1970."""
    last_ms: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1


def add(ranges: list[SequenceRange], span: SequenceRange) -> None:
    """Add a range to a set, and join it with the ranges that it overlaps or touches."""
    begin = bisect_left(ranges, span.first - 1, key=lambda each: each.last)
    end = bisect_right(ranges, span.last + 1, key=lambda each: each.first)
    joined = [*ranges[begin:end], span]
    low = min(joined, key=lambda each: each.first)
    high = max(joined, key=lambda each: each.last)
    ranges[begin:end] = [SequenceRange(low.first, high.last, low.first_ms, high.last_ms)]


def within(ranges: Sequence[SequenceRange], first: int, last: int) -> list[tuple[int, int]]:
    """Return the parts of `first` to `last` that the set has, as pairs of first and last."""
    begin = bisect_left(ranges, first, key=lambda each: each.last)
    end = bisect_right(ranges, last, key=lambda each: each.first)
    return [(max(first, span.first), min(last, span.last)) for span in ranges[begin:end]]


def gaps(ranges: Iterable[SequenceRange]) -> Iterator[tuple[int, int, SequenceRange]]:
    """Yield the first and last missing number of each gap from 1 on, and the range after it."""
    expected = 1
    for span in ranges:
        if span.first > expected:
            yield expected, span.first - 1, span
        expected = span.last + 1
