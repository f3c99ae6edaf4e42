"""What a terminal shows while a run goes on, and what is left when Spark is gone."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread

from pyspark.sql import SparkSession
from rich.console import Console

from minicontroller.pipeline.ingest.progress import EVENTS, Terminal
from tests.support.waiting import until

TASKS = 3
WITHIN_SECONDS = 120.0


def waits_for(file: Path, number: int) -> int:
    until(file.exists, within=WITHIN_SECONDS)
    return number


@contextmanager
def at_work(spark: SparkSession, end: Path) -> Iterator[None]:
    """Spark has tasks that end with the block."""
    numbers = spark.sparkContext.parallelize(range(TASKS), TASKS)
    thread = Thread(target=numbers.map(partial(waits_for, end)).collect)
    thread.start()
    try:
        yield
    finally:
        end.touch()
        thread.join()


def test_every_stage_shows_that_it_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """Events come with their number; the stages after them, which nobody measured before, with
    Spark's tasks, and promise no time.
    """
    said = io.StringIO()
    with (
        Terminal(spark, Console(file=said, force_terminal=True, width=120)) as terminal,
        at_work(spark, tmp_path / "end"),
    ):
        terminal.begins(1000)
        until(said.getvalue, right=lambda text: f"{EVENTS}: 0 events, 0 a second, 0 of {TASKS} tasks" in text)
        terminal.enters("topic history")
        until(said.getvalue, right=lambda text: f"topic history, 0 of {TASKS} tasks" in text)
    assert not any("topic history" in line and "0:00:00" in line for line in said.getvalue().split("\r"))
