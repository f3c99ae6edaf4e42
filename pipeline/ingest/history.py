"""The table `topic_history`, made of what the events of a cluster told of its topics.

Rule: at every place in the log it shows the topics that `policies.audit_replay.Replay` has there; a gap ends all that was known. It is made
anew as a whole, by windows over each topic, so it does not depend on the order in which events arrived.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from ..tables import TOPIC_HISTORY
from .barriers import SNAPSHOT, Barrier, Numbers, Segments
from .limits import moment
from .mentions import FOLDER, MENTIONS

Flags = npt.NDArray[np.bool_]
Function = Callable[[str], Column]
Barriers = Mapping[str, list[Barrier]]
"""By cluster."""

PLACE = StructType([StructField("sequence", LongType()), StructField("segment", LongType())])
"""Where a mention takes effect: what a snapshot tells, at its end. Null where it takes none, because the snapshot has no end."""
BARRIERS = StructType(
    [
        StructField("cluster_id", StringType(), nullable=False),
        StructField("segment", LongType(), nullable=False),
        StructField("barrier_epoch", IntegerType(), nullable=False),
        StructField("barrier_sequence", LongType(), nullable=False),
        StructField("barrier_time", TimestampType(), nullable=False),
        StructField("barrier_cause", StringType(), nullable=False),
    ]
)
"""`segment` is the one that it ends."""
UNTIL = {"epoch": "epoch", "sequence": "sequence", "time": "from_time", "cause": "cause", "principal": "principal"}


def topic_history(spark: SparkSession, tables: Path, clusters: Barriers) -> DataFrame:
    """Of these clusters; the columns of TOPIC_HISTORY."""
    by_topic = Window.partitionBy("cluster_id", "topic").orderBy("epoch", "sequence", "origin")

    def before(name: str) -> Column:
        return f.lag(name).over(by_topic)

    def after(name: str) -> Column:
        return f.lead(name).over(by_topic)

    def follows(later: Function, earlier: Function) -> Column:
        """Nothing lies between the two but the end of the snapshot that tells the later one."""
        is_next = later("segment") - earlier("segment") == later("in_snapshot").cast("int")
        return is_next | ((later("epoch") == earlier("epoch")) & (later("sequence") == earlier("sequence")))

    told = _placed(_mentions(spark, tables, clusters), clusters).select(
        "*",
        f.coalesce(follows(f.col, before) & (before("digest") == f.col("digest")), f.lit(False)).alias("is_same"),
        follows(after, f.col).alias("is_followed"),
        f.struct(*(after(column).alias(name) for name, column in UNTIL.items())).alias("next"),
    )
    edges = told.select("*", f.coalesce(after("is_same"), f.lit(False)).alias("goes_on")).where(
        ~(f.col("is_same") & f.col("goes_on"))
    )
    ends = edges.join(f.broadcast(_barrier_frame(spark, clusters)), ["cluster_id", "segment"], "left").select(
        *edges.columns,
        f.when(f.col("is_followed"), f.col("next")).otherwise(f.struct(*map(_of_barrier, UNTIL))).alias("end"),
    )
    states = ends.select("*", f.when(f.col("goes_on"), after("end")).otherwise(f.col("end")).alias("until"))
    is_empty = f.struct("epoch", "sequence").eqNullSafe(f.struct("until.epoch", "until.sequence"))
    kept = states.where(~f.col("is_same") & f.col("topic_id").isNotNull() & ~is_empty)
    return kept.select(*(_column(name).alias(name) for name in TOPIC_HISTORY.names))


def _mentions(spark: SparkSession, tables: Path, clusters: Barriers) -> DataFrame:
    schema = StructType([*MENTIONS.fields, StructField("cluster_id", StringType())])
    if not (tables / FOLDER).is_dir():
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(str(tables / FOLDER)).where(f.col("cluster_id").isin(*clusters))


def _placed(mentions: DataFrame, clusters: Barriers) -> DataFrame:
    places = {cluster: Places(found) for cluster, found in clusters.items()}

    def of(cluster_id: pa.Array, epoch: pa.Array, sequence: pa.Array, in_snapshot: pa.Array) -> pa.Array:
        return _places_of(places, cluster_id, epoch, sequence, in_snapshot)

    ask = arrow_udf(of, PLACE)  # type: ignore[call-overload] # it goes by the hints
    place = ask.asNondeterministic()("cluster_id", "epoch", "sequence", "in_snapshot")  # asked once, not for each use
    digest = f.xxhash64("topic_id", "replicas", f.map_entries("configs"), "marked_for_deletion")
    return (
        mentions.select("*", place.alias("place"), digest.alias("digest"))
        .where(f.col("place.segment").isNotNull())
        .withColumn("origin", f.col("sequence"))
        .withColumns({"sequence": f.col("place.sequence"), "segment": f.col("place.segment")})
        .drop("place")
    )


def _barrier_frame(spark: SparkSession, clusters: Barriers) -> DataFrame:
    rows = [
        (cluster, number, each.epoch, each.sequence, moment(each.time_ms), each.cause)
        for cluster, found in clusters.items()
        for number, each in enumerate(found)
    ]
    return spark.createDataFrame(rows, BARRIERS)


def _of_barrier(name: str) -> Column:
    if name == "principal":
        return f.lit(None).cast("string").alias(name)
    return f.col(f"barrier_{name}").alias(name)


def _column(name: str) -> Column:
    match name.partition("_"):
        case ("until", _, rest):
            return f.col(f"until.{rest}")
        case ("from", _, rest):
            return f.col(UNTIL[rest])
        case _ if name == "partitions":
            return f.size("replicas")
        case _ if name == "replication_factor":
            return f.coalesce(f.size(f.get("replicas", f.lit(0))), f.lit(0))
        case _:
            return f.col(name)


class Places:
    """Where mentions of one cluster take effect, many at once. `n` is their number."""

    def __init__(self, found: list[Barrier]) -> None:
        self._segments = Segments(found)
        snapshots = [barrier for barrier in found if barrier.cause == SNAPSHOT]
        self._ends = Segments(snapshots)
        self._snapshots = np.array([(each.epoch, each.begin, each.sequence) for each in snapshots], np.int64)

    def of(self, epochs: Numbers, sequences: Numbers, in_snapshot: Flags) -> tuple[Numbers, Numbers, Flags]:
        """[n] each: the sequence where each takes effect, the segment there, and whether it does."""
        takes_effect = ~in_snapshot
        if len(self._snapshots):
            at = np.minimum(self._ends.number(epochs, sequences), len(self._snapshots) - 1)
            its_epoch, begin, end = self._snapshots[at].T
            takes_effect |= (its_epoch == epochs) & (begin < sequences) & (sequences < end)
            sequences = np.where(in_snapshot, end, sequences)
        return sequences, self._segments.number(epochs, sequences), takes_effect


def _places_of(
    places: Mapping[str, Places], cluster_id: pa.Array, epoch: pa.Array, sequence: pa.Array, in_snapshot: pa.Array
) -> pa.Array:
    """Called by Spark in its workers."""
    clusters = cluster_id.dictionary_encode()
    of_cluster = clusters.indices.to_numpy()
    epochs, sequences, inside = (each.to_numpy(zero_copy_only=False) for each in (epoch, sequence, in_snapshot))
    at, segments = np.zeros(len(epochs), np.int64), np.zeros(len(epochs), np.int64)
    takes_effect = np.zeros(len(epochs), np.bool_)
    for number, cluster in enumerate(clusters.dictionary.to_pylist()):
        here = of_cluster == number
        found = places[cluster].of(epochs[here].astype(np.int64), sequences[here], inside[here])
        at[here], segments[here], takes_effect[here] = found
    return pa.StructArray.from_arrays([pa.array(at), pa.array(segments, mask=~takes_effect)], names=PLACE.names)
