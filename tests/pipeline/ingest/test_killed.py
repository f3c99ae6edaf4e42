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
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.process import BaseProcess
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

MOMENTS = [Table.EVENTS.value, *(f"{table.value}/_delta_log" for table in (Table.EVENTS, Table.QUARANTINE)), STATE]
"""The folders in which a batch leaves something: staged files, commits of both, the state."""
SMALL_BATCH = 20_000
EPOCHS = 3
EVENTS = 60
SEEDS = range(3)
"""Each is killed in all four folders: twelve moments in a run of the tests."""
MILLISECOND = 0.001
WITHIN_SECONDS = 300.0


def add_epochs(folder: Path, first: int, count: int = EPOCHS) -> None:
    folder.mkdir(exist_ok=True)
    for epoch in range(first, first + count):
        write(folder / f"{epoch:03}.ndjson", a_log(EVENTS, epoch))


def expected(folder: Path) -> list[tuple[str, int, int]]:
    events = [located.event for located in read_all([folder])]
    return sorted((event.cluster_id, event.epoch, event.sequence) for event in events if event is not None)


@pytest.mark.parametrize("seed", SEEDS)
def test_killed_while_it_commits(tmp_path: Path, seed: int) -> None:
    """SIGKILL between any two steps of staging, state and commits, several times in a row, loses
    and doubles nothing (P-1d).
    """
    chance = random.Random(seed)
    audit, tables = tmp_path / "audit", tmp_path / "tables"
    moments = chance.sample(MOMENTS, len(MOMENTS))
    for attempt, moment in enumerate(moments):
        add_epochs(audit, 1 + attempt * EPOCHS)
        process = CONTEXT.Process(target=ingest_here, args=(tables, audit), kwargs={"batch_bytes": SMALL_BATCH})
        process.start()
        wait_for(chance, tables / moment, process)
        process.kill()
        process.join()
    state = ingest_here(tables, audit, batch_bytes=SMALL_BATCH)
    assert places(tables) == expected(audit)
    epochs = state.clusters[places(tables)[0][0]].epochs.values()
    assert [epoch.duplicates for epoch in epochs] == [0] * len(moments) * EPOCHS
    assert rows_of(tables, Table.QUARANTINE) == []


def wait_for(chance: random.Random, folder: Path, process: BaseProcess) -> None:
    """Wait until a run leaves something in a folder, once or twice, and a little longer."""
    for _ in range(chance.randint(1, 2)):
        before = held(folder)
        while process.is_alive() and held(folder) == before:
            process.join(MILLISECOND)
    process.join(chance.expovariate(50))


def held(folder: Path) -> set[Path]:
    """Return what there is in a folder, and in those of the clusters in it."""
    return {*folder.glob("*"), *folder.glob("cluster_id=*/*")}


SCRIPT = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from tests.pipeline.ingest.local import ingest_on
    from minicontroller.pipeline import parallel
    from minicontroller.pipeline.session import spark_session
    from tests.pipeline.conftest import SMALL

    parallel.SMALL = 0  # so that Spark does what little there is, too
    with spark_session("local[2]", settings=SMALL) as spark:
        ingest_on(spark, Path(sys.argv[2]), [Path(sys.argv[1])], batch_bytes=20_000)
    """
)

SPARK_MOMENTS = [Table.EVENTS.value, Table.TOPIC_HISTORY.value]
"""Of staging and of the history, which are work of Spark; commits are made as without it."""


@pytest.mark.slow
def test_killed_with_spark_and_all(spark: SparkSession, tmp_path: Path) -> None:
    """SIGKILL of the whole process group while it stages, and while it makes the history (P-1d)."""
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
