"""The verdict of a soak: a table of what had to hold, with the figure of each.

Rule: pure. A line that did not hold says why.
"""

from collections.abc import Sequence

import msgspec

from tests.soak.figures import Sample, growth, slope

WARM_UP = 0.3
"""The share of the time after which memory must stay as it is."""
SHORTEST_SECONDS = 120.0
"""Memory is judged if there is so much time after the warm-up; less says nothing."""
MOST_MIB_A_MINUTE = 1.0
MOST_MORE = 10
"""The connections between nodes come and go, with three tasks at most for each of three others."""
FEWEST_POINTS = 6
"""Counts are judged if there are so many quiet points to compare."""
ROWS = 12


class Line(msgspec.Struct, frozen=True):
    """One row of the table."""

    what: str
    figure: str
    holds: bool | None = True
    """None: it is shown and not judged."""


def of_node(samples: Sequence[Sample], node: int, *, spared: bool) -> list[Line]:
    """Judge what one node held at the quiet points, in their order."""
    own = [each for each in samples if each.node == node]
    if not own:
        return [Line(f"node {node}", "never seen at a quiet point", holds=False)]
    name = f"node {node}" + (" (never killed)" if spared else "")
    return [(_memory if spared else _memory_of_lives)(own, f"memory of {name}"), *_counts(own, name)]


def _memory_of_lives(own: Sequence[Sample], what: str) -> Line:
    seen = [each.held.memory for each in own]
    lives = len({each.pid for each in own})
    return Line(what, f"{min(seen):.1f} to {max(seen):.1f} MiB in {lives} lives that saw a quiet point", None)


def _memory(own: Sequence[Sample], what: str) -> Line:
    begin = own[0].seconds + (own[-1].seconds - own[0].seconds) * WARM_UP
    warm = [each for each in own if each.seconds >= begin]
    rise = slope([(each.seconds, each.held.memory) for each in warm])
    figure = (
        f"{own[0].held.memory:.1f} MiB, {warm[0].held.memory:.1f} warm, {own[-1].held.memory:.1f} at the end: "
        f"{rise:+.2f} MiB a minute over {warm[-1].seconds - warm[0].seconds:.0f} s (at most {MOST_MIB_A_MINUTE:.1f}); "
        f"{max(each.held.resident for each in own):.1f} at most with what was free"
    )
    is_judged = warm[-1].seconds - warm[0].seconds >= SHORTEST_SECONDS
    return Line(what, figure, rise <= MOST_MIB_A_MINUTE if is_judged else None)


def _counts(own: Sequence[Sample], name: str) -> list[Line]:
    """Compare the counts of a follower with those of the same node as a follower, and those of a
    controller likewise; before the first window nobody was connected.
    """
    lines = []
    for role, samples in {
        "": [each for each in own if each.seconds and not each.held.is_controller],
        " as the controller": [each for each in own if each.seconds and each.held.is_controller],
    }.items():
        for what, counts in {
            "descriptors": [each.held.descriptors for each in samples],
            "threads": [each.held.threads for each in samples],
            "tasks": [each.held.tasks for each in samples],
        }.items():
            if counts:
                lines.append(_count(f"{what} of {name}{role}", counts))
    return lines


def _count(what: str, counts: Sequence[int]) -> Line:
    more = growth(counts)
    figure = (
        f"{counts[0]} at first, {max(counts)} at most, {counts[-1]} at the end: {more:+.0f} (at most {MOST_MORE:+}) "
        f"at {len(counts)} quiet points"
    )
    return Line(what, figure, more <= MOST_MORE if len(counts) >= FEWEST_POINTS else None)


def over_time(samples: Sequence[Sample]) -> list[str]:
    """Return the memory of all nodes over time, in so many rows."""
    nodes = sorted({each.node for each in samples})
    moments = sorted({each.seconds for each in samples})
    chosen = moments[:: max(1, len(moments) // ROWS)]
    by_place = {(each.seconds, each.node): each.held.memory for each in samples}
    rows = ["MiB at    " + "".join(f"{f'node {node}':>9}" for node in nodes)]
    for moment in dict.fromkeys((*chosen, *moments[-1:])):
        cells = (by_place.get((moment, node)) for node in nodes)
        rows.append(f"{moment:6.0f} s  " + "".join("        -" if cell is None else f"{cell:9.1f}" for cell in cells))
    return rows


def table(lines: Sequence[Line]) -> list[str]:
    width = max(len(line.what) for line in lines)
    marks = {True: "ok  ", False: "FAIL", None: "-   "}
    return [f"{marks[line.holds]}  {line.what:<{width}}  {line.figure}" for line in lines]
