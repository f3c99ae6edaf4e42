"""The tables that are made of the others: topic history, controller epochs, problems.

Rule: replaced whole, by one change, when something new came; so they always fit to the events of some moment.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ..tables import Table
from .arrow import arrow_schema
from .barriers import barriers
from .epochs import epoch_rows
from .files import Found
from .history import read_mentions, topic_history
from .limits import folder_name
from .problems import problem_rows
from .state import STAGING, Ledger, copied


def derive(spark: SparkSession, ledger: Ledger, found: Mapping[str, Found]) -> None:
    """Bring them up to date. Raises OSError."""
    state = copied(ledger.state)
    stale = {name: barriers(cluster) for name, cluster in state.clusters.items() if cluster.stale}
    moves: list[tuple[str, str]] = []
    removes: list[str] = []
    if stale:
        folder = ledger.tables / STAGING / "history"
        frame = topic_history(read_mentions(spark, ledger.tables, stale), stale)
        frame.write.partitionBy("cluster_id").mode("overwrite").parquet(str(folder))
        for cluster in stale:
            state.clusters[cluster].stale = False
            name = folder_name("cluster_id", cluster)
            target = f"{Table.TOPIC_HISTORY.value}/{name}"
            removes += _files(ledger.tables, target)
            moves += [
                (f"{STAGING}/history/{name}/{Path(file).name}", f"{target}/{state.changes:08}-{number}.parquet")
                for number, file in enumerate(_files(ledger.tables, f"{STAGING}/history/{name}"))
            ]
    for table, rows in (
        (Table.CONTROLLER_EPOCHS, list(epoch_rows(state))),
        (Table.PROBLEMS, list(problem_rows(state, found))),
    ):
        if stale or _differs(ledger.tables, table, rows):
            removes += _files(ledger.tables, table.value)
            moves.append(_write(ledger.tables, table, rows, state.changes))
    if moves or removes:
        ledger.change(state, moves=moves, removes=removes)


def _files(tables: Path, folder: str) -> list[str]:
    return sorted(f"{folder}/{path.name}" for path in (tables / folder).glob("*.parquet"))


def _write(tables: Path, table: Table, rows: list[dict[str, Any]], number: int) -> tuple[str, str]:
    (tables / STAGING).mkdir(parents=True, exist_ok=True)
    staged = f"{STAGING}/{table.value}.parquet"
    schema = arrow_schema(table.schema)
    pq.write_table(pa.Table.from_pylist(rows, schema), tables / staged, compression="zstd")
    return staged, f"{table.value}/{number:08}.parquet"


def _differs(tables: Path, table: Table, rows: list[dict[str, Any]]) -> bool:
    files = _files(tables, table.value)
    if len(files) != 1:
        return True
    schema = arrow_schema(table.schema)
    return not pq.read_table(tables / files[0], schema=schema).equals(pa.Table.from_pylist(rows, schema))
