"""How far long work is, on the terminal.

Rule: on stderr, and only where somebody looks: a terminal gets one line that moves, anything else
gets nothing.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LOOK_SECONDS = 0.25


class Stages:
    """The progress of a number of stages, each of which Spark divides into tasks."""

    def __init__(self, spark: SparkSession, stages: int) -> None:
        self._spark = spark
        self._stages = stages
        self._done = 0
        self._text = ""
        self._events = 0
        self._began = 0.0

    @contextmanager
    def shown(self) -> Iterator["Stages"]:
        """Show the progress within the block."""
        console = Console(file=sys.stderr)
        if not console.is_terminal:
            yield self
            return
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("left"))
        with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
            over = threading.Event()
            watcher = threading.Thread(target=self._watch, args=(progress, over), daemon=True)
            watcher.start()
            try:
                yield self
            finally:
                over.set()
                watcher.join()

    @contextmanager
    def stage(self, text: str, *, events: int = 0) -> Iterator[None]:
        """Begin a stage, which may go through so many events."""
        self._text, self._events, self._began = text, events, time.monotonic()
        yield
        self._done += 1

    def _watch(self, progress: Progress, over: threading.Event) -> None:
        task = progress.add_task("", total=self._stages)
        while not over.wait(LOOK_SECONDS):
            part = self._part()
            line = f"{self._done + 1}/{self._stages} {self._text}"
            line += speed(self._events * part, time.monotonic() - self._began)
            progress.update(task, completed=min(self._done + part, self._stages), description=line)

    def _part(self) -> float:
        done, total = tasks(self._spark)
        return done / total if total else 0.0


def speed(events: float, seconds: float) -> str:
    """Write how many events are done in a second; empty while there are none."""
    return f", {events / seconds:,.0f} events/s" if events and seconds else ""


def tasks(spark: SparkSession) -> tuple[int, int]:
    """Return how many tasks are done, and how many Spark knows of; none if it cannot be asked any
    more.
    """
    try:
        tracker = spark.sparkContext.statusTracker()
        infos = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    except Exception as error:
        if type(error).__module__.startswith("py4j"):
            return 0, 0
        raise
    return sum(info.numCompletedTasks for info in infos if info), sum(info.numTasks for info in infos if info)
