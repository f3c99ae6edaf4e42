"""One run of the ingest: adds all new events in the folders to the tables.

The progress of each file is part of the state that is committed with the events, so the next run
continues one that was killed at any point, and of two runs at once one fails. The derived tables
follow after the events, so a failure there loses no event. `minicontroller pipeline ingest` prints
the summary of a run, whose numbers are those of the tables.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event

import click
import msgspec
from pyspark.sql import SparkSession

from ..delta import Tables
from ..ending import ending
from ..failures import PipelineError, first_line, is_sparks
from ..location import Location
from ..page.tables import plural
from ..parallel import map_on_workers, parallelism
from ..probing import probe
from ..progress import Stages
from .batches import ingest_batch
from .derived import derive
from .files import (
    AuditFile,
    Read,
    listing,
    next_reads,
    unread,
)
from .leftovers import Leftovers, leftovers, note_leftovers
from .rebuilding import clear_tables
from .state import Ledger, copied

SHARE_BYTES = 256 << 20
"""About how many bytes of audit files a task reads at most."""
PIECE_BYTES = 64 << 20
"""How many bytes of a file a piece has at most: shares are put together from pieces, so that they
are equal.
"""
MIN_PIECE_BYTES = 4 << 20
"""How many bytes a piece or a share has at least, even if other workers have nothing to do: each
share becomes a file.
"""
SHARES = 4
"""How many shares a batch has for each processor, so that commits are rare."""
FOLLOW_SECONDS = 1.0
THOROUGH_SECONDS = 60.0
"""How often all that was read of a changed file is compared while the log is followed."""
EVENTS = "events"
DERIVE_SHARE = 10
"""While the log is followed, updates of the derived tables take at most one part in so many of the
time.
"""
MIN_DERIVE_SECONDS = 5.0


class IngestError(PipelineError):
    """A run failed."""


class IngestSummary(msgspec.Struct):
    """The results of a run, and the state of the tables afterwards."""

    files: int = 0
    events: int = 0
    duplicates: int = 0
    quarantined: int = 0
    missing: int = 0
    """How many events no file had so far, of all that is in the tables."""
    conflicts: int = 0
    read_again: int = 0
    """How many files were read again, because they are not what was read of them before."""
    lost: int = 0
    """How many events files hold no more that were read of them."""
    torn: int = 0
    unreadable: int = 0
    pending: int = 0
    """How many files have a line that has no end yet."""
    merged: int = 0
    """How many fewer files the tables have since small ones were merged."""

    @property
    def has_problems(self) -> bool:
        return any(
            (self.duplicates, self.quarantined, self.missing, self.conflicts, self.lost, self.torn, self.unreadable)
        )


def ingest(
    spark: SparkSession,
    tables: Location,
    folders: Sequence[Location],
    *,
    follow: Event | None = None,
    anew: bool = False,
    batch_bytes: int | None = None,
    progress: Stages | None = None,
) -> IngestSummary:
    """Ingest all that is there when the run begins or, with `follow`, until that event is set.

    Raises IngestError and TablesError, with a sentence, and OSError.
    """
    folders = sorted(set(folders))
    if anew:
        clear_tables(Tables(tables), listing(folders))
    ledger = Ledger(Tables(tables))
    if not ledger.number:
        probe(tables)
    ledger.follow_with_quarantine()
    run = IngestRun(spark, ledger, folders, progress or Stages(spark), batch_bytes)
    if follow is None:
        run.all_there_is()
    else:
        run.until(follow)
    return run.summary


class IngestRun:
    def __init__(
        self,
        spark: SparkSession,
        ledger: Ledger,
        folders: Sequence[Location],
        progress: Stages,
        batch_bytes: int | None,
    ) -> None:
        self.summary = IngestSummary()
        self._ledger = ledger
        self._folders = folders
        self._progress = progress
        self._processors = parallelism(spark)
        self._batch_bytes = batch_bytes or SHARES * SHARE_BYTES * self._processors
        self._on_workers = partial(map_on_workers, spark, place=ledger.tables.location)
        self._failed: set[Read] = set()
        """The reads that failed, which are not tried twice by one run."""
        self._due = -float("inf")
        """When the derived tables are to be updated, on the monotonic clock, if they are behind the
        events.
        """

    def all_there_is(self) -> None:
        found = listing(self._folders)
        if not found and not self._ledger.state.files:
            raise IngestError(f"There is no audit file in {', '.join(map(str, self._folders))}.")
        self._progress.enters(EVENTS, size=sum(unread(found, self._ledger.state.files)))
        while self._takes_batch(found):
            pass
        self._finish(found)

    def until(self, stop: Event) -> None:
        self._progress.enters(EVENTS)
        thorough = -float("inf")
        while not stop.is_set():
            found, now = listing(self._folders), time.monotonic()
            is_thorough = now > thorough + THOROUGH_SECONDS
            thorough = now if is_thorough else thorough
            if not self._takes_batch(found, is_thorough=is_thorough):
                if self._ledger.is_stale and time.monotonic() > self._due:
                    self._follow_up(found)
                    self._progress.enters(EVENTS)
                stop.wait(FOLLOW_SECONDS)
        self._finish(listing(self._folders))

    def _takes_batch(self, found: dict[str, AuditFile], *, is_thorough: bool = True) -> bool:
        """Take what is to be read next into the tables; False if there is nothing."""
        piece = max(MIN_PIECE_BYTES, min(PIECE_BYTES, self._batch_bytes // self._processors))
        reads = next_reads(
            found,
            self._ledger.state.files,
            given=self._failed,
            max_bytes=self._batch_bytes,
            piece_bytes=piece,
            is_thorough=is_thorough,
        )
        if not reads:
            return False
        size = sum(read.size for read in reads)
        rounds = max(1, -(-size // (SHARE_BYTES * self._processors)))
        each = max(MIN_PIECE_BYTES, -(-size // (rounds * self._processors)))
        with _failures_explained("Spark failed"), self._progress.batch(size=size):
            results = ingest_batch(self._ledger, self._on_workers, reads, each)
        for result in results:
            self._failed |= {done.read for done in result.progress if done.failure is not None}
            self._progress.has_done(events=result.events, size=sum(done.size for done in result.progress))
            self.summary.events += result.events
            self.summary.duplicates += result.duplicates
            self.summary.quarantined += result.quarantined
            self.summary.read_again += sum(each.read.again and each.read.begin == 0 for each in result.progress)
        return True

    def _follow_up(self, found: dict[str, AuditFile]) -> Leftovers:
        """Bring the derived tables up to date with the events, and merge small files."""
        self._progress.enters("topic history")
        began = time.monotonic()
        left = leftovers(found, self._ledger.state.files)
        state = copied(self._ledger.state)
        note_leftovers(state, found, left)
        if state != self._ledger.state:
            self._ledger.change(state, [], [])
        with _failures_explained(
            "The events are in the tables, but topic_history, controller_epochs and problems are not up to date"
        ):
            derive(self._on_workers, self._processors, self._ledger)
        now = time.monotonic()
        self._due = now + max(MIN_DERIVE_SECONDS, DERIVE_SHARE * (now - began))
        self._progress.enters("merging small files")
        self.summary.merged += self._ledger.merge_small()
        return left

    def _finish(self, found: dict[str, AuditFile]) -> None:
        left = self._follow_up(found)
        epochs = [epoch for cluster in self._ledger.state.clusters.values() for epoch in cluster.epochs.values()]
        summary = self.summary
        summary.files = len(found)
        summary.missing = sum(epoch.missing for epoch in epochs)
        summary.conflicts = sum(span.count for epoch in epochs for span in epoch.conflicts)
        summary.torn, summary.unreadable, summary.lost = len(left.torn), len(left.unreadable), sum(left.lost.values())
        summary.pending = len(left.pending) - len(left.torn)


@contextmanager
def _failures_explained(meaning: str) -> Iterator[None]:
    """Turn Spark's error into a sentence that says what it means."""
    try:
        yield
    except Exception as error:
        if is_sparks(error):
            raise IngestError(f"{meaning}: {first_line(error)} Run it again.") from None
        raise


