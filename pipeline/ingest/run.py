"""One run: everything that is new in the folders, into the tables.

Rule: one run at a time; what an earlier one began is finished first; derived tables follow when the events are in.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from .batches import Batches
from .derived import derive
from .files import listing
from .problems import pending
from .report import Report
from .source import BATCH_BYTES, NAME, AuditSource
from .state import CHECKPOINT, Ledger, locked


class Summary(msgspec.Struct):
    """What a run did."""

    files: int = 0
    events: int = 0
    duplicates: int = 0
    quarantined: int = 0
    pending: int = 0


class IngestError(Exception):
    """The run failed: why, in a sentence."""


def ingest(
    spark: SparkSession,
    tables: Path,
    folders: Sequence[Path],
    *,
    batch_bytes: int = BATCH_BYTES,
    on_batch: Callable[[list[Report]], None] = lambda _: None,
) -> Summary:
    """Until all is in that was there when it began. Raises IngestError, StateError, OSError."""
    tables = tables.absolute()
    with locked(tables):
        ledger = Ledger(tables)
        ledger.open()
        summary = Summary()
        listing(folders)
        Stream(spark, ledger, summary, on_batch).run(folders, batch_bytes)
        found = listing(folders)
        derive(spark, ledger, found)
        summary.files = len(found)
        summary.pending = len(pending(ledger.state, found))
        return summary


class Stream:
    """The query, from its start to its end."""

    def __init__(
        self, spark: SparkSession, ledger: Ledger, summary: Summary, on_batch: Callable[[list[Report]], None]
    ) -> None:
        self._spark = spark
        self._ledger = ledger
        self._summary = summary
        self._on_batch = on_batch
        self._batches = Batches(spark, ledger)
        self._failure: Exception | None = None
        self._busy = threading.Lock()

    def run(self, folders: Sequence[Path], batch_bytes: int) -> None:
        """Raises what taking a batch raises, and IngestError."""
        query = self._start(folders, batch_bytes)
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if self._failure is not None:
                raise self._failure from None
            raise IngestError(str(error)) from None
        finally:
            query.stop()
            with self._busy:  # a batch that is being committed may end
                pass

    def _start(self, folders: Sequence[Path], batch_bytes: int) -> StreamingQuery:
        self._spark.dataSource.register(AuditSource)
        options: dict[str, str | int] = {
            "tables": str(self._ledger.tables),
            "folders": msgspec.json.encode([str(folder.absolute()) for folder in folders]).decode(),
            "batch_bytes": batch_bytes,
            "readers": self._spark.sparkContext.defaultParallelism,
        }
        frame = self._spark.readStream.format(NAME).options(**options).load()
        writer = frame.writeStream.foreachBatch(self._take)
        checkpoint = str(self._ledger.tables / CHECKPOINT)
        return writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()

    def _take(self, frame: DataFrame, number: int) -> None:
        with self._busy:
            try:
                reports = self._batches.take(frame, number)
            except Exception as error:
                self._failure = error
                raise
        for report in reports:
            self._summary.events += report.events
            self._summary.quarantined += report.quarantined
            self._summary.duplicates += sum(each.run.count for each in report.repeated)
        self._on_batch(reports)
