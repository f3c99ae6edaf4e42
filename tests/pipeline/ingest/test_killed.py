"""Runs that are killed at any moment: whoever comes next finishes what they began, and each event
is in the tables once.
"""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from minicontroller.audit.reading import read_all
from minicontroller.pipeline.delta import STATE
from minicontroller.pipeline.schemas import Table
from tests.audit.logs import a_log, write
from tests.pipeline.ingest.local import ingest_here, ingest_on, places, rows_of
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.pipeline.ingest.local"])

LOG = "_delta_log"
MOMENTS = [*(f"{table.value}/{LOG}" for table in (Table.EVENTS, Table.QUARANTINE)), STATE, f"{STATE}/{LOG}"]
"""What appears while a run goes on; the last one never does."""
SMALL_BATCH = 20_000
EPOCHS = 6
EVENTS = 60
WITHIN_SECONDS = 300.0


def add_epochs(folder: Path, first: int, count: int = EPOCHS) -> None:
    folder.mkdir(exist_ok=True)
    for epoch in range(first, first + count):
        write(folder / f"{epoch:03}.ndjson", a_log(EVENTS, epoch))


def expected(folder: Path) -> list[tuple[str, int, int]]:
    events = [located.event for located in read_all([folder])]
    return sorted((event.cluster_id, event.epoch, event.sequence) for event in events if event is not None)


@pytest.mark.parametrize("seed", range(16))
def test_killed_while_it_commits(tmp_path: Path, seed: int) -> None:
    """SIGKILL between any two steps of staging, state and commits, several times in a row, loses
    and doubles nothing (P-1).
    """
    chance = random.Random(seed)
    audit, tables = tmp_path / "audit", tmp_path / "tables"
    for attempt in range(4):
        add_epochs(audit, 1 + attempt * EPOCHS)
        process = CONTEXT.Process(target=ingest_here, args=(tables, audit), kwargs={"batch_bytes": SMALL_BATCH})
        process.start()
        wait_for(chance, tables, process.is_alive)
        process.kill()
        process.join()
    state = ingest_here(tables, audit, batch_bytes=SMALL_BATCH)
    assert places(tables) == expected(audit)
    assert [epoch.duplicates for epoch in state.clusters[places(tables)[0][0]].epochs.values()] == [0] * 4 * EPOCHS
    assert rows_of(tables, Table.QUARANTINE) == []


def wait_for(chance: random.Random, tables: Path, is_alive: Callable[[], bool]) -> None:
    """A moment of the run: something appears, and a little later."""
    moment = chance.choice(MOMENTS)
    deadline = time.monotonic() + WITHIN_SECONDS
    while is_alive() and not (tables / moment).exists() and time.monotonic() < deadline:
        pass
    later = time.monotonic() + chance.expovariate(50)
    while is_alive() and time.monotonic() < later:
        pass


SCRIPT = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from tests.pipeline.ingest.local import ingest_on
    from minicontroller.pipeline import spreading
    from minicontroller.pipeline.session import spark_session
    from tests.pipeline.conftest import SMALL

    spreading.SMALL = 0  # so that Spark does what little there is, too
    with spark_session("local[2]", settings=SMALL) as spark:
        ingest_on(spark, Path(sys.argv[2]), [Path(sys.argv[1])], batch_bytes=20_000)
    """
)

SPARK_MOMENTS = [Table.EVENTS.value, STATE, Table.TOPIC_HISTORY.value]
"""Of staging, of the first commit, of the history."""


@pytest.mark.slow
def test_killed_with_spark_and_all(spark: SparkSession, tmp_path: Path) -> None:
    """SIGKILL of the whole process group while it stages, commits and makes the history, one after
    the other (P-1).
    """
    chance = random.Random(7)
    audit, tables = tmp_path / "audit", tmp_path / "tables"
    for attempt, moment in enumerate(SPARK_MOMENTS):
        add_epochs(audit, 1 + attempt * EPOCHS)
        with killed_afterwards(audit, tables):
            until((tables / moment).exists, within=WITHIN_SECONDS)
            until(partial(is_over, time.monotonic() + chance.uniform(0, 0.3)))
    ingest_on(spark, tables, [audit], batch_bytes=SMALL_BATCH)
    assert places(tables) == expected(audit)
    epochs = rows_of(tables, Table.CONTROLLER_EPOCHS)
    assert [(row["events"], row["missing"], row["duplicates"]) for row in epochs] == [(EVENTS + 2, 0, 0)] * len(epochs)
    assert len(epochs) == EPOCHS * len(SPARK_MOMENTS)
    assert rows_of(tables, Table.PROBLEMS) == rows_of(tables, Table.QUARANTINE) == []
    now = [row["topic"] for row in rows_of(tables, Table.TOPIC_HISTORY) if row["until_cause"] is None]
    assert sorted(now) == sorted(f"t{number}" for number in range(3, 3 + EVENTS))


def is_over(moment: float) -> bool:
    return time.monotonic() >= moment


@contextmanager
def killed_afterwards(audit: Path, tables: Path) -> Iterator[None]:
    with (audit.parent / "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(audit), str(tables)],
            cwd=ROOT,
            start_new_session=True,
            stdout=said,
            stderr=said,
        )
    try:
        yield
        assert process.poll() is None, (audit.parent / "said").read_text()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
