"""What a node's process holds, read at quiet points: memory, descriptors, threads and tasks; and
whether it grows.
"""

import re
import signal
import statistics
import time
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from urllib.request import urlopen

import msgspec

from tests.soak.node import mark_of
from tests.support.nodes import NodeProcess
from tests.support.waiting import at_last, until

TASKS = re.compile(r"^minicontroller_tasks (\d++)", re.MULTILINE)
RULING = re.compile(r"^minicontroller_is_controller\{.*\} 1", re.MULTILINE)
QUIET_SECONDS = 10.0
"""For closed connections to be forgotten."""
GIVE_BACK_SECONDS = 60.0
KIB_IN_MIB = 1024


class Held(msgspec.Struct, frozen=True):
    """What a process holds."""

    memory: float
    """The resident memory in MiB after the node gave back what was free."""
    descriptors: int
    threads: int
    tasks: int
    is_controller: bool
    """The controller has more of everything."""
    resident: float = 0.0
    """The resident memory in MiB before that."""

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
    status = status_of(node)
    with urlopen(f"http://{node.http}/metrics", timeout=30) as answer:
        metrics = answer.read().decode()
    tasks = TASKS.search(metrics)
    assert tasks is not None, "the node tells its tasks"
    return Held(
        memory=resident(status),
        descriptors=len(list(Path(f"/proc/{node.pid}/fd").iterdir())),
        threads=int(status["Threads"]),
        tasks=int(tasks[1]),
        is_controller=RULING.search(metrics) is not None,
    )


def status_of(node: NodeProcess) -> dict[str, str]:
    return dict(line.split(":", 1) for line in Path(f"/proc/{node.pid}/status").read_text().splitlines())


def resident(status: Mapping[str, str]) -> float:
    """Return the resident memory of a process in MiB."""
    return int(status["VmRSS"].split()[0]) / KIB_IN_MIB


def give_back(node: NodeProcess) -> None:
    """Have a node of `tests.soak.node` give back the memory that it does not need."""
    mark = mark_of(node.config)
    before = mark.stat().st_size if mark.exists() else 0
    node.signal(signal.SIGUSR2)
    until(lambda: mark.exists() and mark.stat().st_size > before, within=GIVE_BACK_SECONDS)


def quiet(node: NodeProcess) -> Held:
    """Return what a node holds once that stays the same, or when the time for it is over."""
    before: list[tuple[int, int, int]] = []

    def is_the_same(now: Held) -> bool:
        before.append(now.counts)
        time.sleep(0.1)
        return len(before) > 3 and len(set(before[-3:])) == 1

    at_last(lambda: held(node), right=is_the_same, within=QUIET_SECONDS)
    with_free = resident(status_of(node))
    give_back(node)
    return msgspec.structs.replace(held(node), resident=with_free)


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
