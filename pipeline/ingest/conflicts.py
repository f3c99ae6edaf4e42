"""Two different events at one place in the log.

Rule: only what was left out because its place is taken is looked at, and only against what is at that place.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ..tables import Table, Tables
from .report import Report, StagedFile
from .staging import REPEATED

PLACE = ["cluster_id", "epoch", "sequence"]


def conflicts(spark: SparkSession, tables: Path, reports: Sequence[Report]) -> list[tuple[str, int, int]]:
    """Their places: cluster, epoch, sequence."""
    files = [file for report in reports for file in report.files]
    repeated = [str(tables / file.path) for file in files if file.target == REPEATED]
    if not repeated:
        return []
    other = spark.read.parquet(*repeated)
    epochs = {stretch.epoch for report in reports for stretch in report.repeated}
    clusters = {stretch.cluster_id for report in reports for stretch in report.repeated}
    there = reduce(DataFrame.unionByName, _events(spark, tables, files, clusters)).where(
        f.col("epoch").between(min(epochs), max(epochs)) & f.col("cluster_id").isin(*clusters)
    )
    differing = (
        other.alias("other")
        .join(there.alias("there"), PLACE)
        .where(f.col("other.event") != f.col("there.event"))
        .select(*PLACE)
        .distinct()
    )
    return [(row["cluster_id"], row["epoch"], row["sequence"]) for row in differing.collect()]


def _events(spark: SparkSession, tables: Path, files: Iterable[StagedFile], clusters: Iterable[str]) -> list[DataFrame]:
    """Those in the tables, and those that are about to be."""
    frames = [Tables(tables).read(spark, Table.EVENTS).select(*PLACE, "event")]
    for cluster in clusters:
        from .limits import folder_name

        prefix = f"{Table.EVENTS.value}/{folder_name('cluster_id', cluster)}/"
        staged = [str(tables / file.path) for file in files if file.target.startswith(prefix)]
        if staged:
            rows = spark.read.parquet(*staged)
            frames.append(rows.select(f.lit(cluster).alias("cluster_id"), "epoch", "sequence", "event"))
    return frames
