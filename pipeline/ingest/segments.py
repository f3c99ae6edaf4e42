"""Divides a cluster's log into segments. A segment begins at the end of a complete snapshot, which
lists all topics, or at the first event after a gap, from which no topic is known.

A topic's state lasts until an event changes it or the segment ends, whichever is first.
"""

from collections.abc import Iterable
from typing import NamedTuple

from .sequence_ranges import Position, gaps, within
from .staging_result import Marker
from .state import ClusterLogState

GAP = "gap"
SNAPSHOT = "snapshot"


class SegmentBoundary(NamedTuple):
    """The first event of a segment; states from before it are no longer valid."""

    epoch: int
    sequence: int
    time_ms: int
    cause: str
    begin: int = 0
    """The sequence number at which the snapshot begins; 0 for a gap."""


def segment_boundaries(cluster: ClusterLogState) -> list[SegmentBoundary]:
    """Return the boundaries of a cluster's segments, in the order of the log."""
    found = [
        SegmentBoundary(number, span.first, span.first_ms, GAP)
        for number, epoch in cluster.epochs.items()
        for _, _, span in gaps(epoch.ranges)
    ]
    begin: Marker | None = None
    for marker in sorted(cluster.markers, key=lambda each: (each.epoch, each.sequence)):
        if marker.kind == "snapshot_begin":
            begin = marker
        elif marker.kind == "snapshot_end":
            if begin is not None and begin.epoch == marker.epoch:
                positions = begin.sequence, marker.sequence
                if within(cluster.epochs[marker.epoch].ranges, *positions) == [positions]:
                    found.append(
                        SegmentBoundary(marker.epoch, marker.sequence, marker.time_ms, SNAPSHOT, begin.sequence)
                    )
            begin = None
    return sorted(found)


def begin_of_change(position: Position, found: Iterable[SegmentBoundary]) -> Position:
    """Return the earliest position whose topics can change if `position` is the first new one. A
    snapshot that new events complete lists topics from its begin on.
    """
    snapshots = [each for each in found if each.cause == SNAPSHOT and position <= (each.epoch, each.sequence)]
    return min([position, *((each.epoch, each.begin) for each in snapshots)])
