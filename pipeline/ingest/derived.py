"""The tables that are made of the events: topic history, controller epochs, problems.

Rule: each is changed by one commit, which carries the number of the change of the events that it
has reached; so each of them fits to the events of some moment.
"""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from ..delta import NewFile
from ..schemas import Table
from .barriers import barriers
from .epochs import epoch_rows
from .problems import problem_rows
from .state import Ledger
from .topic_history import Stale, brought_up_to_date


def derive(spark: SparkSession, ledger: Ledger) -> None:
    """Bring the derived tables up to date with the events. Raises TablesError, OSError and Spark's
    errors.
    """
    history = ledger.tables.snapshot(Table.TOPIC_HISTORY)
    if history.change < ledger.number:
        stale = {
            name: Stale(cluster.changed_from, barriers(cluster))
            for name, cluster in ledger.state.clusters.items()
            if cluster.changed_from is not None
        }
        changes = brought_up_to_date(spark, ledger.tables, ledger.events, history, stale)
        ledger.tables.commit(history, ledger.number, *changes)
        ledger.has_history()
    _replace(ledger, Table.CONTROLLER_EPOCHS, epoch_rows(ledger.state))
    _replace(ledger, Table.PROBLEMS, problem_rows(ledger.state))
    ledger.follow_with_quarantine()


def _replace(ledger: Ledger, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    """Replace a small table as a whole, unless it is up to date."""
    before = ledger.tables.snapshot(table)
    if before.change < ledger.number:
        file = NewFile(ledger.tables.location, table)
        file.write(pa.Table.from_pylist(list(rows), table.schema))
        ledger.tables.commit(before, ledger.number, [file.finish()], before.files)
