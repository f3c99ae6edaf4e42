"""Brings the tables that are derived from the events up to date: topic history, controller epochs
and problems. A problem that another one explains is not listed.

One commit changes each table and carries the number of the change of the events that the table has
reached, so each table is consistent with the events of some change.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from ..datafiles import NewFile
from ..parallel import ParallelMap
from ..schemas import Table
from .limits import microseconds
from .sequence_ranges import SequenceRange, add, gaps, within
from .state import ClusterLogState, Ledger, State
from .topic_history import Stale, changes


def derive(on_workers: ParallelMap, cores: int, ledger: Ledger) -> None:
    """Bring the derived tables up to date with the events; the work is dealt out to so many cores.
    Raises TablesError, OSError and what `on_workers` raises.
    """
    history = ledger.tables.snapshot(Table.TOPIC_HISTORY)
    if history.change < ledger.number:
        stale = {
            name: Stale.since(cluster.changed_from, cluster)
            for name, cluster in ledger.state.clusters.items()
            if cluster.changed_from is not None
        }
        new = changes(on_workers, cores, ledger.tables.location, events=ledger.events, history=history, stale=stale)
        ledger.tables.commit(history, ledger.number, *new)
        ledger.has_history()
    _replace(ledger, Table.CONTROLLER_EPOCHS, _epoch_rows(ledger.state))
    _replace(ledger, Table.PROBLEMS, problem_rows(ledger.state))
    ledger.follow_with_quarantine()


def _replace(ledger: Ledger, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    """Replace a small table as a whole, unless it is up to date."""
    before = ledger.tables.snapshot(table)
    if before.change < ledger.number:
        file = NewFile(ledger.tables.location, table)
        file.write(pa.RecordBatch.from_pylist(list(rows), table.schema))
        ledger.tables.commit(before, ledger.number, [file.finish()], before.files)


def _epoch_rows(state: State) -> Iterator[dict[str, Any]]:
    for cluster_id, cluster in sorted(state.clusters.items()):
        for number, epoch in sorted(cluster.epochs.items()):
            if not epoch.ranges:
                continue
            first, last = epoch.ranges[0], epoch.ranges[-1]
            yield {
                "cluster_id": cluster_id,
                "epoch": number,
                "node": epoch.node,
                "first_sequence": first.first,
                "last_sequence": last.last,
                "events": epoch.events,
                "decisions": epoch.decisions,
                "missing": epoch.missing,
                "duplicates": epoch.duplicates,
                "began": microseconds(first.first_ms),
                "ended": microseconds(last.last_ms),
                "begins_with_snapshot": epoch.begins_with_snapshot,
            }


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


def _of_cluster(cluster: ClusterLogState) -> Iterator[Problem]:
    dropped = defaultdict[int, list[SequenceRange]](list)
    for marker in cluster.markers:
        if marker.kind == "dropped":
            if marker.first <= marker.last:
                add(dropped[marker.epoch], SequenceRange(marker.first, marker.last, 0, 0))
            yield "dropped", DROPPED.format(marker.text), marker.epoch, marker.first, marker.last
    for number, epoch in sorted(cluster.epochs.items()):
        for first, last, _ in gaps(epoch.ranges):
            if within(dropped[number], first, last) != [(first, last)]:
                yield "gap", GAP, number, first, last
        for kind, text, ranges in (("duplicate", DUPLICATE, epoch.repeated), ("conflict", CONFLICT, epoch.conflicts)):
            for span in ranges:
                yield kind, text, number, span.first, span.last
        if epoch.ranges and epoch.ranges[0].first == 1 and not epoch.begins_with_snapshot:
            yield "no-snapshot", NO_SNAPSHOT, number, 1, 1
