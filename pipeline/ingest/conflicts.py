"""Two different events at one place in the log.

Rule: only what was left out because its place is taken is looked at, and only against what is at
that place.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ...audit.event import decode
from ..tables import Table, Tables
from .limits import folder_name
from .report import Report, StagedFile
from .staging import REPEATED

PLACE = ["cluster_id", "epoch", "sequence"]


def conflicts(spark: SparkSession, tables: Path, reports: Sequence[Report]) -> list[tuple[str, int, int]]:
    """Find the places (cluster, epoch, sequence) at which there are two different events."""
    files = [file for report in reports for file in report.files]
    repeated = [str(tables / file.path) for file in files if file.target == REPEATED]
    if not repeated:
        return []
    stretches = [stretch for report in reports for stretch in report.repeated]
    clusters = {stretch.cluster_id for stretch in stretches}
    epochs = {stretch.epoch for stretch in stretches}
    there = reduce(DataFrame.unionByName, _events(spark, tables, files, clusters)).where(
        f.col("epoch").between(min(epochs), max(epochs)) & f.col("cluster_id").isin(*clusters)
    )
    other = spark.read.parquet(*repeated).withColumnRenamed("event", "other")
    differing = other.join(there, PLACE).where(f.col("event") != f.col("other"))
    differ = f.udf(lambda one, other: _differ(one, other), "boolean")  # noqa: PLW0108 - of hints Spark wants others than ours
    found = differing.where(differ("event", "other")).select(*PLACE).distinct()
    return [(row["cluster_id"], row["epoch"], row["sequence"]) for row in found.collect()]


def _differ(one: str, other: str) -> bool:
    """Whether two lines hold different events: one event may be written in several ways."""
    return decode(one) != decode(other)


def _events(
    spark: SparkSession, tables: Path, files: Sequence[StagedFile], clusters: Iterable[str]
) -> Iterator[DataFrame]:
    """Yield the events in the tables and those that are about to be."""
    yield Tables(tables).read(spark, Table.EVENTS).select(*PLACE, "event")
    for cluster in clusters:
        prefix = f"{Table.EVENTS.value}/{folder_name('cluster_id', cluster)}/"
        if staged := [str(tables / file.path) for file in files if file.target.startswith(prefix)]:
            rows = spark.read.parquet(*staged)
            yield rows.select(f.lit(cluster).alias("cluster_id"), "epoch", "sequence", "event")
