"""Which places of an epoch there are, kept as runs: held against a plain set of numbers."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from minicontroller.pipeline.ingest.sequence_ranges import SequenceRange, add, gaps, within

PLACES = st.tuples(st.integers(1, 40), st.integers(0, 6)).map(lambda each: (each[0], each[0] + each[1]))


def a_run(first: int, last: int) -> SequenceRange:
    """Its times are its places."""
    return SequenceRange(first, last, first, last)


@given(st.lists(PLACES), PLACES)
def test_runs_are_a_set(added: list[tuple[int, int]], asked: tuple[int, int]) -> None:
    """Whatever is added in whatever order: the runs are the numbers, in order, never touching, with
    the times of their ends.
    """
    runs: list[SequenceRange] = []
    for each in added:
        add(runs, a_run(*each))
    numbers = {number for first, last in added for number in range(first, last + 1)}
    assert [number for run in runs for number in range(run.first, run.last + 1)] == sorted(numbers)
    assert all(one.last + 1 < other.first for one, other in pairwise(runs))
    assert all((run.first_ms, run.last_ms) == (run.first, run.last) for run in runs)
    there = [number for first, last in within(runs, *asked) for number in range(first, last + 1)]
    assert there == sorted(numbers & set(range(asked[0], asked[1] + 1)))
    missing = [number for first, last, _ in gaps(runs) for number in range(first, last + 1)]
    assert missing == sorted(set(range(1, max(numbers, default=0))) - numbers)
    assert [number for number in range(50) if within(runs, number, number)] == sorted(numbers)
