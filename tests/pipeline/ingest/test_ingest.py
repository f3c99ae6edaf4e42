"""From the files of an audit log to the tables on Spark: what is in them afterwards, and what is
told.
"""

import gzip
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import zstandard
from deltalake import CommitProperties, Transaction, write_deltalake
from msgspec.structs import replace
from pyspark.sql import SparkSession

from minicontroller.audit.event import AuditEvent, Dropped, encode
from minicontroller.audit.files import audit_files
from minicontroller.pipeline.datafiles import dataset
from minicontroller.pipeline.delta import APPLICATION, MANY, ChangedMeanwhileError, TablesError
from minicontroller.pipeline.delta import Tables as DeltaTables
from minicontroller.pipeline.ingest.run import IngestError, IngestSummary, summary_lines
from minicontroller.pipeline.ingest.state import Ledger, copied
from minicontroller.pipeline.location import Location
from minicontroller.pipeline.schemas import Table
from tests.audit.logs import a_creation, a_log, a_state, an_empty_snapshot, events_in, replayed, stamp, write
from tests.pipeline.ingest.local import ingest_here, ingest_on, places, rows_of
from tests.support.cluster import running_cluster
from tests.support.waiting import until
from tests.support.wire import Wire

CLUSTERS = ("whole", "gap", "dropped", "torn", "copied", "conflict", "../é=1 %")


def of_cluster(cluster: str, events: list[AuditEvent]) -> list[AuditEvent]:
    return [replace(event, cluster_id=cluster) for event in events]


def name_of(cluster: str, first: int, epoch: int = 1) -> str:
    return f"audit-{cluster:_<22}-{epoch:010}-{first:012}-1.ndjson"


def fill(one: Path, other: Path) -> None:
    """A log with something wrong in each cluster but the first and the last."""
    for folder in (one, other):
        folder.mkdir()
    log = a_log(8)
    write(one / "whole.ndjson", of_cluster("whole", log))
    write(one / "gap.ndjson", of_cluster("gap", [*log[:4], *log[6:]]))
    lost = Dropped(**stamp(6), first_sequence=5, last_sequence=5, reason="no space")
    write(one / "dropped.ndjson", of_cluster("dropped", [*log[:4], lost]))
    torn = write(one / name_of("torn", 1), of_cluster("torn", log[:6]))
    torn.write_bytes(torn.read_bytes()[:-20])
    write(one / name_of("torn", 6), of_cluster("torn", log[5:]))
    for folder in (one, other):
        write(folder / "copied.ndjson", of_cluster("copied", log))
    write(one / "conflict.ndjson", of_cluster("conflict", [*log, log[3]]))
    write(other / "conflict-other.ndjson", of_cluster("conflict", [replace(log[4], principal="User:mallory")]))
    write(other / "hostile.ndjson", of_cluster(CLUSTERS[-1], log))
    (other / "bad.ndjson").write_bytes(b"this is no event\n")
    (other / "pending.ndjson").write_bytes(encode(a_creation(1))[:-10])


