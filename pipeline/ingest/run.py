"""One run: everything that is new in the folders, into the tables.

Rule: one run at a time; what an earlier one began is finished first. The derived tables follow when
the events are in, so a failure there costs no event.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ..session import first_line
from .compaction import compact
from .derived import derive
from .files import Found, former_names, is_told, listing
from .files import Progress as FileProgress
from .leftovers import Leftovers, leftovers, note_leftovers
from .progress import EVENTS, Progress, Quiet
from .source import BATCH_BYTES
from .state import Ledger, State, copied, locked
from .stream import IngestError, Stream

LOOK_SECONDS = 0.5
DERIVE_SHARE = 10
"""While the log is followed, the derived tables take at most one part in so many of the time."""
MIN_DERIVE_SECONDS = 5.0


class Summary(msgspec.Struct):
    """What a run did, and the state of the tables afterwards."""

    files: int = 0
    events: int = 0
    duplicates: int = 0
    quarantined: int = 0
    missing: int = 0
    """Events that no file had so far, of all that is in the tables."""
    conflicts: int = 0
    torn: int = 0
    unreadable: int = 0
    pending: int = 0
    """Files with a line that has no end yet."""
    merged: int = 0
    """How many files the tables have less than before they were compacted."""

    @property
    def has_problems(self) -> bool:
        return any((self.duplicates, self.quarantined, self.missing, self.conflicts, self.torn, self.unreadable))


def ingest(
    spark: SparkSession,
    tables: Path,
    folders: Sequence[Path],
    *,
    follow: Event | None = None,
    batch_bytes: int = BATCH_BYTES,
    progress: Progress | None = None,
) -> Summary:
    """Ingest all that is there when the run begins or, with `follow`, until that event is set.

    Raises IngestError and StateError, with a sentence, and OSError.
    """
    tables = tables.absolute()
    folders = sorted({folder.resolve() for folder in folders})
    for folder in folders:
        if not is_told(str(folder)):
            raise IngestError(f"The name of {str(folder)!r} is not UTF-8: give it another one.")
    with locked(tables):
        ledger = Ledger(tables)
        ledger.open()
        run = Run(spark, ledger, folders, progress or Quiet())
        try:
            if follow is None:
                run.all_there_is(batch_bytes)
            else:
                run.until(follow, batch_bytes)
        finally:
            ledger.clear()
        return run.summary


class Run:
    """The steps of a run, under the lock of the tables."""

    def __init__(self, spark: SparkSession, ledger: Ledger, folders: Sequence[Path], progress: Progress) -> None:
        self.summary = Summary()
        self._spark = spark
        self._ledger = ledger
        self._folders = folders
        self._progress = progress
        self._stream = Stream(spark, ledger, folders, progress)
        self._derived_at = -float("inf")
        self._derived_in = 0.0

    def all_there_is(self, batch_bytes: int) -> None:
        found = listing(self._folders)
        if not found and not self._ledger.state.files:
            raise IngestError(f"There is no audit file in {', '.join(map(str, self._folders))}.")
        self._progress.begins(_unread(found, self._ledger.state))
        self._stream.start(batch_bytes, follow=False)
        try:
            while self._stream.is_active:
                time.sleep(LOOK_SECONDS / 5)
        finally:
            self._stream.stop()
        self._finish()

    def until(self, stop: Event, batch_bytes: int) -> None:
        self._progress.begins(None)
        self._stream.start(batch_bytes, follow=True)
        try:
            while self._stream.is_active and not stop.wait(LOOK_SECONDS):
                if self._is_due():
                    with self._stream.pause():
                        self._derive()
        finally:
            self._stream.stop()
        self._finish()

    def _is_due(self) -> bool:
        waits = max(MIN_DERIVE_SECONDS, DERIVE_SHARE * self._derived_in)
        return self._ledger.state.is_stale and time.monotonic() - self._derived_at > waits

    def _finish(self) -> None:
        left = self._derive()
        self._progress.enters("compaction")
        with _told("The events are in the tables, but not compacted"):
            self.summary.merged = compact(self._spark, self._ledger)
        self._sum_up(left)

    def _derive(self) -> Leftovers:
        self._progress.enters("topic history")
        began = time.monotonic()
        found = listing(self._folders)
        state = copied(self._ledger.state)
        left = leftovers(found, state.files)
        note_leftovers(state, found, left)
        with _told("The events are in the tables, but topic_history, controller_epochs and problems are as they were"):
            derive(self._spark, self._ledger, state)
        self._derived_at = time.monotonic()
        self._derived_in = self._derived_at - began
        self.summary.files = len(found)
        self._progress.enters(EVENTS)
        return left

    def _sum_up(self, left: Leftovers) -> None:
        epochs = [epoch for cluster in self._ledger.state.clusters.values() for epoch in cluster.epochs.values()]
        totals = self._stream.totals
        self.summary.events, self.summary.duplicates = totals.events, totals.duplicates
        self.summary.quarantined = totals.quarantined
        self.summary.missing = sum(epoch.missing for epoch in epochs)
        self.summary.conflicts = sum(run.count for epoch in epochs for run in epoch.conflicts)
        self.summary.torn, self.summary.unreadable = len(left.torn), len(left.unreadable)
        self.summary.pending = len(left.pending) - len(left.torn)


class _told:  # noqa: N801 - used as a statement
    """Turn Spark's error into a sentence that says what it means."""

    def __init__(self, meaning: str) -> None:
        self._meaning = meaning

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, PySparkException) or type(error).__module__.startswith("py4j"):
            assert error is not None
            raise IngestError(f"{self._meaning}: {first_line(error)} Run it again.") from None


def _unread(found: dict[str, Found], state: State) -> int:
    """Estimate how many bytes are unread, uncompressed."""
    former = former_names(found, state.files)
    return sum(file.unread(state.files.get(former.get(name, name), FileProgress())) for name, file in found.items())
