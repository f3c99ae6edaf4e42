"""From Spark to sheets: the first rows of a long table, and the sums of all.

Rule: rows come in an order that is total, so that the same tables give the same sheet.
"""

from collections.abc import Sequence

from pyspark import StorageLevel
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ..page.sheet import Column, Sheet

MOST_ROWS = 1000
"""Of a sheet: whoever wants more asks the tables themselves."""


def top(name: str, title: str, columns: tuple[Column, ...], rows: DataFrame, order: Sequence[SparkColumn]) -> Sheet:
    """`rows` have the sheet's columns, by name, and others to sort by; they are few enough to be kept while they are sorted and counted."""
    summed = [column.name for column in columns if column.sums]
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        sorted_rows = kept.orderBy(*order).limit(MOST_ROWS).select(*(column.name for column in columns))
        first = [tuple(row) for row in sorted_rows.collect()]
        if len(first) < MOST_ROWS:
            return Sheet(name, title, columns, first)
        [counted] = kept.agg(f.count("*"), *(f.sum(column) for column in summed)).collect()
        return Sheet(name, title, columns, first, counted[0], dict(zip(summed, counted[1:], strict=True)))
    finally:
        kept.unpersist()


def last_event(text: str) -> SparkColumn:
    """The place of a group's last event, with what a column says there."""
    return f.max(f.struct("time", "cluster_id", "epoch", "sequence", f.col(text).alias("text"))).alias("event")


def last_of_all() -> list[SparkColumn]:
    """Of groups of those: `last`, in microseconds since 1970, and `message`."""
    newest = f.max("event")
    return [f.unix_micros(newest["time"]).alias("last"), newest["text"].alias("message")]


def different(column: str) -> SparkColumn:
    """How many values there are, null among them."""
    return f.count_distinct(f.struct(column))


def descending(*names: str) -> list[SparkColumn]:
    """The largest first."""
    return [f.col(name).desc_nulls_last() for name in names]


def ascending(*names: str) -> list[SparkColumn]:
    """By name, none first."""
    return [f.col(name).asc_nulls_first() for name in names]
