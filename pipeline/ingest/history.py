"""The table `topic_history`, made of what the events of a cluster told of its topics.

Rule: at every place in the log it shows the topics that `policies.audit_replay.Replay` has there; a gap ends all that was known. It is made
anew as a whole, by windows over each topic, so it does not depend on the order in which events arrived.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from ..tables import TOPIC_HISTORY
from .arrow import arrow_schema
from .barriers import SNAPSHOT, Barrier, Segments
from .limits import microseconds
from .mentions import MENTIONS

PLACED = StructType(
    [
        *MENTIONS.fields,
        StructField("cluster_id", StringType(), nullable=False),
        StructField("origin", LongType(), nullable=False),
        StructField("segment", LongType(), nullable=False),
        StructField("barrier_epoch", IntegerType()),
        StructField("barrier_sequence", LongType()),
        StructField("barrier_time", TimestampType()),
        StructField("barrier_cause", StringType()),
    ]
)
"""Mentions with their segments, and the barrier that ends it. What a snapshot tells takes effect at its end; `origin` is where it stood."""
ARROW = arrow_schema(PLACED)
UNTIL = ("epoch", "sequence", "time", "cause", "principal")


def topic_history(mentions: DataFrame, clusters: Mapping[str, list[Barrier]]) -> DataFrame:
    """`mentions` with their cluster_id; the columns of TOPIC_HISTORY."""
    placed = mentions.select(*MENTIONS.names, "cluster_id").mapInArrow(partial(_place_all, dict(clusters)), PLACED)
    by_topic = Window.partitionBy("cluster_id", "topic").orderBy("epoch", "sequence", "origin")

    def after(name: str) -> Column:
        return f.lead(name).over(by_topic)

    segment_before = f.lag("segment").over(by_topic)
    follows = f.col("segment") - segment_before == f.col("in_snapshot").cast("int")
    is_continued = after("segment") - f.col("segment") == after("in_snapshot").cast("int")
    told = placed.select(
        "*",
        f.coalesce(follows & f.lag("digest").over(by_topic).eqNullSafe(f.col("digest")), f.lit(False)).alias("is_same"),
        f.when(is_continued, f.struct(*_next(after))).otherwise(f.struct(*_barrier())).alias("until"),
    )
    edges = told.select("*", f.coalesce(after("is_same"), f.lit(False)).alias("goes_on")).where(
        ~(f.col("is_same") & f.col("goes_on"))
    )
    until = f.when(f.col("goes_on"), after("until")).otherwise(f.col("until"))
    states = edges.select("*", until.alias("ends")).where(~f.col("is_same") & f.col("digest").isNotNull())
    return states.where(~_is_empty()).select(*map(_column, TOPIC_HISTORY.names))


def _next(after: object) -> list[Column]:
    assert callable(after)
    names = {"time": "from_time"}
    return [after(names.get(name, name)).alias(name) for name in UNTIL]


def _barrier() -> list[Column]:
    return [
        f.lit(None).cast("string").alias(name) if name == "principal" else f.col(f"barrier_{name}").alias(name)
        for name in UNTIL
    ]


def _is_empty() -> Column:
    """It ends where it begins: a snapshot that tells of a topic twice."""
    return (f.col("epoch") == f.col("ends.epoch")).eqNullSafe(f.lit(True)) & (
        f.col("sequence") == f.col("ends.sequence")
    ).eqNullSafe(f.lit(True))


def _column(name: str) -> Column:
    match name.partition("_"):
        case ("until", _, rest):
            return f.col(f"ends.{rest}").alias(name)
        case ("from", _, rest) if rest != "time":
            return f.col(rest).alias(name)
        case _ if name == "partitions":
            return f.size("replicas").alias(name)
        case _ if name == "replication_factor":
            return f.coalesce(f.size(f.get("replicas", f.lit(0))), f.lit(0)).alias(name)
        case _:
            return f.col(name)


def _place_all(clusters: Mapping[str, list[Barrier]], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker of Spark's."""
    places = {cluster: Places(found) for cluster, found in clusters.items()}
    for batch in batches:
        column = batch.column("cluster_id")
        for cluster in pc.unique(column).to_pylist():
            yield places[cluster].place(batch.filter(pc.equal(column, cluster)))


class Places:
    """One cluster's barriers, as the windows need them."""

    def __init__(self, found: list[Barrier]) -> None:
        self._segments = Segments(found)
        snapshots = [barrier for barrier in found if barrier.cause == SNAPSHOT]
        self._snapshots = snapshots
        self._ends = Segments(snapshots)
        """Topics of a snapshot stand before its end: the first end behind them is theirs, if they are behind its beginning."""

    def place(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = {name: batch.column(name) for name in batch.schema.names}
        epochs, sequences = _numbers(columns["epoch"]), _numbers(columns["sequence"])
        in_snapshot = columns["in_snapshot"].to_numpy(zero_copy_only=False)
        ends, keep = self._end_of_snapshot(epochs, sequences, in_snapshot)
        numbers = self._segments.number(epochs, ends)
        return self._with(columns, sequences, ends, numbers).filter(pa.array(keep))

    def _end_of_snapshot(
        self, epochs: np.ndarray, sequences: np.ndarray, in_snapshot: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Where each takes effect, and whether it does."""
        if not self._snapshots:
            return sequences, ~in_snapshot
        at = np.minimum(self._ends.number(epochs, sequences), len(self._snapshots) - 1)
        ends = np.array([each.sequence for each in self._snapshots], np.int64)[at]
        begins = np.array([each.begin for each in self._snapshots], np.int64)[at]
        of_epoch = np.array([each.epoch for each in self._snapshots], np.int64)[at]
        is_complete = (of_epoch == epochs) & (begins < sequences) & (sequences < ends)
        return np.where(in_snapshot & is_complete, ends, sequences), ~in_snapshot | is_complete

    def _with(
        self, columns: dict[str, pa.Array], origins: np.ndarray, ends: np.ndarray, numbers: np.ndarray
    ) -> pa.RecordBatch:
        following: list[Barrier | None] = [*self._segments.barriers, None]
        next_ones = [following[number] for number in numbers]
        made = {
            **columns,
            "sequence": pa.array(ends),
            "origin": pa.array(origins),
            "segment": pa.array(numbers),
            "barrier_epoch": [None if each is None else each.epoch for each in next_ones],
            "barrier_sequence": [None if each is None else each.sequence for each in next_ones],
            "barrier_time": [None if each is None else microseconds(each.time_ms) for each in next_ones],
            "barrier_cause": [None if each is None else each.cause for each in next_ones],
        }
        arrays = [
            made[field.name] if isinstance(made[field.name], pa.Array) else pa.array(made[field.name], field.type)
            for field in ARROW
        ]
        return pa.RecordBatch.from_arrays(
            [array.cast(field.type) for array, field in zip(arrays, ARROW, strict=True)], schema=ARROW
        )


def _numbers(column: pa.Array) -> np.ndarray:
    numbers: np.ndarray = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def read_mentions(spark: SparkSession, tables: Path, clusters: Mapping[str, list[Barrier]]) -> DataFrame:
    """Of these clusters."""
    from .limits import folder_name
    from .staging import MENTIONS as FOLDER

    frames = []
    for cluster in clusters:
        folder = tables / FOLDER / folder_name("cluster_id", cluster)
        if folder.is_dir():
            frames.append(spark.read.schema(MENTIONS).parquet(str(folder)).withColumn("cluster_id", f.lit(cluster)))
    if not frames:
        empty = spark.createDataFrame([], MENTIONS)
        return empty.withColumn("cluster_id", f.lit(""))
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole
