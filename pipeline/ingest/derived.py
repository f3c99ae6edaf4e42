"""The tables that are made of the others: topic history, controller epochs, problems.

Rule: replaced whole, by one change, when something new came; so they always fit to the events of
some moment.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ..spreading import by_workers
from ..tables import Table
from .arrow import arrow_schema
from .barriers import barriers
from .epochs import epoch_rows
from .history import portions, write_portion
from .limits import folder_name
from .outputs import COMPRESSION
from .problems import problem_rows
from .state import STAGING, Ledger, State, copied


def derive(spark: SparkSession, ledger: Ledger, state: State) -> None:
    """Bring the derived tables up to date with `state`, which becomes the ledger's. Raises OSError
    and Spark's errors.
    """
    stale = {name: barriers(cluster) for name, cluster in state.clusters.items() if cluster.is_stale}
    small: tuple[tuple[Table, Sequence[dict[str, Any]]], ...] = (
        (Table.CONTROLLER_EPOCHS, list(epoch_rows(state))),
        (Table.PROBLEMS, list(problem_rows(state))),
        (Table.QUARANTINE, []),
    )
    changed = [(table, rows) for table, rows in small if _differs(ledger.tables, table, rows)]
    if not stale and not changed:
        return
    state = copied(state)
    moves: list[tuple[str, str]] = []
    removes: list[str] = []
    if stale:
        work = partial(write_portion, tables=ledger.tables, folder=f"{STAGING}/history")
        by_workers(spark, work, portions(ledger.tables, stale), ledger.tables)
    for cluster in stale:
        state.clusters[cluster].is_stale = False
        name = folder_name("cluster_id", cluster)
        target = f"{Table.TOPIC_HISTORY.value}/{name}"
        made = [
            (file, f"{target}/part-{number:05}.parquet")
            for number, file in enumerate(_files(ledger.tables, f"{STAGING}/history/{name}"))
        ]
        moves += made
        removes += set(_files(ledger.tables, target)) - {target for _, target in made}
    moves += [_written(ledger.tables, table, rows) for table, rows in changed]
    ledger.change(state, moves=moves, removes=removes)


def _files(tables: Path, folder: str) -> list[str]:
    return sorted(f"{folder}/{path.name}" for path in (tables / folder).glob("*.parquet"))


def _place(table: Table) -> str:
    """Return the one file of a small table, which another one can replace at once."""
    return f"{table.value}/part.parquet"


def _written(tables: Path, table: Table, rows: Sequence[dict[str, Any]]) -> tuple[str, str]:
    (tables / STAGING).mkdir(parents=True, exist_ok=True)
    staged = f"{STAGING}/{table.value}.parquet"
    pq.write_table(_as_arrow(table, rows), tables / staged, compression=COMPRESSION)
    return staged, _place(table)


def _differs(tables: Path, table: Table, rows: Sequence[dict[str, Any]]) -> bool:
    """Whether the table on disk differs from `rows`; a table that cannot be read differs."""
    try:
        return not pq.read_table(tables / _place(table)).equals(_as_arrow(table, rows))
    except (OSError, pa.ArrowException):
        return True


def _as_arrow(table: Table, rows: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), arrow_schema(table.schema))
