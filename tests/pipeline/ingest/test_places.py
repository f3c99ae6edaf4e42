"""Which places of an epoch there are, kept as runs: held against a plain set of numbers."""

from hypothesis import given
from hypothesis import strategies as st

from minicontroller.pipeline.ingest.places import Run, Runs

PLACES = st.tuples(st.integers(1, 40), st.integers(0, 6)).map(lambda each: (each[0], each[0] + each[1]))


def a_run(first: int, last: int) -> Run:
    """Its times are its places."""
    return Run(first, last, first, last)


@given(st.lists(PLACES), PLACES)
def test_runs_are_a_set(added: list[tuple[int, int]], asked: tuple[int, int]) -> None:
    """Whatever is added in whatever order: the runs are the numbers, in order, never touching, with
    the times of their ends.
    """
    runs = Runs(a_run(*each) for each in added)
    numbers = {number for first, last in added for number in range(first, last + 1)}
    assert [number for run in runs.runs for number in range(run.first, run.last + 1)] == sorted(numbers)
    assert all(one.last + 1 < other.first for one, other in zip(runs.runs, runs.runs[1:], strict=False))
    assert all((run.first_ms, run.last_ms) == (run.first, run.last) for run in runs.runs)
    within = [number for first, last in runs.within(*asked) for number in range(first, last + 1)]
    assert within == sorted(numbers & set(range(asked[0], asked[1] + 1)))
    missing = [number for first, last, _ in runs.gaps() for number in range(first, last + 1)]
    assert missing == sorted(set(range(1, max(numbers, default=0))) - numbers)
    assert [number for number in range(50) if number in runs] == sorted(numbers)
