"""What the report counts of topics where events are missing."""

import random
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from minicontroller.audit.event import AuditEvent, Decision, Removal, encode
from minicontroller.pipeline.delta import Tables
from minicontroller.pipeline.location import Location
from minicontroller.pipeline.progress import Stages
from minicontroller.pipeline.report.making import STAGES, make
from minicontroller.pipeline.report.question import Report
from minicontroller.pipeline.report.selection import Selection
from minicontroller.pipeline.schemas import Table
from tests.pipeline.by_hand import START_MS, Row, a_decision, a_refusal, a_state, changed
from tests.pipeline.ingest.local import ingest_on, rows_of
from tests.pipeline.report.histories import Maker, a_reign, answer, rows

RANDOM = 8
"""Clusters."""
STATES = {f"a.{number}": a_state(2, topic_id=f"{number:A>22}") for number in range(3)}


def seen(sequence: int, number: int) -> Decision:
    """A refusal that shows a topic."""
    state = STATES[f"a.{number}"]
    return a_refusal(sequence, f"a.{number}", operation="alter_configs", before=state, after=state)


def deleted(sequence: int, number: int) -> Decision:
    before = STATES[f"a.{number}"]
    return a_decision(sequence, f"a.{number}", operation="delete_topic", before=before, after=None)


def created(sequence: int) -> Decision:
    return a_decision(sequence, "a.0", after=STATES["a.0"])


LOGS: dict[str, list[AuditEvent]] = {
    "gap": [*a_reign(1, STATES), seen(5, 0)],
    "all seen": [*a_reign(1, STATES), seen(5, 0), seen(6, 1), seen(7, 2)],
    "seen, deleted": [*a_reign(1, STATES), seen(5, 0), seen(6, 1), deleted(7, 1)],
    "deleted unseen": [*a_reign(1, STATES), seen(5, 0), deleted(6, 1), seen(7, 2)],
    "created": [*a_reign(1), created(4), seen(6, 2)],
    "a snapshot": [*a_reign(1, STATES), seen(5, 0), *a_reign(2, {"a.0": STATES["a.0"]}, time_ms=START_MS + 9000)],
    "shown again": [*a_reign(1, STATES), a_refusal(5, "b"), *a_reign(2, STATES, time_ms=START_MS + 9000)],
}
SIZES = {
    "gap": (3, 3),
    "all seen": (3, 3),
    "seen, deleted": (3, 2),
    "deleted unseen": (3, 3),
    "created": (0, 2),
    "a snapshot": (3, 1),
    "shown again": (3, 3),
}
"""How many topics there were before, and at the end."""


def with_gaps(cluster: str, seed: int) -> Iterator[AuditEvent]:
    """A random log that lost some of its events."""
    chance = random.Random(seed)
    for event in Maker(cluster, seed).events():
        if not isinstance(event, Decision | Removal) or chance.random() > seed / 20:
            yield event


@pytest.fixture(name="tables", scope="module")
def of_logs_with_gaps(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gaps")
    logs = {name: [changed(event, cluster_id=name) for event in log] for name, log in LOGS.items()}
    logs |= {f"random {seed}": list(with_gaps(f"random {seed}", seed)) for seed in range(1, RANDOM + 1)}
    (folder / "audit").mkdir()
    text = b"".join(encode(event) for log in logs.values() for event in log)
    (folder / "audit" / "x.ndjson").write_bytes(text)
    ingest_on(spark, folder / "tables", [folder / "audit"])
    return folder / "tables"


@pytest.fixture(name="report", scope="module")
def of_those_logs(spark: SparkSession, tables: Path) -> Report:
    selection = Selection(spark, Tables(Location.local(tables)))
    with Stages(spark, STAGES).shown() as progress:
        return make(selection, progress)


def test_a_topic_counts_once_where_events_are_missing(report: Report) -> None:
    """What was there stays counted until an event shows it again, or the next snapshot tells what
    is there; a deletion counts off what was seen (P-3a).
    """
    sizes = rows(report.table("growth_by_cluster"), "cluster_id", "topics_before", "topics")
    assert {row[0]: row[1:] for row in sizes if row[0] in SIZES} == SIZES
    over_time = rows(report.table("growth_over_time"), "cluster_id", "topics", "partitions")
    assert all(topics <= 3 and partitions == 2 * topics for name, topics, partitions in over_time if name in SIZES)


def test_all_that_is_told_of_growth_agrees(report: Report) -> None:
    """Prefixes add up to their cluster, and the sentence says the same (P-3a)."""
    sums = ("topics_before", "topics", "partitions_before", "partitions")
    added = defaultdict[str, list[int]](lambda: [0, 0, 0, 0])
    for name, *figures in rows(report.table("growth_by_prefix"), "cluster_id", *sums):
        added[name] = [held + figure for held, figure in zip(added[name], figures, strict=True)]
    by_cluster = report.table("growth_by_cluster")
    assert {row[0]: list(row[1:]) for row in rows(by_cluster, "cluster_id", *sums)} == added
    before, after = by_cluster.totals["topics_before"], by_cluster.totals["topics"]
    assert answer(report, "growth").startswith(f"Topics went from {before} to {after}, ")


def test_growth_is_that_of_the_topic_history(report: Report, tables: Path) -> None:
    """At the end of each step of random logs with gaps, as counted one by one: a lost state lasts
    until the next one of its topic, or the next snapshot, whichever is first in the log.
    """
    lives = [life for name in range(1, RANDOM + 1) for life in lives_of(f"random {name}", tables)]
    found = rows(report.table("growth_over_time"), "cluster_id", "time", "topics", "partitions")
    ends = dict(pairwise(report.selection.axis.starts))
    for cluster, time, *figures in found:
        there = [
            row["partitions"]
            for row, begin, end in lives
            if row["cluster_id"] == cluster and begin < ends[time] and (end is None or end >= ends[time])
        ]
        if cluster not in SIZES:
            assert figures == [len(there), sum(there)]


def lives_of(cluster: str, tables: Path) -> Iterator[tuple[Row, float, float | None]]:
    """Yield each state that clients saw, with the times from and until which it counts."""
    snapshots = [
        ((row["epoch"], 0), row["began"].timestamp() * 1e6)
        for row in rows_of(tables, Table.CONTROLLER_EPOCHS)
        if row["cluster_id"] == cluster
    ]
    history = [row for row in rows_of(tables, Table.TOPIC_HISTORY) if row["cluster_id"] == cluster]
    shown = [row for row in history if not row["marked_for_deletion"]]
    first = min(place(row) for row in shown if row["from_cause"] != "snapshot")
    assert any(row["until_cause"] == "gap" for row in shown)

    def begin(row: Row) -> float:
        was_there = row["from_cause"] == "snapshot" and place(row) < first
        return float("-inf") if was_there else row["from_time"].timestamp() * 1e6

    for row in shown:
        if row["until_cause"] == "gap":
            following = [(place(each), begin(each)) for each in history if each["topic"] == row["topic"]]
            later = [each for each in following + snapshots if each[0] >= place(row, "until")]
            yield row, begin(row), min(later)[1] if later else None
        else:
            yield row, begin(row), row["until_time"] and row["until_time"].timestamp() * 1e6


def place(row: Row, which: str = "from") -> tuple[Any, Any]:
    return row[f"{which}_epoch"], row[f"{which}_sequence"]
