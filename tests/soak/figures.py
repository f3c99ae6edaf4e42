"""What a node's process holds, read at quiet points: memory, descriptors, threads and tasks; and
whether it grows.
"""

import re
import statistics
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from urllib.request import urlopen

import msgspec

from tests.support.nodes import NodeProcess
from tests.support.waiting import at_last

TASKS = re.compile(r"^minicontroller_tasks (\d++)", re.MULTILINE)
RULING = re.compile(r"^minicontroller_is_controller\{.*\} 1", re.MULTILINE)
QUIET_SECONDS = 10.0
"""For closed connections to be forgotten."""
PAGE_KIB = 1024


class Held(msgspec.Struct, frozen=True):
    """What a process holds. Memory is resident, in MiB."""

    memory: float
    descriptors: int
    threads: int
    tasks: int
    is_controller: bool
    """The controller has more of everything."""

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.descriptors, self.threads, self.tasks


class Sample(msgspec.Struct, frozen=True):
    """What one node holds at a quiet point, so many seconds after the begin."""

    seconds: float
    node: int
    pid: int
    held: Held


def held(node: NodeProcess) -> Held:
    place = Path(f"/proc/{node.pid}")
    status = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
    with urlopen(f"http://{node.http}/metrics", timeout=30) as answer:
        metrics = answer.read().decode()
    tasks = TASKS.search(metrics)
    assert tasks is not None, "the node tells its tasks"
    return Held(
        memory=int(status["VmRSS"].split()[0]) / PAGE_KIB,
        descriptors=len(list((place / "fd").iterdir())),
        threads=int(status["Threads"]),
        tasks=int(tasks[1]),
        is_controller=RULING.search(metrics) is not None,
    )


def quiet(node: NodeProcess) -> Held:
    """Return what a node holds once that stays the same, or when the time for it is over."""
    before: list[tuple[int, int, int]] = []

    def is_the_same(now: Held) -> bool:
        before.append(now.counts)
        time.sleep(0.1)
        return len(before) > 3 and len(set(before[-3:])) == 1

    return at_last(lambda: held(node), right=is_the_same, within=QUIET_SECONDS)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return how much is added in a minute: the median over all pairs of points (Theil and Sen),
    which a few odd points do not move. Points are seconds and values.
    """
    slopes = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in combinations(points, 2)]
    return statistics.median(slopes) * 60 if slopes else 0.0


def growth(counts: Sequence[int]) -> float:
    """Return by how much the last third of the counts is above the first third, in the median."""
    third = max(1, len(counts) // 3)
    return statistics.median(counts[-third:]) - statistics.median(counts[:third])