class Filled:
    """The tables of that log, after one run."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.one, self.other = root / "one", root / "other"
        self.tables = root / "tables"
        fill(self.one, self.other)
        self.summary = ingest_on(spark, self.tables, [self.one, self.other])
        self.problems = rows_of(self.tables, Table.PROBLEMS)


@pytest.fixture(name="filled", scope="module")
def filled_fixture(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    return Filled(spark, tmp_path_factory.mktemp("filled"))


def test_everything_is_counted(filled: Filled) -> None:
    """The summary tells what was new, double, missing, in quarantine, torn and unfinished."""
    assert filled.summary == IngestSummary(
        files=12, events=63, duplicates=10 + 2, quarantined=1, missing=2 + 1, conflicts=1, torn=1, pending=1
    )
    text = "\n".join(summary_lines(filled.summary))
    for part in (
        "63 new events from 12 files.",
        "12 events more than once",
        "3 events missing",
        "1 line in quarantine",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("cluster", "kind", "first", "last"),
    [
        ("gap", "gap", 5, 6),
        ("dropped", "dropped", 5, 5),
        ("copied", "duplicate", 1, 10),
        ("conflict", "duplicate", 4, 5),
        ("conflict", "conflict", 5, 5),
    ],
)
def test_what_is_wrong_is_told_where_it_is(filled: Filled, cluster: str, kind: str, first: int, last: int) -> None:
    """Each problem of a cluster is one row, and no cluster has others (P-1d)."""
    rows = [row for row in filled.problems if row["cluster_id"] == cluster]
    assert {(row["kind"], row["first_sequence"], row["last_sequence"]) for row in rows} == {
        (kind, first, last),
        *((("duplicate", 4, 5), ("conflict", 5, 5)) if cluster == "conflict" else ()),
    }
    assert all(row["text"].endswith(".") for row in rows)


def test_files_that_are_not_whole_are_told(filled: Filled) -> None:
    """A finished file that ends within a line is torn; one that may go on is not."""
    [row] = [row for row in filled.problems if row["cluster_id"] is None]
    assert (row["kind"], row["file"]) == ("torn", str(filled.one / name_of("torn", 1)))


def test_epochs(filled: Filled) -> None:
    """A row for each reign, with what is there, missing and double."""
    rows = {row["cluster_id"]: row for row in rows_of(filled.tables, Table.CONTROLLER_EPOCHS)}
    assert set(rows) == set(CLUSTERS)
    counts = {name: (row["events"], row["decisions"], row["missing"], row["duplicates"]) for name, row in rows.items()}
    assert counts["whole"] == (10, 8, 0, 0)
    assert counts["gap"] == (8, 6, 2, 0)
    assert counts["dropped"] == (5, 2, 1, 0)
    assert counts["copied"] == (10, 8, 0, 10)
    assert all(row["begins_with_snapshot"] for row in rows.values())
    assert (rows["whole"]["began"].microsecond, rows["whole"]["ended"].microsecond) == (1000, 10_000)


def test_the_first_of_two_stays(tmp_path: Path) -> None:
    """The event of a conflict that was ingested first is in the table, and everything else is there
    once.
    """
    audit, tables = tmp_path / "audit", tmp_path / "tables"
    audit.mkdir()
    log = a_log(4)
    for name, events in (("z.ndjson", log[:4]), ("a.ndjson", [replace(log[3], principal="User:mallory"), *log[4:]])):
        write(audit / name, events)
        ingest_here(tables, audit)
    rows = rows_of(tables, Table.EVENTS)
    assert sorted(row["sequence"] for row in rows) == list(range(1, 7))
    assert "User:mallory" not in {row["principal"] for row in rows}


def test_late_files_fill_gaps(spark: SparkSession, tmp_path: Path) -> None:
    """A late file of an older epoch, and one that fills a gap: the tables are as if all had come in
    order, and the problems are gone.
    """
    audit = tmp_path / "audit"
    audit.mkdir()
    log = a_log(8)
    write(audit / "late-gap.ndjson", [*log[:4], *log[6:]])
    write(audit / "newer.ndjson", a_log(3, epoch=3))
    assert ingest_on(spark, tmp_path / "tables", [audit]).missing == 2
    write(audit / "older.ndjson", a_log(4, epoch=2))
    write(audit / "filler.ndjson", log[4:6])
    assert ingest_on(spark, tmp_path / "tables", [audit]) == IngestSummary(files=4, events=8)
    everything = tmp_path / "everything"
    ingest_on(spark, everything, [audit])
    for table in (Table.CONTROLLER_EPOCHS, Table.PROBLEMS, Table.TOPIC_HISTORY):
        late, at_once = (sorted(map(str, rows_of(each, table))) for each in (tmp_path / "tables", everything))
        assert late == at_once
    assert rows_of(everything, Table.PROBLEMS) == []


def test_a_real_log(spark: SparkSession, tmp_path: Path) -> None:
    """What real controllers wrote, compressed or not, is in the tables, with the topics that a
    replay has (P-1d, P-2a).
    """
    audit = tmp_path / "audit"
    audit.mkdir()
    with (
        running_cluster(settings={"audit.dir": str(audit), "audit.flush": "always"}) as cluster,
        Wire(cluster.bootstrap.split(",")[0]) as wire,
    ):
        topics = [{"name": f"topic-{n}", "num_partitions": n, "replication_factor": 2} for n in range(1, 6)]
        wire.ask("CreateTopics", 4, {"topics": [*topics, {**topics[0], "name": "no/name"}], "timeout_ms": 30_000})
        wire.ask("DeleteTopics", 3, {"topic_names": ["topic-1"], "timeout_ms": 30_000})
    for file in audit_files([audit])[:1]:
        (audit / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    events = events_in(audit)
    summary = ingest_on(spark, tmp_path / "tables", [audit])
    assert (summary.events, summary.has_problems) == (len(events), False)
    rows = sorted(rows_of(tmp_path / "tables", Table.EVENTS), key=lambda row: (row["epoch"], row["sequence"]))
    assert [row["event"].encode() + b"\n" for row in rows] == [encode(event) for event in events]
    now = {
        row["topic"]: row["partitions"]
        for row in rows_of(tmp_path / "tables", Table.TOPIC_HISTORY)
        if row["until_cause"] is None
    }
    assert now == {name: len(state.replicas) for name, state in replayed(events).topics.items()}


def test_small_files_become_large_ones(spark: SparkSession, tmp_path: Path) -> None:
    """Many runs leave many small files; the next one merges them, and no row changes."""
    audit, tables = tmp_path / "audit", tmp_path / "tables"
    audit.mkdir()
    for epoch in range(MANY + 1, 0, -1):
        write(audit / f"{epoch}.ndjson", a_log(3, epoch))
        ingest_here(tables, audit)
    before = sorted(rows_of(tables, Table.EVENTS), key=str)
    assert ingest_on(spark, tables, [audit]).merged > 0
    assert sorted(rows_of(tables, Table.EVENTS), key=str) == before
    assert len(DeltaTables(Location.local(tables)).snapshot(Table.EVENTS).files) == 1
    assert [summary.events for summary in [ingest_on(spark, tables, [audit])]] == [0]


def test_tables_of_an_older_version(tmp_path: Path) -> None:
    """Tables that lack columns of this version get them, and they are null in older rows."""
    audit, tables = tmp_path / "audit", tmp_path / "tables"
    audit.mkdir()
    new = ["reassignments", "upstream_cluster_id", "before"]
    write(audit / "1.ndjson", a_log(3))
    ingest_here(tables, audit)
    ledger = Ledger(DeltaTables(Location.local(tables)))
    older = dataset(Location.local(tables), Table.EVENTS, ledger.events.files).to_table().drop_columns(new)
    shutil.rmtree(tables / "events")
    number = CommitProperties(app_transactions=[Transaction(APPLICATION, ledger.number)])
    write_deltalake(tables / "events", older, partition_by=["cluster_id"], commit_properties=number)
    write(audit / "2.ndjson", [*an_empty_snapshot(2), a_creation(3, "moved", 2, reassignments={0: (2, 3), 1: None})])
    state = ingest_here(tables, audit)
    assert state.clusters[places(tables)[0][0]].epochs.keys() == {1, 2}
    found = {(row["epoch"], row["name"]): [row[name] for name in new] for row in rows_of(tables, Table.EVENTS)}
    assert found[2, "moved"][0] == [(0, [2, 3]), (1, None)]
    assert [found[1, name] for name in ("t3", "t4")] == [[None] * 3] * 2


@pytest.fixture(name="following")
def following_fixture(spark: SparkSession, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A run that follows `audit`; set `stop`, and `summary` is there."""
    (tmp_path / "audit").mkdir()
    found: dict[str, Any] = {"stop": Event()}

    def run() -> None:
        found["summary"] = ingest_on(spark, tmp_path / "tables", [tmp_path / "audit"], follow=found["stop"])

    thread = Thread(target=run)
    thread.start()
    found["thread"] = thread
    yield found
    found["stop"].set()
    thread.join()


