"""The verdict on what nodes hold: what grows is found, and what goes up and down is not."""

from collections.abc import Callable

import pytest

from tests.soak.figures import Held, Sample, growth, slope
from tests.soak.verdict import of_node, over_time, table


def samples(held: Callable[[int], Held], *, pid: int = 7) -> list[Sample]:
    """Look once in ten seconds, for ten minutes."""
    return [Sample(10.0 * number, 4, pid, held(number)) for number in range(62)]


def held(*, memory: float = 60.0, descriptors: int = 17, tasks: int = 33, is_controller: bool = False) -> Held:
    return Held(memory, descriptors, 3, tasks, is_controller)


def wrong(found: list[Sample]) -> list[str]:
    return [line.what for line in of_node(found, 4, spared=True) if line.holds is False]


def test_a_node_that_holds_what_it_held_passes() -> None:
    """Memory that rises until it is warm, noise, and the turns as controller are no leak."""

    def steady(number: int) -> Held:
        rules = number % 5 == 0
        memory = 50 + min(number, 15) + number % 3
        return held(memory=memory, descriptors=17 + number % 2 + 6 * rules, tasks=33 + 27 * rules, is_controller=rules)

    assert wrong(samples(steady)) == []


@pytest.mark.parametrize(
    ("leaking", "what"),
    [
        (lambda number: held(memory=60 + number / 3), "memory of node 4 (never killed)"),
        (lambda number: held(descriptors=17 + number // 4), "descriptors of node 4 (never killed)"),
        (lambda number: held(tasks=33 + number), "tasks of node 4 (never killed)"),
    ],
)
def test_a_leak_is_found(leaking: Callable[[int], Held], what: str) -> None:
    """Two MiB a minute, a descriptor in 40 s, a task in 10 s."""
    assert wrong(samples(leaking)) == [what]


def test_a_slope_is_not_moved_by_an_odd_point() -> None:
    """The figure is what is added in a minute."""
    points = [(10.0 * number, 5.0 + number / 6) for number in range(30)]
    points[3] = (30.0, 500.0)
    assert slope(points) == pytest.approx(1.0, rel=0.05)
    assert slope(points[:1]) == 0.0
    assert growth([3, 3, 4, 9, 9, 9]) == 6


def test_a_short_run_says_nothing_of_memory() -> None:
    """Minutes after the warm-up are needed for a verdict."""
    assert wrong(samples(lambda number: held(memory=60 + number))[:10]) == []


def test_the_rows_are_aligned() -> None:
    """People read the table, with the memory of all nodes over time before it."""
    found = samples(lambda _number: held())
    rows = table(of_node(found, 4, spared=True))
    assert {row[:6] for row in rows} == {"ok    "}
    assert over_time(found)[-1].split() == ["610", "s", "60.0"]
