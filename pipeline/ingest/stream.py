"""The query that takes what is new, batch by batch.

Rule: a batch that is being committed is waited for, however the query ends.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ..session import first_line
from ..spreading import by_workers, parallelism
from .batches import Batches, StagingError
from .conflicts import conflicts
from .progress import Progress
from .report import Report, Share
from .source import NAME, AuditSource
from .staging import stage
from .state import CHECKPOINT, Ledger

FOLLOW_INTERVAL = "1 second"
TOO_SLOW = "Python worker failed to connect back"
"""Spark gives the Python process that plans ten seconds to start (PythonWorkerFactory), which a
busy machine may not do.
"""
ATTEMPTS = 10


class IngestError(Exception):
    """The run failed; the message is a sentence that says why."""


class Totals(msgspec.Struct):
    """The counts of all batches of a run."""

    events: int = 0
    duplicates: int = 0
    quarantined: int = 0

    def add(self, report: Report) -> None:
        self.events += report.events
        self.quarantined += report.quarantined
        self.duplicates += report.duplicates


class Stream:
    """One streaming query of Spark's, which takes audit files into the tables."""

    def __init__(self, spark: SparkSession, ledger: Ledger, folders: Sequence[Path], progress: Progress) -> None:
        self.totals = Totals()
        self._spark = spark
        self._ledger = ledger
        self._folders = folders
        self._progress = progress
        self._batches = Batches(ledger, self._staged, partial(conflicts, spark, ledger.tables))
        self._query: StreamingQuery | None = None
        self._failure: Exception | None = None
        self._is_stopping = False
        self._attempts = ATTEMPTS
        self._begin: Callable[[], StreamingQuery]
        self._busy = threading.Lock()

    def start(self, batch_bytes: int, *, follow: bool) -> None:
        """Start the query. Raises IngestError."""
        options: dict[str, str | int] = {
            "tables": str(self._ledger.tables),
            "folders": msgspec.json.encode([str(folder) for folder in self._folders]).decode(),
            "batch_bytes": batch_bytes,
            "readers": parallelism(self._spark),
        }
        self._begin = partial(self._started, options, follow=follow)
        try:
            self._query = self._begin()
        except PySparkException as error:
            if not self._is_worth_another(error):
                raise IngestError(f"Spark failed: {first_line(error)}") from None
            self.start(batch_bytes, follow=follow)

    def _started(self, options: dict[str, str | int], *, follow: bool) -> StreamingQuery:
        self._spark.dataSource.register(AuditSource)
        frame = self._spark.readStream.format(NAME).options(**options).load()
        writer = frame.writeStream.foreachBatch(self._take)
        writer = writer.option("checkpointLocation", str(self._ledger.tables / CHECKPOINT))
        writer = writer.trigger(processingTime=FOLLOW_INTERVAL) if follow else writer.trigger(availableNow=True)
        return writer.start()

    def _is_worth_another(self, error: BaseException | None) -> bool:
        """Whether the process that plans did not start in time: then nothing was done yet, and the
        query is started again.
        """
        if self._failure is not None or error is None or TOO_SLOW not in str(error) or not self._attempts:
            return False
        self._attempts -= 1
        return True

    @property
    def is_active(self) -> bool:
        assert self._query is not None
        if self._query.isActive:
            return True
        if not self._is_worth_another(self._query.exception()):
            return False
        self._query = self._begin()
        return True

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Commit nothing within the block."""
        with self._busy:
            yield

    def stop(self) -> None:
        """Stop the query. If it ended by itself, raises what ended it: IngestError, OSError."""
        assert self._query is not None
        failed = None if self._query.isActive else self._query.exception()
        with self._busy:
            self._is_stopping = True
        self._query.stop()  # waits for a batch that has come to `_take`, which wants the lock
        if isinstance(self._failure, OSError):
            raise self._failure
        if isinstance(self._failure, StagingError):
            raise IngestError(str(self._failure)) from None
        if failed is not None:
            raise IngestError(f"Spark failed: {first_line(failed)}") from None

    def _staged(self, shares: Sequence[Share], folder: str) -> list[Report]:
        """Have Spark's workers stage the shares."""
        tables = self._ledger.tables
        return by_workers(self._spark, partial(stage, tables=tables, staging=folder), shares, tables)

    def _take(self, frame: DataFrame, number: int) -> None:
        with self._busy:
            if self._is_stopping:
                return
            try:
                shares = [msgspec.json.decode(row["share"], type=Share) for row in frame.collect()]
                reports = self._batches.take(shares, number)
            except (OSError, StagingError, PySparkException) as error:
                self._failure = error
                raise
            for report in reports:
                self.totals.add(report)
        self._progress.has_read(reports)
