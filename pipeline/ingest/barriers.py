"""Where a cluster's history is cut: at the end of each complete snapshot, which tells all topics,
and behind each gap, after which nothing is known.

Rule: a topic's state lasts until an event tells another, or until the next such place, whichever is
first.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .places import Run
from .report import Mark
from .state import ClusterState

GAP = "gap"
SNAPSHOT = "snapshot"


class Barrier(NamedTuple):
    """An event at which all that is known of the topics ends."""

    epoch: int
    sequence: int
    time_ms: int
    cause: str
    begin: int = 0
    """Of a snapshot: the place where it begins."""


def barriers(cluster: ClusterState) -> list[Barrier]:
    """Return the barriers of a cluster, in the order of the log."""
    found = [*_gaps(cluster), *_snapshots(cluster)]
    return sorted(found, key=lambda each: (each.epoch, each.sequence))


def _gaps(cluster: ClusterState) -> Iterator[Barrier]:
    for number, epoch in cluster.epochs.items():
        expected = 1
        for run in epoch.runs:
            if run.first != expected:
                yield Barrier(number, run.first, run.first_ms, GAP)
            expected = run.last + 1


def _snapshots(cluster: ClusterState) -> Iterator[Barrier]:
    """Yield the complete snapshots of a cluster."""
    begin: Mark | None = None
    for mark in sorted(cluster.marks, key=lambda each: (each.epoch, each.sequence)):
        if mark.kind == "snapshot_begin":
            begin = mark
        elif mark.kind == "snapshot_end":
            if begin is not None and begin.epoch == mark.epoch:
                run = _run_at(cluster.epochs[mark.epoch].runs, mark.sequence)
                if run.first <= begin.sequence:
                    yield Barrier(mark.epoch, mark.sequence, mark.time_ms, SNAPSHOT, begin.sequence)
            begin = None


def _run_at(runs: list[Run], sequence: int) -> Run:
    return next(run for run in runs if run.first <= sequence <= run.last)


Numbers = npt.NDArray[np.int64]


class Segments:
    """Stretches of the log between given events, found for many places at once. `n` is the number
    of places, `b` that of the events.
    """

    def __init__(self, between: Iterable[tuple[int, int]]) -> None:
        """Divide the log at these events, given by epoch and sequence in the order of the log."""
        self._epochs, self._sequences = np.array([*between], np.int64).reshape(-1, 2).T

    def number(self, epochs: Numbers, sequences: Numbers) -> Numbers:
        """Count the events up to and including each place. [n] in 0..b."""
        numbers = np.zeros(len(epochs), np.int64)
        for epoch in np.unique(epochs):
            here = epochs == epoch
            begin, end = np.searchsorted(self._epochs, [epoch, epoch + 1])
            numbers[here] = begin + np.searchsorted(self._sequences[begin:end], sequences[here], side="right")
        return numbers