def test_following(following: dict[str, Any], tmp_path: Path) -> None:
    """What is added is in the tables soon, what is made of it in the end."""
    audit, tables = tmp_path / "audit", tmp_path / "tables"
    events = a_log(6)
    write(audit / "a.ndjson", events[:4])
    until(lambda: len(places(tables)), right=lambda count: count == 4, within=120)
    with (audit / "a.ndjson").open("ab") as stream:
        stream.write(b"".join(map(encode, events[4:])))
    until(lambda: len(places(tables)), right=lambda count: count == 8, within=120)
    following["stop"].set()
    following["thread"].join()
    assert following["summary"].events == 8
    assert {row["topic"] for row in rows_of(tables, Table.TOPIC_HISTORY)} == {f"t{number}" for number in range(3, 9)}


def test_nothing_to_read(spark: SparkSession, tmp_path: Path) -> None:
    """An empty folder is said to be one, once; afterwards it may be empty."""
    audit = tmp_path / "audit"
    audit.mkdir()
    with pytest.raises(IngestError, match="There is no audit file"):
        ingest_on(spark, tmp_path / "tables", [audit])
    write(audit / "a.ndjson", an_empty_snapshot())
    ingest_on(spark, tmp_path / "tables", [audit])
    (audit / "a.ndjson").unlink()
    assert ingest_on(spark, tmp_path / "tables", [audit]) == IngestSummary()


