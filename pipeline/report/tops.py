"""From Spark to sheets: the first rows of a long table, and the sums of all.

Rule: rows come in an order that is total, so that the same tables give the same sheet; and Spark
goes over them once.
"""

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f

from ..page.sheet import Column, Sheet

MOST_ROWS = 1000
"""Of a sheet: whoever wants more asks the tables themselves."""
_ROWS = "(rows)"
"""No column is called so."""


def top(name: str, title: str, columns: tuple[Column, ...], rows: DataFrame, order: Sequence[SparkColumn]) -> Sheet:
    """Make a sheet of the first of `rows`, which have its columns and others to sort by, while all
    are counted.
    """
    summed = [column.name for column in columns if column.sums]
    totals = Observation()
    counted = rows.observe(totals, f.count("*").alias(_ROWS), *(f.sum(column).alias(column) for column in summed))
    first = counted.orderBy(*order).limit(MOST_ROWS).select(*(column.name for column in columns)).collect()
    sums = {name: number or 0 for name, number in totals.get.items()}
    return Sheet(
        name, title, columns, [tuple(row) for row in first], sums[_ROWS], {each: sums[each] for each in summed}
    )


def last_event(text: str) -> SparkColumn:
    """Aggregate a group to the place of its last event, with a column's value there."""
    return f.max(f.struct("time", "cluster_id", "epoch", "sequence", f.col(text).alias("text"))).alias("event")


def last_of_all() -> list[SparkColumn]:
    """Aggregate the last events of groups to `last`, in microseconds since 1970, and `message`."""
    newest = f.max("event")
    return [f.unix_micros(newest["time"]).alias("last"), newest["text"].alias("message")]


def different(column: str) -> SparkColumn:
    """Count the different values of a column, null among them."""
    return f.count_distinct(f.struct(column))


def descending(*names: str) -> list[SparkColumn]:
    """Sort by number, the largest first."""
    return [f.col(name).desc_nulls_last() for name in names]


def ascending(*names: str) -> list[SparkColumn]:
    """Sort by name, null first."""
    return [f.col(name).asc_nulls_first() for name in names]
