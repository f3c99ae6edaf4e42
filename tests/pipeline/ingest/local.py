"""Ingest without Spark: the same plan, the same readers and the same commits, one after the other
in this process.

What Spark does besides, to log each offset before its batch and the batch's number after it, is
done here with a file. It makes tests of the rule quick; that Spark keeps it too is shown by the
tests that run on Spark.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from msgspec import msgpack
from pyspark.sql.streaming.datasource import ReadMaxBytes

from minicontroller.pipeline.ingest.batches import Batches
from minicontroller.pipeline.ingest.report import Report, Share
from minicontroller.pipeline.ingest.source import AuditReader
from minicontroller.pipeline.ingest.staging import stage
from minicontroller.pipeline.ingest.state import CHECKPOINT, Ledger, State, locked
from minicontroller.pipeline.tables import Table

BATCH_BYTES = 1 << 20


def ingest_here(tables: Path, *folders: Path, batch_bytes: int = BATCH_BYTES) -> State:
    """All that is there; the state afterwards. The tables that are made of others stay as they
    were.
    """
    with locked(tables):
        ledger = Ledger(tables)
        ledger.open()
        log = tables / CHECKPOINT / "offset"
        reader = AuditReader(
            {
                "tables": str(tables),
                "folders": json.dumps([str(folder) for folder in folders]),
                "batch_bytes": str(batch_bytes),
                "readers": "2",
            }
        )
        batches = Batches(ledger, lambda shares, folder: _all(shares, tables, folder), lambda _: [])
        number, start, end = (
            json.loads(log.read_text()) if log.exists() else (-1, reader.initialOffset(), reader.initialOffset())
        )
        reader.prepareForTriggerAvailableNow()
        while True:
            batches.take(_shares(reader, start, end), number)
            start, end = end, reader.latestOffset(end, ReadMaxBytes(batch_bytes))
            if start == end:
                return ledger.state
            number += 1
            log.parent.mkdir(exist_ok=True)
            log.with_suffix(".new").write_text(json.dumps([number, start, end]))
            log.with_suffix(".new").replace(log)


def _shares(reader: AuditReader, start: dict[str, Any], end: dict[str, Any]) -> list[Share]:
    """Through bytes and back, as between processes."""
    partitions = reader.partitions(start, end)
    return [msgpack.decode(msgpack.encode(each.value), type=Share) for each in partitions]


def _all(shares: Sequence[Share], tables: Path, folder: str) -> list[Report]:
    return [stage(share, tables, folder) for share in shares]


def rows_of(tables: Path, table: Table) -> list[dict[str, Any]]:
    """As Arrow reads them."""
    folder = tables / table.value
    if not folder.is_dir():
        return []
    rows: list[dict[str, Any]] = ds.dataset(folder, partitioning="hive").to_table().to_pylist()
    return rows


def places(tables: Path) -> list[tuple[str, int, int]]:
    """Of all events: cluster, epoch, sequence; in order."""
    rows = rows_of(tables, Table.EVENTS)
    return sorted((str(row["cluster_id"]), row["epoch"], row["sequence"]) for row in rows)
