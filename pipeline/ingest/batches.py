"""One batch of the stream: staged by the readers, held against what is there, and committed.

Rule: whatever is repeated comes to the same. Each event is in the tables once: of events with the
same place in the log the first one that was ingested stays.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from .files import TO_THE_END, Progress, what_is_left
from .places import Run, Runs
from .report import Reached, Report, Share, Stretch
from .staging import REPEATED
from .state import STAGING, ClusterState, EpochState, Ledger, State, copied

Known = dict[tuple[str, int], Runs]


class StagingError(Exception):
    """What a reader staged cannot be used; the message is a sentence that says why."""


Staging = Callable[[Sequence[Share], str], list[Report]]
"""Has shares staged in a folder, relative to that of the tables; a report for each. Raises OSError.
"""
Conflicts = Callable[[Sequence[Report]], Iterable[tuple[str, int, int]]]
"""Finds places, by cluster, epoch and sequence, of which there are two events: one staged as
repeated, and one in the tables.
"""


class Batches:
    """Takes batches of staged events into the tables."""

    def __init__(self, ledger: Ledger, staging: Staging, conflicts: Conflicts) -> None:
        self._ledger = ledger
        self._staging = staging
        self._conflicts = conflicts

    def take(self, shares: Sequence[Share], number: int) -> list[Report]:
        """Take a batch into the tables unless it is there, and return what came of it. Raises
        StagingError, OSError.

        Spark repeats a batch that it does not know to be done, and with an older checkpoint one
        that was done long ago: the state knows what was read of it, whatever its number.
        """
        shares = _not_taken(shares, self._ledger.state)
        if not shares:
            return []
        reports = self._staged(shares, number)
        if again := overlapping(self._ledger.state, list(reports.values())):
            reports |= self._staged(again, number)
        self._commit(list(reports.values()))
        return list(reports.values())

    def _staged(self, shares: Sequence[Share], number: int) -> dict[int, Report]:
        """Have the shares of a batch staged, and return their reports in order."""
        reports = self._staging(shares, f"{STAGING}/{number}")
        return {report.number: report for report in sorted(reports, key=lambda each: each.number)}

    def _commit(self, reports: Sequence[Report]) -> None:
        state = copied(self._ledger.state)
        for report in reports:
            note(state, report)
        if any(report.repeated for report in reports):
            for cluster, epoch, sequence in self._conflicts(reports):
                there = state.clusters[cluster].epochs[epoch]
                there.conflicts = _added(there.conflicts, Run(sequence, sequence, 0, 0))
        moves = [
            (file.path, f"{file.target}/{state.changes:08}-{Path(file.path).name}")
            for report in reports
            for file in report.files
            if file.target != REPEATED
        ]
        self._ledger.change(state, moves=moves)


def _not_taken(shares: Sequence[Share], state: State) -> list[Share]:
    left = []
    for share in shares:
        reads = [each for read in share.reads if (each := what_is_left(read, state.files)) is not None]
        if reads:
            left.append(replace(share, reads=reads))
    return left


def overlapping(state: State, reports: Sequence[Report]) -> list[Share]:
    """Return the shares that hold events known from before, or from a share before them: they are
    staged again without those.
    """
    known: Known = {}
    again = []
    for report in reports:
        own: Known = {}
        has_known = False
        for stretch in report.stretches:
            place = stretch.cluster_id, stretch.epoch
            if place not in known:
                known[place] = Runs.of(_runs_of(state, *place))
            there = own.setdefault(place, Runs())
            run = stretch.run
            has_known |= bool(known[place].within(run.first, run.last) or there.within(run.first, run.last))
            there.add(run)
        if has_known:
            reads = [reached.read for reached in report.reached]
            again.append(Share(report.number, reads, leaves_out=True, known=_places(known, own)))
        for place, runs in own.items():
            for run in runs.runs:
                known[place].add(run)
    return again


def _runs_of(state: State, cluster: str, epoch: int) -> list[Run]:
    if cluster not in state.clusters or epoch not in state.clusters[cluster].epochs:
        return []
    return state.clusters[cluster].epochs[epoch].runs


def _places(known: Known, own: Known) -> dict[str, dict[int, list[tuple[int, int]]]]:
    """Return the known places that a share could hold."""
    places: dict[str, dict[int, list[tuple[int, int]]]] = {}
    for (cluster, epoch), runs in own.items():
        within = known[cluster, epoch].within(runs.runs[0].first, runs.runs[-1].last)
        places.setdefault(cluster, {})[epoch] = within
    return places


def note(state: State, report: Report) -> None:
    """Note in the state what a share brought. Raises StagingError if that was there."""
    for stretch in report.stretches:
        epoch = _epoch(state, stretch)
        if Runs.of(epoch.runs).within(stretch.run.first, stretch.run.last):
            file = report.reached[stretch.read].read.file
            raise StagingError(f"{file} was written anew while it was read: ingest again when that is done.")
        epoch.runs = _added(epoch.runs, stretch.run)
        epoch.decisions += stretch.decisions
        epoch.begins_with_snapshot |= stretch.begins_with_snapshot
        state.clusters[stretch.cluster_id].is_stale = True
    for stretch in report.repeated:
        if not report.reached[stretch.read].read.again:
            epoch = _epoch(state, stretch)
            epoch.duplicates += stretch.run.count
            epoch.repeated = _added(epoch.repeated, stretch.run)
    for mark in report.marks:
        state.clusters[mark.cluster_id].marks.append(mark)
    for reached in report.reached:
        _note_progress(state.files, reached)
    state.quarantined += report.quarantined


def _epoch(state: State, stretch: Stretch) -> EpochState:
    cluster = state.clusters.setdefault(stretch.cluster_id, ClusterState())
    return cluster.epochs.setdefault(stretch.epoch, EpochState(stretch.node))


def _added(runs: list[Run], run: Run) -> list[Run]:
    joined = Runs.of(runs)
    joined.add(run)
    return joined.runs


def _note_progress(files: dict[str, Progress], reached: Reached) -> None:
    read = reached.read
    if reached.failure is not None and reached.consumed == read.begin:
        return
    tag = read.tag if read.end == TO_THE_END and reached.failure is None else ""
    before = files.pop(read.former, None) if read.former is not None else files.get(read.file)
    highest = max(reached.consumed, before.highest if before is not None else 0)
    files[read.file] = Progress(reached.consumed, tag, reached.rest, highest)
