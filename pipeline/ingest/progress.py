"""What is told while a run goes on: a bar on a terminal, nothing elsewhere.

Rule: it counts what is in the tables; telling never fails a run.
"""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol, Self

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from ..progress import LOOK_SECONDS, Tasks
from .report import Report

EVENTS = "events"
"""The stage whose end is known."""


class Progress(Protocol):
    """What a run reports while it goes on."""

    def begins(self, unread: int | None) -> None:
        """Take the number of bytes that are to be read; None if there is no end."""

    def enters(self, stage: str) -> None: ...

    def has_read(self, reports: Sequence[Report]) -> None:
        """Take the reports of a batch that is in the tables."""


class Quiet:
    """Progress that is shown to nobody."""

    def begins(self, unread: int | None) -> None: ...

    def enters(self, stage: str) -> None: ...

    def has_read(self, reports: Sequence[Report]) -> None: ...


class Told:
    """Counts how far a run is."""

    def __init__(self) -> None:
        self.unread: int | None = None
        self.events = 0
        self.bytes = 0
        self.stage = EVENTS
        self._began = time.monotonic()

    def add(self, reports: Sequence[Report]) -> None:
        self.events += sum(report.events for report in reports)
        self.bytes += sum(reached.size for report in reports for reached in report.reached)

    @property
    def seconds(self) -> float:
        return max(0.001, time.monotonic() - self._began)

    def text(self) -> str:
        if self.stage != EVENTS:
            return self.stage
        return f"{self.stage}: {self.events:,} events, {self.events / self.seconds:,.0f} a second"


class Terminal:
    """Progress as a bar on a terminal, which goes away in the end."""

    def __init__(self, spark: SparkSession, console: Console | None = None) -> None:
        self._spark = spark
        self._told = Told()
        columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
        self._bar = Bar(*columns, console=console or Console(stderr=True), transient=True)
        self._task: TaskID | None = None
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._bar.start()
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()
        self._bar.stop()

    def begins(self, unread: int | None) -> None:
        self._told.unread = unread
        self.enters(EVENTS)

    def enters(self, stage: str) -> None:
        """Show a stage; nobody knows before how long those after the events take."""
        self._told.stage = stage
        before = self._task
        self._task = self._bar.add_task(self._told.text(), total=self._told.unread if stage == EVENTS else None)
        if before is not None:
            self._bar.remove_task(before)

    def has_read(self, reports: Sequence[Report]) -> None:
        self._told.add(reports)

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            if self._task is not None:
                done, total = Tasks(self._spark).counted()
                text = self._told.text() + (f", {done} of {total} tasks" if total else "")
                with suppress(KeyError):  # another stage begins in this moment
                    self._bar.update(self._task, description=text, completed=self._told.bytes)