def run_command(
    spark: SparkSession,
    tables: Location,
    folders: Sequence[Location],
    *,
    follow: bool,
    anew: bool,
    batch_bytes: int | None,
    fails_on_problems: bool,
) -> None:
    """Ingest, and print what came of it; exit with 1 if there are problems and `fails_on_problems`.
    Raises PipelineError and OSError.
    """
    stop = Event() if follow else None
    ending.finishes = None if stop is None else stop.set
    try:
        with Stages(spark).shown() as progress:
            summary = ingest(spark, tables, folders, follow=stop, anew=anew, batch_bytes=batch_bytes, progress=progress)
    finally:
        ending.finishes = None
    for line in summary_lines(summary):
        click.echo(line)
    if fails_on_problems and summary.has_problems:
        sys.exit(1)


def summary_lines(summary: IngestSummary) -> list[str]:
    lines = [
        f"{plural(number, what)} {text}."
        for number, what, text in (
            (summary.duplicates, "event", "more than once in the files, and once in the tables"),
            (summary.conflicts, "event", "in conflict with another at the same place in the log; the first one stays"),
            (summary.missing, "event", "missing: no file has them so far"),
            (summary.quarantined, "line", "in quarantine"),
            (summary.read_again, "file", "changed since it was read, and read again"),
            (summary.lost, "event", "no longer in their files, which were cut or changed"),
            (summary.torn, "file", "torn: finished, and ending within a line"),
            (summary.unreadable, "file", "unreadable"),
            (summary.pending, "file", "with an unfinished last line"),
        )
        if number
    ]
    if summary.has_problems:
        lines.append("The tables `problems` and `quarantine` have the details.")
    return [f"{summary.events:,} new events from {plural(summary.files, 'file')}.", *lines]
