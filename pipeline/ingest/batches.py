"""One batch of the stream: staged by the readers, held against what is there, and committed.

Rule: whatever is repeated comes to the same. Each event is in the tables once: of events with the same place in the log the first one that was
ingested stays.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from .conflicts import conflicts
from .files import CANONICAL, TO_THE_END, Progress
from .places import Run, Runs
from .report import Reached, Report, Share, Stretch
from .staging import REPEATED, stage
from .state import STAGING, ClusterState, EpochState, Ledger, State, copied

Known = dict[tuple[str, int], Runs]


class Batches:
    """Takes the stream's batches into the tables."""

    def __init__(self, spark: SparkSession, ledger: Ledger) -> None:
        self._spark = spark
        self._ledger = ledger

    def take(self, frame: DataFrame, number: int) -> list[Report]:
        """A batch that is in the tables already is left alone. Raises OSError."""
        state = self._ledger.state
        if number <= state.batch:
            return []
        folder = f"{STAGING}/{number}"
        reports = {report.number: report for report in _staged(frame, self._ledger.tables, folder)}
        again = overlapping(state, [reports[index] for index in sorted(reports)])
        if again:
            wanted = [(msgspec.json.encode(share).decode(),) for share in again]
            rows = self._spark.sparkContext.parallelize(wanted, len(wanted))
            repeated = self._spark.createDataFrame(rows, frame.schema)
            reports |= {report.number: report for report in _staged(repeated, self._ledger.tables, folder)}
        done = [reports[index] for index in sorted(reports)]
        self._commit(number, done)
        return done

    def _commit(self, number: int, reports: Sequence[Report]) -> None:
        state = copied(self._ledger.state)
        state.batch = number
        for report in reports:
            note(state, report)
        for cluster, epoch, sequence in conflicts(self._spark, self._ledger.tables, reports):
            found = Runs(state.clusters[cluster].epochs[epoch].conflicts)
            found.add(Run(sequence, sequence, 0, 0))
            state.clusters[cluster].epochs[epoch].conflicts = found.runs
        moves = [
            (file.path, f"{file.target}/{number:08}-{Path(file.path).name}")
            for report in reports
            for file in report.files
            if file.target != REPEATED
        ]
        self._ledger.change(state, moves=moves)


def _staged(frame: DataFrame, tables: Path, folder: str) -> Iterator[Report]:
    for row in frame.mapInArrow(partial(_stage_all, str(tables), folder), "report binary").collect():
        yield msgspec.json.decode(row["report"], type=Report)


def _stage_all(tables: str, folder: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker of Spark's."""
    for batch in batches:
        for share in batch.column("share").to_pylist():
            report = stage(msgspec.json.decode(share, type=Share), Path(tables), folder)
            yield pa.RecordBatch.from_pydict({"report": pa.array([msgspec.json.encode(report)], pa.binary())})


def overlapping(state: State, reports: Sequence[Report]) -> list[Share]:
    """The shares in which there is something that is known, from before or from a share before it: to be staged again without it."""
    known: Known = {}
    again = []
    for report in reports:
        own: Known = {}
        has_known = False
        for stretch in report.stretches:
            place = stretch.cluster_id, stretch.epoch
            if place not in known:
                known[place] = Runs(_runs_of(state, *place))
            if place not in own:
                own[place] = Runs()
            run = stretch.run
            has_known |= bool(known[place].within(run.first, run.last) or own[place].within(run.first, run.last))
            own[place].add(run)
        if has_known:
            again.append(Share(report.number, [each.read for each in report.reached], _places(known, own), whole=True))
        for place, runs in own.items():
            for run in runs.runs:
                known[place].add(run)
    return again


def _runs_of(state: State, cluster: str, epoch: int) -> list[Run]:
    if cluster not in state.clusters or epoch not in state.clusters[cluster].epochs:
        return []
    return state.clusters[cluster].epochs[epoch].runs


def _places(known: Known, own: Known) -> dict[str, dict[int, list[tuple[int, int]]]]:
    """What is known, as far as the share could have it."""
    places: dict[str, dict[int, list[tuple[int, int]]]] = {}
    for (cluster, epoch), runs in own.items():
        within = known[cluster, epoch].within(runs.runs[0].first, runs.runs[-1].last)
        places.setdefault(cluster, {})[epoch] = within
    return places


def note(state: State, report: Report) -> None:
    """What a share brought."""
    for stretch in report.stretches:
        epoch = _epoch(state, stretch)
        runs = Runs(epoch.runs)
        runs.add(stretch.run)
        epoch.runs = runs.runs
        epoch.decisions += stretch.decisions
        epoch.begins_with_snapshot |= stretch.begins_with_snapshot
        state.clusters[stretch.cluster_id].stale = True
    for stretch in report.repeated:
        if not report.reached[stretch.read].read.again:
            epoch = _epoch(state, stretch)
            epoch.duplicates += stretch.run.count
            runs = Runs(epoch.repeated)
            runs.add(stretch.run)
            epoch.repeated = runs.runs
    for mark in report.marks:
        state.clusters[mark.cluster_id].marks.append(mark)
    for reached in report.reached:
        _progress(state.files, reached)
    state.quarantined += report.quarantined


def _epoch(state: State, stretch: Stretch) -> EpochState:
    cluster = state.clusters.setdefault(stretch.cluster_id, ClusterState())
    return cluster.epochs.setdefault(stretch.epoch, EpochState(stretch.node))


def _progress(files: dict[str, Progress], reached: Reached) -> None:
    read = reached.read
    if reached.failure is None or reached.consumed > read.begin:
        tag = read.tag if read.end == TO_THE_END and reached.failure is None else ""
        files[read.file] = Progress(reached.consumed, tag, reached.rest)
        _forget_former_names(files, read.file)


def _forget_former_names(files: dict[str, Progress], name: str) -> None:
    """A file was moved: what is known of it goes along."""
    base = name.rpartition("/")[2]
    if CANONICAL.fullmatch(base) is None:
        return
    for other in [each for each in files if each != name and each.rpartition("/")[2] == base]:
        if not _exists(other):
            del files[other]


def _exists(name: str) -> bool:
    from .files import COMPRESSIONS

    return any(Path(name + ending).exists() for ending in COMPRESSIONS)
