"""A back-test on Spark: which columns travel where, and where the answers lie until they are results.

Rule: one pass over the events. Each slice is one task, which is told where its events lie and gets the topics at its begin; what it answers is on
the disk before anybody looks at it, in the order of the slices, which is the order of the log.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from ..ingest.state import State, StateError, load
from ..tables import Table, Tables
from . import workers
from .candidate import Candidate
from .replaying import Window
from .slices import BUCKET_EVENTS, Bucket, Plan, buckets, ends, good_size, planned, with_begins
from .workers import FAILURE, IN, Job

READ_ROWS = 2_000


class BacktestError(Exception):
    """The back-test cannot be done: why, in a sentence."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be tried on what."""

    candidate: Candidate
    window: Window
    clusters: tuple[str, ...] = ()
    """Their ids; none are all."""
    counterfactual: bool = False
    slice_events: int | None = None
    """For who knows better than `slices.good_size`."""
    bucket_events: int = BUCKET_EVENTS


class Backtesting:
    """One back-test on its way. What it leaves lies in `folder`, which every worker can write."""

    def __init__(self, spark: SparkSession, tables: Tables, wish: Wish, folder: Path) -> None:
        self._spark = spark
        self._wish = wish
        self._folder = folder
        before = _state(tables)
        self._events = _of_clusters(tables.read(spark, Table.EVENTS), wish.clusters)
        self._history = _of_clusters(tables.read(spark, Table.TOPIC_HISTORY), wish.clusters)
        self._history_lags = partial(_history_lags, before, _state(tables))
        self._buckets: Sequence[Bucket] = ()
        self.lagging: tuple[str, ...] = ()
        """Clusters whose topic history is older than their events: it is not relied on where they could be cut."""
        self.plan = Plan((), (), wish.bucket_events)

    def look(self) -> Plan:
        """Find out what there is, and cut it. Raises BacktestError."""
        wish = self._wish
        self._buckets = found = buckets(self._events, wish.window, wish.bucket_events)
        unknown = sorted(set(wish.clusters) - {bucket.cluster_id for bucket in found})
        if unknown:
            raise BacktestError(f"There is no event of the cluster {', '.join(unknown)} in the tables.")
        size = wish.slice_events or good_size(found, self._spark.sparkContext.defaultParallelism)
        self.lagging = tuple(filter(self._history_lags, self.clusters))
        self.plan = planned(
            found,
            slice_events=None if wish.counterfactual else size,
            bucket_events=wish.bucket_events,
            whole=self.lagging,
        )
        return self.plan

    @property
    def clusters(self) -> list[str]:
        return sorted({bucket.cluster_id for bucket in self._buckets})

    def replay(self) -> Path:
        """Put all recorded requests to the candidate. Returns the folder of the answers."""
        plan, wish = self.plan, self._wish
        if not plan.slices:
            return self._no_answers("replayed")
        job = Job(wish.candidate, wish.window, wish.counterfactual)
        begins = with_begins(self._spark, self._history, plan).select(
            "slice", f.lit(workers.TOPIC).alias("what"), _as_json().alias("text")
        )
        return self._answers("replayed", plan.slices, begins, partial(workers.replay, job))

    def scan(self) -> Path:
        """Put all existing topics to the candidate. Returns the folder of the answers."""
        clusters = ends(self._buckets)
        if not clusters:
            return self._no_answers("existing")
        numbers = self._spark.createDataFrame(
            [(each.cluster_id, number) for number, each in enumerate(clusters)], "cluster_id string, slice int"
        )
        there = f.col("until_sequence").isNull()
        creation = f.when(f.col("from_cause") == "create_topic", f.struct("from_epoch", "from_sequence"))
        creators = self._history.groupBy("cluster_id", "topic", "topic_id").agg(
            f.max(f.when(there, True)).alias("is_there"),
            f.min_by("from_principal", creation).alias("principal"),
        )
        creators = creators.where("is_there").drop("is_there")
        rows = (
            self._history.where(there)
            .join(creators, ["cluster_id", "topic", "topic_id"], "left")
            .join(f.broadcast(numbers), "cluster_id")
            .select("slice", f.lit(workers.TOPIC).alias("what"), _as_json("principal").alias("text"))
        )
        return self._answers("existing", clusters, rows, partial(workers.scan, Job(self._wish.candidate)))

    def _answers(self, name: str, heads: Sequence[msgspec.Struct], topics: DataFrame, work: workers.Work) -> Path:
        """Of one task for each head, which gets it and then its topics."""
        folder = self._folder / name
        texts = [(number, workers.HEAD, msgspec.json.encode(head).decode()) for number, head in enumerate(heads)]
        rows = self._spark.createDataFrame(texts, IN).unionAll(topics)
        answers = rows.repartitionById(len(heads), "slice").sortWithinPartitions("what").mapInArrow(work, workers.OUT)
        answers.write.parquet(folder.as_uri())
        return folder

    def _no_answers(self, name: str) -> Path:
        """Nothing is to be asked about."""
        folder = self._folder / name
        folder.mkdir(parents=True)
        return folder


def answers(folder: Path) -> Iterator["pq.RecordBatch"]:
    """What the workers answered, in the order of the slices. Raises BacktestError for what they could not."""
    for file in sorted(folder.glob("part-*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(READ_ROWS):
            for what, body in zip(batch.column("what").to_pylist(), batch.column("body"), strict=True):
                if what == FAILURE:
                    raise BacktestError(f"On a worker of Spark: {body.as_py()}")
            yield batch


def _state(tables: Tables) -> State:
    try:
        return load(tables.folder)
    except StateError as error:
        raise BacktestError(str(error)) from None


def _history_lags(before: State, after: State, cluster_id: str) -> bool:
    """Also if somebody ingested while the tables were looked at."""
    return before.changes != after.changes or (cluster_id in after.clusters and after.clusters[cluster_id].is_stale)


def _of_clusters(table: DataFrame, clusters: Sequence[str]) -> DataFrame:
    return table.where(f.col("cluster_id").isin(*clusters)) if clusters else table


def _as_json(*more: str) -> Column:
    """A row of `topic_history` as a named state of an audit event."""
    state = f.struct(
        "topic_id",
        "replicas",
        "configs",
        "marked_for_deletion",
        "internal",
        f.unix_millis("created").alias("created_ms"),
    )
    return f.to_json(f.struct("topic", state.alias("state"), *more), {"ignoreNullFields": "false"})
