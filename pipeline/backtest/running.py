"""A back-test on Spark: which work goes to which worker, and where the answers lie until they are
results.

Rule: one pass over the events. Each slice is one task, which is told where its events lie and gets
the topics at its begin; what it answers is on the disk before anybody looks at it, in the order of
the slices, which is the order of the log.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ..schemas import Table
from ..spreading import answers_of, by_workers, parallelism
from ..tables import Tables
from . import workers
from .candidate import Candidate
from .looking import EventFiles, buckets_of, together
from .replaying import NOWHERE, Window
from .slices import BUCKET_EVENTS, PER_CORE, Bucket, Plan, ends, good_size, planned
from .topics import Lived, Today, states_at_begins, states_today
from .workers import Failure, Job

if TYPE_CHECKING:
    from pyspark import RDD

READ_ROWS = 2_000
UNFINISHED = ".unfinished"


class BacktestError(Exception):
    """The back-test cannot be done; the message is a sentence that says why."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """Which candidate is to be tried, and on which part of history."""

    candidate: Candidate
    window: Window
    clusters: tuple[str, ...] = ()
    """Their ids; none are all."""
    counterfactual: bool = False
    slice_events: int | None = None
    """For who knows better than `slices.good_size`."""
    bucket_events: int = BUCKET_EVENTS


class Backtesting:
    """A back-test that runs. Its answers lie in `folder`, which every worker can write. All methods
    raise BacktestError and OSError.
    """

    def __init__(self, spark: SparkSession, tables: Tables, wish: Wish, folder: Path) -> None:
        self._spark = spark
        self._tables = tables.folder
        self._wish = wish
        self._folder = folder
        self._events = _of_clusters(tables.files(Table.EVENTS), wish.clusters)
        self._history = _of_clusters(tables.files(Table.TOPIC_HISTORY), wish.clusters)
        self._history_lags = tables.history_lags
        self._buckets: Sequence[Bucket] = ()
        self.lagging: tuple[str, ...] = ()
        """Clusters whose topic history is older than their events: it is not relied on where they
        could be cut.
        """
        self.plan = Plan(())

    def look(self) -> Plan:
        """Find out which history there is, and cut it into slices."""
        wish, cores = self._wish, parallelism(self._spark)
        work = partial(workers.told, partial(buckets_of, window=wish.window, bucket_events=wish.bucket_events))
        parts = _succeeded(by_workers(self._spark, work, _shares(self._events, cores * PER_CORE), self._tables))
        self._buckets = together(bucket for part in parts for bucket in part)
        unknown = sorted(set(wish.clusters) - set(self.clusters))
        if unknown:
            raise BacktestError(f"There is no event of the cluster {', '.join(unknown)} in the tables.")
        size = wish.slice_events or good_size(self._buckets, cores)
        self.lagging = tuple(self.clusters) if self._history_lags else ()
        self.plan = planned(self._buckets, slice_events=None if wish.counterfactual else size, whole=self.lagging)
        return self.plan

    @property
    def clusters(self) -> list[str]:
        return sorted({bucket.cluster_id for bucket in self._buckets})

    def replay(self) -> Path:
        """Put all recorded requests to the candidate, and return the folder of the answers."""
        wish, slices = self._wish, self.plan.slices
        begins = {
            cluster: tuple(
                (each.after, each.number) for each in slices if each.cluster_id == cluster and each.after != NOWHERE
            )
            for cluster in self.clusters
        }
        lived = [Lived(file, begins[cluster]) for cluster, file in self._told_of(self.clusters) if begins[cluster]]
        job = Job(wish.candidate, wish.window, wish.counterfactual)
        return self._answers("replayed", slices, lived, states_at_begins, partial(workers.replay, job))

    def scan(self) -> Path:
        """Put all existing topics to the candidate, and return the folder of the answers."""
        clusters = ends(self._buckets)
        numbers = {each.cluster_id: number for number, each in enumerate(clusters)}
        today = [
            Today(tuple(map(str, files)), numbers[cluster])
            for cluster, files in self._history.items()
            if cluster in numbers
        ]
        job = Job(self._wish.candidate)
        return self._answers("existing", clusters, today, states_today, partial(workers.scan, job))

    def _told_of(self, clusters: Iterable[str]) -> list[tuple[str, str]]:
        """Return the files of these clusters' topic history."""
        return [(cluster, str(file)) for cluster in clusters for file in self._history.get(cluster, ())]

    def _answers(
        self,
        name: str,
        heads: Sequence[Any],
        topics: Sequence[Any],
        find: Callable[[Any], Iterator[tuple[int, bytes]]],
        work: workers.Work,
    ) -> Path:
        """Let a worker do the task of each head with what `find` finds of its topics; the folder
        gets its name when it is complete.
        """
        folder = self._folder / name
        unfinished = folder.with_suffix(UNFINISHED)
        unfinished.mkdir()
        if heads:
            context = self._spark.sparkContext
            numbered: RDD[tuple[int, Any]] = context.parallelize(list(enumerate(heads)), 1)
            found = context.parallelize(topics, max(1, len(topics))).flatMap(partial(workers.found, find))
            tasks = numbered.cogroup(found, len(heads))
            _succeeded(answers_of(tasks, partial(workers.answer, work, unfinished), unfinished))
        unfinished.rename(folder)
        return folder


def answers(folder: Path) -> Iterator["pq.RecordBatch"]:
    """Yield what the workers answered, in the order of the slices."""
    for file in sorted(folder.glob("*.parquet")):
        yield from pq.ParquetFile(file).iter_batches(READ_ROWS)


def _succeeded(answers: Sequence[Any]) -> Sequence[Any]:
    """Pass answers on, and raise BacktestError for the first failure."""
    for answer in answers:
        if isinstance(answer, Failure):
            raise BacktestError(f"On a worker of Spark: {answer.text}")
    return answers


def _shares(events: Mapping[str, Sequence[Path]], count: int) -> list[EventFiles]:
    """Divide the events of all files into about `count` shares."""
    most = max(1, -(-sum(map(len, events.values())) // count))
    return [
        EventFiles(cluster, tuple(map(str, files[begin : begin + most])))
        for cluster, files in events.items()
        for begin in range(0, len(files), most)
    ]


def _of_clusters(files: Mapping[str, Sequence[Path]], clusters: Sequence[str]) -> Mapping[str, Sequence[Path]]:
    return {cluster: of for cluster, of in files.items() if not clusters or cluster in clusters}
