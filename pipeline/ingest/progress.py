"""What is told while a run goes on: a bar on a terminal, nothing elsewhere.

Rule: it counts what is in the tables; telling never fails a run.
"""

import time
from collections.abc import Sequence
from typing import Protocol, Self

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from .report import Report


class Progress(Protocol):
    """What a run tells of."""

    def begins(self, unread: int | None) -> None:
        """So many bytes are to be read; None if there is no end."""

    def enters(self, stage: str) -> None: ...

    def looks(self, spark: SparkSession) -> None:
        """Called now and then: how far is the batch?"""

    def has_read(self, reports: Sequence[Report]) -> None:
        """A batch is in the tables."""


class Quiet:
    """Tells nothing."""

    def begins(self, unread: int | None) -> None: ...

    def enters(self, stage: str) -> None: ...

    def looks(self, spark: SparkSession) -> None: ...

    def has_read(self, reports: Sequence[Report]) -> None: ...


class Told:
    """How far it is."""

    def __init__(self) -> None:
        self.unread: int | None = None
        self.events = 0
        self.bytes = 0
        self.stage = "events"
        self._began = time.monotonic()

    def add(self, reports: Sequence[Report]) -> None:
        self.events += sum(report.events for report in reports)
        self.bytes += sum(reached.size for report in reports for reached in report.reached)

    @property
    def seconds(self) -> float:
        return max(0.001, time.monotonic() - self._began)

    def text(self) -> str:
        return f"{self.stage}: {self.events:,} events, {self.events / self.seconds:,.0f} a second"

    def time_left(self) -> float | None:
        if not self.unread or not self.bytes:
            return None
        return max(0.0, (self.unread - self.bytes) * self.seconds / self.bytes)


class Terminal:
    """A bar that goes away in the end."""

    def __init__(self) -> None:
        self._told = Told()
        columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
        self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begins(self, unread: int | None) -> None:
        self._told.unread = unread
        self._task = self._bar.add_task(self._told.text(), total=unread)

    def enters(self, stage: str) -> None:
        self._told.stage = stage
        self._show()

    def looks(self, spark: SparkSession) -> None:
        tracker = spark.sparkContext.statusTracker()
        stages = [info for info in map(tracker.getStageInfo, tracker.getActiveStageIds()) if info is not None]
        done, total = sum(info.numCompletedTasks for info in stages), sum(info.numTasks for info in stages)
        self._show(f", {done} of {total} tasks" if total else "")

    def has_read(self, reports: Sequence[Report]) -> None:
        self._told.add(reports)
        self._show()

    def _show(self, more: str = "") -> None:
        if self._task is not None:
            self._bar.update(self._task, description=self._told.text() + more, completed=self._told.bytes)
