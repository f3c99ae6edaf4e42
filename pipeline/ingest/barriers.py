"""Where a cluster's history is cut: at the end of each complete snapshot, which tells all topics,
and behind each gap, after which nothing is known.

Rule: a topic's state lasts until an event tells another, or until the next such place, whichever is
first.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .places import Runs
from .report import Mark
from .state import ClusterState

Place = tuple[int, int]
"""An event's epoch and sequence."""
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

    def is_around(self, place: Place) -> bool:
        """Whether it is a snapshot that has begun before a place and is not complete without it."""
        return self.cause == SNAPSHOT and (self.epoch, self.begin) < place <= (self.epoch, self.sequence)


def barriers(cluster: ClusterState) -> list[Barrier]:
    """Return the barriers of a cluster, in the order of the log."""
    found = [*_gaps(cluster), *_snapshots(cluster)]
    return sorted(found, key=lambda each: (each.epoch, each.sequence))


def _gaps(cluster: ClusterState) -> Iterator[Barrier]:
    for number, epoch in cluster.epochs.items():
        for _, _, run in Runs.of(epoch.runs).gaps():
            yield Barrier(number, run.first, run.first_ms, GAP)


def _snapshots(cluster: ClusterState) -> Iterator[Barrier]:
    """Yield the complete snapshots of a cluster."""
    begin: Mark | None = None
    for mark in sorted(cluster.marks, key=lambda each: (each.epoch, each.sequence)):
        if mark.kind == "snapshot_begin":
            begin = mark
        elif mark.kind == "snapshot_end":
            if begin is not None and begin.epoch == mark.epoch:
                places = begin.sequence, mark.sequence
                if Runs.of(cluster.epochs[mark.epoch].runs).within(*places) == [places]:
                    yield Barrier(mark.epoch, mark.sequence, mark.time_ms, SNAPSHOT, begin.sequence)
            begin = None


def begin_of_change(place: Place, found: Iterable[Barrier]) -> Place:
    """Return where a change of the topics can begin at the earliest, if `place` is the first one
    that came: a snapshot that became complete tells topics from its begin on.
    """
    return min([place, *((each.epoch, each.begin) for each in found if each.is_around(place))])


Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


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


class Places:
    """Where what events of one cluster tell of topics takes effect, for many at once: what a
    snapshot tells, at its end. `n` is their number.
    """

    def __init__(self, found: Sequence[Barrier]) -> None:
        self._segments = Segments((each.epoch, each.sequence) for each in found)
        snapshots = [barrier for barrier in found if barrier.cause == SNAPSHOT]
        self._ends = Segments((each.epoch, each.sequence) for each in snapshots)
        self._snapshots = np.array([(each.epoch, each.begin, each.sequence, each.time_ms) for each in snapshots])

    def of(
        self, epochs: Numbers, sequences: Numbers, times: Numbers, in_snapshot: Flags
    ) -> tuple[Numbers, Numbers, Numbers, Flags]:
        """Find for each the sequence, time (in microseconds) and segment where it takes effect, and
        whether it does: what a snapshot without an end tells does not. [n]
        """
        takes_effect = ~in_snapshot
        if len(self._snapshots):
            at = np.minimum(self._ends.number(epochs, sequences), len(self._snapshots) - 1)
            its_epoch, begin, end, ms = self._snapshots[at].T
            takes_effect |= (its_epoch == epochs) & (begin < sequences) & (sequences < end)
            sequences = np.where(in_snapshot, end, sequences)
            times = np.where(in_snapshot, ms * 1000, times)
        return sequences, times, self._segments.number(epochs, sequences), takes_effect
