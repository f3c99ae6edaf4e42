"""Percentiles of latencies: counted in buckets by the tasks, read from the counts here.

Rule: a percentile is less than 1 % off, and below 128 us exact. Counts of buckets add up, so one
pass over the events gives the percentiles of every part and of the whole; and they are the same
however the events are dealt out.
"""

from collections import Counter
from dataclasses import dataclass, field

_BITS = 7
"""The leading ones that a bucket keeps: its width is at most 1/64 of where it begins, and its
middle at most 1/128 off.
"""


def bucket(microseconds: str) -> str:
    """Return an expression for the beginning of the bucket of a value."""
    value = f"greatest({microseconds}, 0)"
    shift = f"greatest(floor(log2(greatest({microseconds}, 1)))::INTEGER - {_BITS - 1}, 0)"
    return f"(({value} >> {shift}) << {shift})"


@dataclass
class Latencies:
    """The number of values in each bucket."""

    counts: Counter[int] = field(default_factory=Counter)
    slowest: int = 0

    def add(self, bucket: int, count: int, slowest: int) -> None:
        self.counts[bucket] += count
        self.slowest = max(self.slowest, slowest)

    def __add__(self, other: "Latencies") -> "Latencies":
        return Latencies(self.counts + other.counts, max(self.slowest, other.slowest))

    @property
    def count(self) -> int:
        return self.counts.total()

    def percentile(self, percent: int) -> int | None:
        """Return the least value, in microseconds, that so many percent do not exceed; None without
        values.
        """
        wanted = -(-self.count * percent // 100)
        for start in sorted(self.counts):
            wanted -= self.counts[start]
            if wanted <= 0:
                width = 1 << max(start.bit_length() - _BITS, 0)
                return min(start + (width - 1) // 2, self.slowest)
        return None

    @property
    def figures(self) -> tuple[int | None, ...]:
        """The number of values; p50, p90, p99; and the slowest."""
        slowest = self.slowest if self.counts else None
        return self.count, self.percentile(50), self.percentile(90), self.percentile(99), slowest
