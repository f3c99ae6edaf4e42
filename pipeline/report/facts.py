"""Counts what a report needs of the tables: partial counts in Spark's tasks, merged to facts at the
driver.

Figures are sums, lowest and highest values only, so counts of parts add up to the counts of the
whole, however the files are dealt out. Different values are counted by keeping them as keys, and
percentiles by buckets (`durations.py`). A task holds one file's rows at a time.
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
from ..schemas import CLUSTER, Table
from ..spreading import by_workers, parallelism

TASKS = 4
"""How many tasks there are for each processor, so that none waits long for another."""
TEXTS = pa.dictionary(pa.int32(), pa.string())
COUNT = "count(*)"


def last_event(text: str) -> str:
    """Return the figure of a group's last event: its place, with a column's value there."""
    places = ", ".join(f"'{name}': {name}" for name in ("time", "cluster_id", "epoch", "sequence"))
    return f"max({{{places}, 'text': {text}}})"


class Fact(msgspec.Struct, frozen=True):
    """Figures of the rows of a table, by keys."""

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

    def merged(self, facts: "Facts", counted: Sequence[pa.Table]) -> duckdb.DuckDBPyRelation:
        """Put together what was counted of parts."""
        merged = [key.rpartition(" AS ")[2] for key in self.keys]
        for name, figure in self.figures.items():
            kind = figure.partition("(")[0]
            merged.append(f"{kind}({name}) AS {name}" if kind in {"min", "max"} else f"sum({name})::BIGINT AS {name}")
        return facts.from_arrow(pa.concat_tables(counted)).aggregate(", ".join(merged))


class Wanted(msgspec.Struct, frozen=True):
    """The counts that are wanted of a table: of the rows that the query `view` makes of `source`,
    which has the columns that are named. `given` are small tables, which the query may name, too.
    """

    table: Table
    columns: str
    view: str
    facts: tuple[Fact, ...]
    given: Mapping[str, pa.Table] = {}


Facts = duckdb.DuckDBPyConnection
"""A connection that holds a table for each fact."""


def facts_of(
    spark: SparkSession, tables: Location, wanted: Sequence[tuple[Wanted, Sequence[DataFile]]], facts: Facts
) -> None:
    """Count what is wanted of files, as tables of `facts`. Raises OSError and Spark's errors."""
    most = TASKS * parallelism(spark)
    pieces = [(each, share) for each, files in wanted for share in shares(files, most)]
    counted = defaultdict[str, list[pa.Table]](list)
    for answer in by_workers(spark, partial(count, tables), pieces, tables):
        for name, found in answer.items():
            counted[name].append(found)
    for fact in chain.from_iterable(each.facts for each, _ in wanted):
        fact.merged(facts, counted[fact.name]).create(fact.name)


def shares(files: Sequence[DataFile], most: int) -> list[list[DataFile]]:
    """Deal files out, the largest first, to shares of about one size; no files are one share."""
    ordered = sorted(files, key=lambda file: (-file.size, file.path))
    number = max(1, min(most, len(ordered)))
    return [ordered[first::number] for first in range(number)]


def count(tables: Location, piece: tuple[Wanted, Sequence[DataFile]]) -> dict[str, pa.Table]:
    """Count what is wanted of some files, and return the facts by name."""
    wanted, files = piece
    counted = defaultdict[str, list[pa.Table]](list)
    with connection() as found:
        for name, given in wanted.given.items():
            found.register(name, given)
        for held in [[file] for file in files] or [[]]:
            found.register("source", _read(tables, wanted, held))
            found.execute(f"CREATE OR REPLACE TEMP VIEW rows AS {wanted.view}")
            for fact in wanted.facts:
                counted[fact.name].append(found.sql(fact.counted()).to_arrow_table())
        return {fact.name: fact.merged(found, counted[fact.name]).to_arrow_table() for fact in wanted.facts}


def connection() -> Facts:
    """Open an empty database, which sorts null below all."""
    return connected(default_null_order="nulls_first_on_asc_last_on_desc")


def _read(tables: Location, wanted: Wanted, files: Sequence[DataFile]) -> pa.Table:
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
