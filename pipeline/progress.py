"""Prints one updating line on stderr if stderr is a terminal, and nothing otherwise: events, bytes,
their rates and the time left. The progress of a batch is Spark's share of finished tasks.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from pyspark.sql import SparkSession, is_remote
from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.filesize import decimal
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from .failures import is_sparks, lost

LOOKS_PER_SECOND = 4
BAR_WIDTH = 40


class Amount(NamedTuple):
    """A number of events and a number of bytes; 0 where it is not known."""

    events: float = 0
    bytes: float = 0

    def plus(self, other: "Amount", part: float = 1.0) -> "Amount":
        return Amount(self.events + other.events * part, self.bytes + other.bytes * part)

    def of(self, whole: "Amount") -> float | None:
        """Return the part of a whole, by bytes if they are known; None if nothing is."""
        done, every = (self.bytes, whole.bytes) if whole.bytes else (self.events, whole.events)
        return min(1.0, done / every) if every else None


class Stages:
    """The progress of a command: a number of stages, or 0 if it is not known."""

    def __init__(self, spark: SparkSession, stages: int = 0, *, console: Console | None = None) -> None:
        self._tasks = Tasks(spark)
        self._stages = stages
        self._console = console or Console(stderr=True)
        self._number = 0
        self._text = ""
        self._began = time.monotonic()
        self._whole = self._done = self._batch = Amount()

    @contextmanager
    def shown(self) -> Iterator["Stages"]:
        if not self._console.is_terminal:
            yield self
            return
        line = Live(
            console=self._console, get_renderable=self._line, refresh_per_second=LOOKS_PER_SECOND, transient=True
        )
        with self._tasks.watched(), line:
            yield self

    @contextmanager
    def stage(self, text: str, *, events: int = 0, size: int = 0) -> Iterator[None]:
        """Show a stage within the block: Spark goes through so many events and bytes, once."""
        self.enters(text, size=size, events=events)
        self._batch = self._whole
        yield

    def enters(self, text: str, *, events: int = 0, size: int = 0) -> None:
        """Begin a stage of several batches, or one of which nobody knows how long it takes."""
        self._number += 1
        self._text, self._began = text, time.monotonic()
        self._done = self._batch = Amount()
        self._whole = Amount(events, size)

    @contextmanager
    def batch(self, *, events: int = 0, size: int = 0) -> Iterator[None]:
        """Go, within the block, through a batch of a stage once."""
        self._batch = Amount(events, size)
        yield
        self._batch = Amount()

    def has_done(self, *, events: int = 0, size: int = 0) -> None:
        self._done = self._done.plus(Amount(events, size))

    def _line(self) -> RenderableType:
        """Return the text of the moment, and a bar, which shows no part if nobody knows it."""
        done, total = self._tasks.counted()
        amount = self._done.plus(self._batch, done / total if total else 0.0)
        part = amount.of(self._whole)
        number = f"{self._number}/{self._stages} " if self._stages else ""
        tasks = f", {done} of {total} tasks" if total and part is None else ""
        line = number + self._text + progress_text(amount, time.monotonic() - self._began, part) + tasks
        bar = ProgressBar(total=None if part is None else 1.0, completed=part or 0.0, width=BAR_WIDTH)
        return Columns([Text(line), bar])


class Tasks:
    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._counts: dict[str, tuple[int, int]] = {}
        """How many tasks are done, and how many there are, by operation of a server of Spark
        Connect.
        """

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Have a server of Spark Connect report its progress within the block."""
        if not is_remote():
            yield
            return
        handler: Any = self._take
        self._spark.registerProgressHandler(handler)
        try:
            yield
        finally:
            self._spark.removeProgressHandler(handler)

    def counted(self) -> tuple[int, int]:
        """Return how many tasks are done, and how many there are; 0 if Spark cannot be asked."""
        if is_remote():
            return _sums(self._counts.values())
        try:
            with lost():
                tracker = self._spark.sparkContext.statusTracker()
                infos = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        except Exception as error:
            if is_sparks(error):
                return 0, 0
            raise
        return _sums((info.numCompletedTasks, info.numTasks) for info in infos if info)

    def _take(self, stages: Iterable[Any] | None, _running: int, operation_id: str | None, done: bool) -> None:
        found = () if done else stages or ()
        self._counts[operation_id or ""] = _sums((stage.num_completed_tasks, stage.num_tasks) for stage in found)


def _sums(counts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    found = list(counts)
    return sum(done for done, _ in found), sum(total for _, total in found)


def progress_text(done: Amount, seconds: float, part: float | None) -> str:
    """Write how much is done, how fast, and how long the rest takes, as far as it is known."""
    text = ""
    if done.events:
        text += f", {done.events:,.0f} events, {done.events / seconds:,.0f} a second"
    if done.bytes:
        text += f", {decimal(round(done.bytes))}, {decimal(round(done.bytes / seconds))} a second"
    if part:
        text += f", {timedelta(seconds=round(seconds * (1 - part) / part))} left"
    return text
