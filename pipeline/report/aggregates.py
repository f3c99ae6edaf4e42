"""Aggregates the tables for a report: Spark's tasks compute partial aggregates, and the driver adds
them up.

Figures are sums, minima and maxima, so the result does not depend on the division into tasks.
Distinct values are counted by using them as keys, and percentiles by buckets (`durations.py`). A
task holds the rows of one file at a time.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain

import duckdb
import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from ..database import connected
from ..datafiles import DataFile, dataset, unreadable
from ..location import Location
from ..parallel import map_on_workers, parallelism
from ..schemas import CLUSTER, Table

TASKS = 4
"""How many tasks there are for each processor, so that none waits long for another."""
TEXTS = pa.dictionary(pa.int32(), pa.string())
COUNT = "count(*)"
LAST_EVENT = "max(event).time AS last, max(event).text AS message"
"""The columns of a figure that `last_event` computes."""


def last_event(text: str) -> str:
    """Return the figure for a group's last event: its time and position, and a column's value."""
    positions = ", ".join(f"'{name}': {name}" for name in ("time", "cluster_id", "epoch", "sequence"))
    return f"max({{{positions}, 'text': {text}}})"


class Aggregate(msgspec.Struct, frozen=True):
    """An aggregate: figures of a table's rows by keys; partial aggregates can be added."""

    name: str
    keys: tuple[str, ...]
    """Columns, or expressions with a name: `rule AS who`."""
    figures: Mapping[str, str]
    """Aggregates over rows: counts and sums, whose parts are added, or `min` and `max`."""
    rows: str = "rows"
    """The rows that are counted: the table's view, with conditions."""

    def counted(self) -> str:
        figures = [f"{figure} AS {name}" for name, figure in self.figures.items()]
        return f"SELECT {', '.join((*self.keys, *figures))} FROM {self.rows} GROUP BY ALL"

    def merged(self, aggregates: "AggregateDatabase", counted: Sequence[pa.Table]) -> duckdb.DuckDBPyRelation:
        merged = [key.rpartition(" AS ")[2] for key in self.keys]
        for name, figure in self.figures.items():
            kind = figure.partition("(")[0]
            merged.append(f"{kind}({name}) AS {name}" if kind in {"min", "max"} else f"sum({name})::BIGINT AS {name}")
        return aggregates.from_arrow(pa.concat_tables(counted)).aggregate(", ".join(merged))


class AggregateRequest(msgspec.Struct, frozen=True):
    """The counts that are wanted of a table: of the rows that the query `view` makes of `source`,
    which has the columns that are named. `given` are small tables, which the query may name, too.
    """

    table: Table
    columns: str
    view: str
    aggregates: tuple[Aggregate, ...]
    given: Mapping[str, pa.Table] = {}


AggregateDatabase = duckdb.DuckDBPyConnection
"""A connection that holds a table for each aggregate."""


def compute_aggregates(
    spark: SparkSession,
    tables: Location,
    wanted: Sequence[tuple[AggregateRequest, Sequence[DataFile]]],
    aggregates: AggregateDatabase,
) -> None:
    """Compute aggregates of files as tables of `aggregates`. Raises OSError, Spark's errors."""
    most = TASKS * parallelism(spark)
    pieces = [(each, share) for each, files in wanted for share in shares(files, most)]
    counted = defaultdict[str, list[pa.Table]](list)
    for answer in map_on_workers(spark, partial(aggregate_files, tables), pieces, tables):
        for name, found in answer.items():
            counted[name].append(found)
    for aggregate in chain.from_iterable(each.aggregates for each, _ in wanted):
        aggregate.merged(aggregates, counted[aggregate.name]).create(aggregate.name)


def shares(files: Sequence[DataFile], most: int) -> list[list[DataFile]]:
    """Divide files into at most `most` groups of about equal size, at least one."""
    ordered = sorted(files, key=lambda file: (-file.size, file.path))
    number = max(1, min(most, len(ordered)))
    return [ordered[first::number] for first in range(number)]


def aggregate_files(tables: Location, piece: tuple[AggregateRequest, Sequence[DataFile]]) -> dict[str, pa.Table]:
    """Compute the partial aggregates of some files, by name."""
    wanted, files = piece
    counted = defaultdict[str, list[pa.Table]](list)
    with connection() as found:
        for name, given in wanted.given.items():
            found.register(name, given)
        for held in [[file] for file in files] or [[]]:
            found.register("source", _read(tables, wanted, held))
            found.execute(f"CREATE OR REPLACE TEMP VIEW rows AS {wanted.view}")
            for aggregate in wanted.aggregates:
                counted[aggregate.name].append(found.sql(aggregate.counted()).to_arrow_table())
        return {
            aggregate.name: aggregate.merged(found, counted[aggregate.name]).to_arrow_table()
            for aggregate in wanted.aggregates
        }


def connection() -> AggregateDatabase:
    """Open an empty database that sorts null below all values."""
    return connected(default_null_order="nulls_first_on_asc_last_on_desc")


def _read(tables: Location, wanted: AggregateRequest, files: Sequence[DataFile]) -> pa.Table:
    """Read the columns that are wanted; texts stay the dictionaries as which they are stored, which
    takes a third of the time and of the memory. Raises OSError.
    """
    names = wanted.columns.split()
    schema = pa.schema(
        field.with_type(TEXTS) if field.name in names and field.type == pa.string() and field.name != CLUSTER else field
        for field in wanted.table.schema
    )
    try:
        return dataset(tables, wanted.table, files, schema).to_table(names, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(tables, wanted.table, files, error) from None
