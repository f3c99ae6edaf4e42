"""Ingest without Spark: the same plan, the same tasks and the same commits, one after the other in
this process. It makes tests of the rule quick; that Spark's workers do the same is shown by the
tests that run on Spark.
"""

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from minicontroller.pipeline.datafiles import dataset
from minicontroller.pipeline.delta import Tables
from minicontroller.pipeline.ingest.batches import ingest_batch
from minicontroller.pipeline.ingest.files import Read, listing, next_reads
from minicontroller.pipeline.ingest.run import IngestSummary, ingest
from minicontroller.pipeline.ingest.state import Ledger, State
from minicontroller.pipeline.location import Location
from minicontroller.pipeline.schemas import Table

BATCH_BYTES = 1 << 20
PIECE_BYTES = BATCH_BYTES // 2
Place = Path | Location


def located(place: Place) -> Location:
    return Location.local(place) if isinstance(place, Path) else place


def ingest_here(tables: Place, *folders: Place, batch_bytes: int = BATCH_BYTES) -> State:
    """Take all that is there into the tables, and return the state afterwards. The tables that are
    made of others stay as they were.
    """
    place = located(tables)
    ledger = Ledger(Tables(place))
    ledger.follow_with_quarantine()
    found, given = listing(map(located, folders)), set[Read]()
    while reads := next_reads(
        found, ledger.state.files, given=given, max_bytes=batch_bytes, piece_bytes=min(batch_bytes, PIECE_BYTES)
    ):
        given.update(reads)
        ingest_batch(ledger, _dealt, reads, PIECE_BYTES)
    return ledger.state


def ingest_on(spark: SparkSession, tables: Place, folders: Sequence[Place], **options: Any) -> IngestSummary:
    """Ingest on Spark."""
    return ingest(spark, located(tables), [*map(located, folders)], **options)


def _dealt(work: Any, pieces: Sequence[Any], **_: Any) -> list[Any]:
    """Do work on pieces that go through bytes and back, as between processes."""
    return [_apart(work(_apart(piece))) for piece in pieces]


def _apart(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def rows_of(tables: Place, table: Table) -> list[dict[str, Any]]:
    """Read a table as Arrow does."""
    place = located(tables)
    rows: list[dict[str, Any]] = dataset(place, table, Tables(place).snapshot(table).files).to_table().to_pylist()
    return rows


def places(tables: Place) -> list[tuple[str, int, int]]:
    """Return cluster, epoch and sequence of all events, in order."""
    rows = rows_of(tables, Table.EVENTS)
    return sorted((str(row["cluster_id"]), row["epoch"], row["sequence"]) for row in rows)
