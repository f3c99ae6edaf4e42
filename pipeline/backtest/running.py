"""Runs a back-test on Spark, and keeps the workers' answers in files until they become results.

Each slice is one task, which is given the files of its events and those with the topics at its
begin. Answers are written to the disk, and read in the order of the slices, which is that of the
log.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ..database import connected
from ..datafiles import DataFile
from ..delta import Tables
from ..failures import PipelineError
from ..ingest.sequence_ranges import Position
from ..parallel import map_on_workers, parallelism
from ..schemas import Table
from . import workers
from .candidate import Candidate
from .reading import columns_of
from .replaying import NOWHERE, Window
from .slices import BUCKET_EVENTS, PER_CORE, Bucket, Slice, ends, good_size, planned
from .topics import check_readable, may_have
from .workers import Failure, Job, Task

UNFINISHED = ".unfinished"
COLUMNS = (
    *("epoch", "sequence", "time", "kind", "effect", "cluster_size"),
    *("request", "element", "elements", "validate_only"),
)
OF_FILE = """
    WITH marked AS (
        SELECT *, coalesce(epoch_us(time) // 1000 >= $since_ms, true) AND coalesce(epoch_us(time) // 1000 < $until_ms, true) AS is_wanted,
            kind IN ('removal', 'observed', 'snapshot_begin') OR (element = 0 AND validate_only IS NOT TRUE) AS may_begin
        FROM events
    )
    SELECT $cluster_id AS cluster_id, epoch, (sequence - 1) // $bucket_events AS number, NULL AS request,
        min(sequence) AS first, max(sequence) AS last, count(*) AS events,
        min(sequence) FILTER (may_begin) AS start,
        min(sequence) FILTER (kind = 'snapshot_begin') AS snapshot_begin,
        max(sequence) FILTER (kind = 'snapshot_end') AS snapshot_end,
        max(sequence) FILTER (kind = 'dropped' OR effect = 'unknown') AS doubt,
        min(sequence) FILTER (is_wanted) AS first_wanted, max(sequence) FILTER (is_wanted) AS last_wanted,
        max({'sequence': sequence, 'nodes': cluster_size}) FILTER (cluster_size IS NOT NULL) AS cluster_size,
        arg_max(epoch_us(time) // 1000, sequence) AS newest_ms, $file AS file
    FROM marked GROUP BY ALL
    UNION ALL BY NAME
    SELECT $cluster_id AS cluster_id, epoch, request, min(sequence) AS first, max(sequence) AS last
    FROM marked WHERE validate_only AND elements > 1 GROUP BY ALL
"""
"""A query for the buckets of a file, and for its requests of several elements that were only
validated: these have a `request`.
"""
TOGETHER = """
    WITH buckets AS (
        SELECT cluster_id, epoch, number, request, sum(events)::BIGINT AS events,
            coalesce(min(COLUMNS(['first', 'start', 'snapshot_begin', 'first_wanted'])), 0),
            coalesce(max(COLUMNS(['last', 'snapshot_end', 'doubt', 'last_wanted'])), 0),
            max(cluster_size).nodes AS cluster_size, arg_max(newest_ms, last) AS newest_ms,
            list_sort(list(DISTINCT file)) AS files
        FROM found GROUP BY ALL
    ),
    requests AS (
        SELECT cluster_id, epoch, first, max(last) OVER (PARTITION BY cluster_id, epoch ORDER BY first) AS last
        FROM buckets WHERE request IS NOT NULL
    )
    SELECT buckets.* REPLACE (if(requests.last >= buckets.start, 0, buckets.start) AS start)
    FROM buckets ASOF LEFT JOIN requests
        ON buckets.cluster_id = requests.cluster_id AND buckets.epoch = requests.epoch AND buckets.start > requests.first
    WHERE buckets.request IS NULL ORDER BY buckets.cluster_id, buckets.epoch, buckets.number
"""
"""A query for the buckets of all files. No slice may begin between the elements of a request that
was only validated: others may be decided in between, and a later element sees what the earlier ones
would have made.
"""


class EventFiles(msgspec.Struct, frozen=True):
    """Files that hold a part of one cluster's events."""

    cluster_id: str
    paths: tuple[str, ...]


def buckets_of(files: EventFiles, window: Window, bucket_events: int) -> list[pa.Table]:
    """Return what each of these files holds of each bucket. Raises UnreadableTableError."""
    asked = {**msgspec.structs.asdict(window), "cluster_id": files.cluster_id, "bucket_events": bucket_events}
    found = []
    with connected() as connection:
        for path in files.paths:
            connection.register("events", columns_of([path], Table.EVENTS.in_files, COLUMNS))
            found.append(connection.sql(OF_FILE, params={**asked, "file": path}).to_arrow_table())
    return found


def merged_buckets(found: Iterable[pa.Table]) -> list[Bucket]:
    """Join the buckets of several files, in the order of the log and each once."""
    if not (tables := list(found)):
        return []
    with connected() as connection:
        connection.register("found", pa.concat_tables(tables))
        return msgspec.convert(connection.sql(TOGETHER).to_arrow_table().to_pylist(), list[Bucket])


class BacktestError(PipelineError):
    """The back-test cannot be done; the message is a sentence that says why."""


class BacktestRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The candidate, and the part of the history that is replayed."""

    candidate: Candidate
    window: Window
    clusters: tuple[str, ...] = ()
    """The ids of the clusters that are replayed; none means all."""
    counterfactual: bool = False
    slice_events: int | None = None
    """How many events a slice has, instead of what `slices.good_size` says."""
    bucket_events: int = BUCKET_EVENTS


class Backtesting:
    """A back-test that runs. Its answers lie in `folder`, which every worker can write. All methods
    raise BacktestError, OSError and Spark's errors.
    """

    def __init__(self, spark: SparkSession, tables: Tables, request: BacktestRequest, folder: Path) -> None:
        self._spark, self._tables, self._request, self._folder = spark, tables, request, folder
        snapshots = tables.snapshots()
        events, history = snapshots[Table.EVENTS], snapshots[Table.TOPIC_HISTORY]
        self._events, self._history = (
            {
                cluster: of
                for cluster, of in table.of_clusters().items()
                if not request.clusters or cluster in request.clusters
            }
            for table in (events, history)
        )
        self._history_lags = history.lags_behind(events)
        self._buckets: Sequence[Bucket] = ()
        self.lagging: tuple[str, ...] = ()
        """Clusters whose topic history is older than their events: it is not relied on where they
        could be cut.
        """
        self.plan: Sequence[Slice] = ()

    def plan_slices(self) -> Sequence[Slice]:
        request, cores = self._request, parallelism(self._spark)
        history = [self._named(Table.TOPIC_HISTORY, file) for files in self._history.values() for file in files]
        shares = [tuple(history[number::cores]) for number in range(min(cores, len(history)))]
        self._done(partial(workers.failures_returned, check_readable), shares)
        work = partial(
            workers.failures_returned, partial(buckets_of, window=request.window, bucket_events=request.bucket_events)
        )
        parts = self._done(work, self._shares(cores * PER_CORE))
        self._buckets = merged_buckets(table for part in parts for table in part)
        if unknown := sorted(set(request.clusters) - set(self.clusters)):
            raise BacktestError(f"There is no event of the cluster {', '.join(unknown)} in the tables.")
        size = request.slice_events or good_size(self._buckets, cores)
        self.lagging = tuple(self.clusters) if self._history_lags else ()
        self.plan = planned(self._buckets, slice_events=None if request.counterfactual else size, whole=self.lagging)
        return self.plan

    @property
    def clusters(self) -> list[str]:
        return sorted({bucket.cluster_id for bucket in self._buckets})

    def replay(self) -> list[Path]:
        """Replay all slices, and return the files of the answers."""
        request = self._request
        tasks = [Task(each, self._history_of(each.cluster_id, each.after)) for each in self.plan]
        job = Job(request.candidate, request.window, request.counterfactual)
        return self._answers("replayed", tasks, partial(workers.replay, job))

    def judge_existing(self) -> list[Path]:
        """Ask about all existing topics, and return the files of the answers."""
        tasks = [Task(each, self._history_of(each.cluster_id, None)) for each in ends(self._buckets)]
        return self._answers("existing", tasks, partial(workers.judge_existing, Job(self._request.candidate)))

    def _history_of(self, cluster_id: str, after: Position | None) -> tuple[str, ...]:
        """Return the files of a cluster's topic history; after an event, those that may describe
        it.
        """
        files = () if after == NOWHERE else self._history.get(cluster_id, ())
        return tuple(self._named(Table.TOPIC_HISTORY, file) for file in files if after is None or may_have(file, after))

    def _named(self, table: Table, file: DataFile) -> str:
        return self._tables.folder(table).child(file.path).uri

    def _shares(self, count: int) -> list[EventFiles]:
        """Divide the events of all files into about `count` shares."""
        most = max(1, -(-sum(map(len, self._events.values())) // count))
        return [
            EventFiles(cluster, tuple(self._named(Table.EVENTS, file) for file in files[begin : begin + most]))
            for cluster, files in self._events.items()
            for begin in range(0, len(files), most)
        ]

    def _answers(self, name: str, tasks: Sequence[Task[Any]], work: workers.Work) -> list[Path]:
        """Let the workers do the tasks, and return the files that they wrote, in the order of the
        tasks. The folder gets its name when it is complete.
        """
        folder = self._folder / name
        unfinished = folder.with_suffix(UNFINISHED)
        unfinished.mkdir()
        names = self._done(partial(workers.answer, work, unfinished), tasks, unfinished)
        unfinished.rename(folder)
        return [folder / file for file in names]

    def _done(self, work: Callable[[Any], Any], pieces: Sequence[Any], place: Path | None = None) -> Sequence[Any]:
        """Let the workers do the pieces, and return the answers unless one is a failure. What goes
        wrong with files is about `place`, or else the tables.
        """
        answers = map_on_workers(self._spark, work, pieces, place or self._tables.location)
        for answer in answers:
            if isinstance(answer, Failure):
                raise BacktestError(f"On a worker of Spark: {answer.text}")
        return answers


def answers(files: Iterable[Path]) -> Iterator["pq.RecordBatch"]:
    """Yield what the workers answered, in the order of the slices."""
    for path in files:
        file = pq.ParquetFile(path)
        for group in range(file.num_row_groups):  # a worker has written each at once
            yield from file.read_row_group(group).to_batches()