def test_a_state_that_cannot_be_used(tmp_path: Path) -> None:
    """A state that is gone, broken or another version's is told, as are tables of an old form."""
    audit, tables = tmp_path / "audit", tmp_path / "tables"
    audit.mkdir()
    write(audit / "a.ndjson", a_log(2))
    ingest_here(tables, audit)
    [state] = (tables / "_state").iterdir()
    text = zstandard.decompress(state.read_bytes(), max_output_size=1 << 20)
    for written, why in (
        (
            zstandard.compress(text.replace(b'"format":3', b'"format":2')),
            r"another version .* \(format 2; this version has format 3\)",
        ),
        (b"no state", "is broken .*: ingest everything into another folder"),
    ):
        state.write_bytes(written)
        with pytest.raises(TablesError, match=why):
            ingest_here(tables, audit)
    state.unlink()
    with pytest.raises(TablesError, match="is gone: ingest into another folder"):
        ingest_here(tables, audit)
    old = tmp_path / "old"
    (old / "_state").mkdir(parents=True)
    (old / "_state" / "state.json").write_text("{}")
    older = "was written by an older version of this program, in another format"
    with pytest.raises(TablesError, match=older):
        ingest_here(old, audit)
    with pytest.raises(TablesError, match=older):
        DeltaTables(Location.local(old)).require()


def test_of_two_runs_at_once_one_fails(tmp_path: Path) -> None:
    """Two runs that take the same events, on one host or on two: one takes them, the other one is
    told, and each event is there once.
    """
    audit, tables = tmp_path / "audit", tmp_path / "tables"
    audit.mkdir()
    write(audit / "a.ndjson", a_log(2))
    ingest_here(tables, audit)
    late = Ledger(DeltaTables(Location.local(tables)))
    write(audit / "b.ndjson", a_log(2, epoch=2))
    ingest_here(tables, audit)
    with pytest.raises(ChangedMeanwhileError, match="Another run has changed"):
        late.change(copied(late.state), list(late.events.files), [])
    assert len(places(tables)) == 8
    assert ingest_here(tables, audit).clusters[places(tables)[0][0]].epochs.keys() == {1, 2}


def test_a_disk_that_is_full(spark: SparkSession, tmp_path: Path) -> None:
    """It is said in a sentence, nothing is half done, and with more room everything is in the
    tables once.
    """
    audit, disk = tmp_path / "audit", tmp_path / "disk"
    audit.mkdir()
    disk.mkdir()
    topics = [f"t{number}" for number in range(2000)]
    creations = [a_creation(3 + index, name, after=a_state(1 + index % 60)) for index, name in enumerate(topics)]
    write(audit / "a.ndjson", [*an_empty_snapshot(), *creations])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80k", "tmpfs", disk], check=True)
    try:
        with pytest.raises((IngestError, OSError)) as raised:
            ingest_on(spark, disk / "tables", [audit])
        assert "space" in str(raised.value)
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        ingest_on(spark, disk / "tables", [audit])
        assert len(places(disk / "tables")) == len(creations) + 2
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_folder_that_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    """Where the tables cannot be, an OSError names the place."""
    (tmp_path / "file").touch()
    write(tmp_path / "a.ndjson", a_log(1))
    with pytest.raises(OSError, match="file"):
        ingest_on(spark, tmp_path / "file" / "tables", [tmp_path])
