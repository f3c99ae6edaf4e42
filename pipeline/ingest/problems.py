"""The table `problems`: what is wrong with the log, in sentences.

Rule: what is missing or double is told, never hidden; what is explained by something else is told
once.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ..schemas import Table
from .places import Run, add, gaps, within
from .state import ClusterState, State

DROPPED = "The controller dropped events, because it could not write them: {}."
GAP = "These events are in no file; the topics are unknown from here until the next snapshot."
DUPLICATE = "These events were in the files more than once; each is in the tables once."
CONFLICT = "Two different events have this sequence number; the one that was ingested first is in the tables."
NO_SNAPSHOT = "The epoch does not begin with a snapshot, so the topics are not known until the next one."
TORN = "The file is finished, and ends in the middle of a line: {} bytes of an incomplete event."
LOST = "The file no longer has {} events that were read from it: it was cut or changed. They stay in the tables."
UNREADABLE = "The file cannot be read: {}. Ingest reads it as soon as it can."

Problem = tuple[str, str, int, int, int]
"""A problem's kind, text, epoch, and first and last sequence."""


def problem_rows(state: State) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of problems, in order."""
    nothing = dict.fromkeys(Table.PROBLEMS.schema.names)
    for cluster_id, cluster in sorted(state.clusters.items()):
        for kind, text, epoch, first, last in _of_cluster(cluster):
            place = {"epoch": epoch, "first_sequence": first, "last_sequence": last, "events": last - first + 1}
            yield {**nothing, "cluster_id": cluster_id, "kind": kind, "text": text, **place}
    for kind, text, files in (
        ("torn", TORN, state.torn),
        ("unreadable", UNREADABLE, state.unreadable),
        ("lost", LOST, state.lost),
    ):
        for file, what in sorted(files.items()):
            yield {**nothing, "kind": kind, "text": text.format(what), "file": file}


def _of_cluster(cluster: ClusterState) -> Iterator[Problem]:
    dropped = defaultdict[int, list[Run]](list)
    for mark in cluster.marks:
        if mark.kind == "dropped":
            if mark.first <= mark.last:
                add(dropped[mark.epoch], Run(mark.first, mark.last, 0, 0))
            yield "dropped", DROPPED.format(mark.text), mark.epoch, mark.first, mark.last
    for number, epoch in sorted(cluster.epochs.items()):
        for first, last, _ in gaps(epoch.runs):
            if within(dropped[number], first, last) != [(first, last)]:
                yield "gap", GAP, number, first, last
        for kind, text, runs in (("duplicate", DUPLICATE, epoch.repeated), ("conflict", CONFLICT, epoch.conflicts)):
            for run in runs:
                yield kind, text, number, run.first, run.last
        if epoch.runs and epoch.runs[0].first == 1 and not epoch.begins_with_snapshot:
            yield "no-snapshot", NO_SNAPSHOT, number, 1, 1
