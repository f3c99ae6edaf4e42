"""How far long work is, on the terminal."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from rich.console import Console

from minicontroller.pipeline.parallel import map_on_workers
from minicontroller.pipeline.progress import Amount, Stages, progress_text
from tests.support.waiting import until

WITHIN_SECONDS = 120.0
TASKS = 4


def test_what_is_told() -> None:
    """Only what is known: amounts, how many in a second, and an estimate once a part is done."""
    assert progress_text(Amount(), 4.0, None) == progress_text(Amount(), 4.0, 0.0) == ""
    assert progress_text(Amount(50_000), 4.0, None) == ", 50,000 events, 12,500 a second"
    assert progress_text(Amount(0, 3_000_000), 2.0, 0.25) == ", 3.0 MB, 1.5 MB a second, 0:00:06 left"


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**12))
def test_a_part_is_never_more_than_the_whole(events: int, size: int, all_events: int, all_bytes: int) -> None:
    """Files grow while they are read; and of nothing there is no part."""
    part = Amount(events, size).of(Amount(all_events, all_bytes))
    assert part is None if not (all_events or all_bytes) else part is not None and 0 <= part <= 1


def waits(piece: tuple[Path, int]) -> None:
    file, number = piece
    until(lambda: number == 0 or file.exists(), within=WITHIN_SECONDS)


@contextmanager
def at_work(spark: SparkSession, end: Path) -> Iterator[None]:
    """Spark has done the first of its tasks, and the others end with the block."""
    pieces = [(end, number) for number in range(TASKS)]
    thread = Thread(target=map_on_workers, args=(spark, waits, pieces, end))
    thread.start()
    try:
        yield
    finally:
        end.touch()
        thread.join()


def test_stages_show_how_far_they_are(spark: SparkSession, tmp_path: Path) -> None:
    """What Spark does now counts by its finished tasks: of a stage's events, or of a batch beside
    what is done for certain; a stage that nobody measured shows the tasks and promises no time.
    """
    said = io.StringIO()
    with (
        Stages(spark, 3, console=Console(file=said, force_terminal=True, width=150)).shown() as progress,
        at_work(spark, tmp_path / "end"),
    ):
        with progress.stage("replaying", events=1_000):
            until(said.getvalue, right=lambda text: "1/3 replaying, 250 events, " in text)
        progress.enters("reading", size=2_000)
        progress.has_done(events=7, size=1_000)
        with progress.batch(size=400):
            until(said.getvalue, right=lambda text: "2/3 reading, 7 events, " in text and "1.1 kB" in text)
        with progress.stage("topic history"):
            until(said.getvalue, right=lambda text: f"3/3 topic history, 1 of {TASKS} tasks" in text)
    lines = said.getvalue().split("\r")
    assert any("replaying" in line and " left" in line for line in lines)
    assert not any("topic history" in line and " left" in line for line in lines)


def test_nothing_is_told_where_nobody_looks(spark: SparkSession) -> None:
    """A pipe gets no progress."""
    said = io.StringIO()
    with Stages(spark, 1, console=Console(file=said)).shown() as progress, progress.stage("replaying", events=1):
        pass
    assert said.getvalue() == ""
