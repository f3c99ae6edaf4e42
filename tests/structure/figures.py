"""A figure: what a measure found, and what each file adds to it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Figure(NamedTuple):
    value: int
    causes: Mapping[str, int]
    """How much each file, or each name of something in a file, adds to the value or has of it."""


def total(causes: Mapping[str, int]) -> Figure:
    return Figure(sum(causes.values()), causes)


def count(causes: Iterable[str]) -> Figure:
    """Return the number of occurrences, by the file of each."""
    return total(Counter(causes))


def largest(causes: Mapping[str, int]) -> Figure:
    return Figure(max(causes.values(), default=0), causes)


def quantile(values: Iterable[int], share: float) -> int:
    """Return the value that this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0
