"""The barriers that cut a cluster's history: the end of each complete snapshot, which tells all
topics, and the first event after each gap, at which nothing is known.

Rule: a topic's state lasts until an event tells another, or until the next such place, whichever is
first.
"""

from collections.abc import Iterable
from typing import NamedTuple

from .places import gaps, within
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
    """The sequence at which a snapshot begins; 0 for a gap."""


def barriers(cluster: ClusterState) -> list[Barrier]:
    """Return the barriers of a cluster, in the order of the log: gaps, and complete snapshots."""
    found = [
        Barrier(number, run.first, run.first_ms, GAP)
        for number, epoch in cluster.epochs.items()
        for _, _, run in gaps(epoch.runs)
    ]
    begin: Mark | None = None
    for mark in sorted(cluster.marks, key=lambda each: (each.epoch, each.sequence)):
        if mark.kind == "snapshot_begin":
            begin = mark
        elif mark.kind == "snapshot_end":
            if begin is not None and begin.epoch == mark.epoch:
                places = begin.sequence, mark.sequence
                if within(cluster.epochs[mark.epoch].runs, *places) == [places]:
                    found.append(Barrier(mark.epoch, mark.sequence, mark.time_ms, SNAPSHOT, begin.sequence))
            begin = None
    return sorted(found)


def begin_of_change(place: Place, found: Iterable[Barrier]) -> Place:
    """Return where a change of the topics can begin at the earliest, if `place` is the first one
    that came: a snapshot that became complete tells topics from its begin on.
    """
    snapshots = [each for each in found if each.cause == SNAPSHOT and place <= (each.epoch, each.sequence)]
    return min([place, *((each.epoch, each.begin) for each in snapshots)])
