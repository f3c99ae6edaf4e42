"""Tables that were damaged: the next run mends them, or says in a sentence what to do, and nothing
is lost or doubled.
"""

import gzip
import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from minicontroller.pipeline.commands import pipeline
from minicontroller.pipeline.datafiles import batches
from minicontroller.pipeline.delta import (
    CLEARING,
    OLD_STATE,
    STATE,
    ChangedMeanwhileError,
    Snapshot,
    Tables,
    TablesError,
)
from minicontroller.pipeline.ingest.files import listing
from minicontroller.pipeline.ingest.leftovers import Leftovers, leftovers
from minicontroller.pipeline.ingest.rebuilding import clear_tables
from minicontroller.pipeline.ingest.state import Ledger, copied
from minicontroller.pipeline.location import Location
from minicontroller.pipeline.schemas import Table
from minicontroller.pipeline.status import print_status
from tests.audit.logs import CLUSTER, a_log, write
from tests.pipeline.ingest.local import ingest_here, ingest_on, places, rows_of

EVENTS = 5
NOBODY = 65534
DENIED = "permission denied: the credentials need the rights to list and read there, and for tables to write and delete"


def add(audit: Path, epoch: int) -> None:
    """Add a file with events of an epoch, and a line that is none."""
    audit.mkdir(exist_ok=True)
    file = write(audit / f"audit-{CLUSTER}-{epoch:010}-{1:012}-1.ndjson", a_log(EVENTS - 2, epoch))
    with file.open("ab") as stream:
        stream.write(b"no event\n")


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    """Give audit files of two epochs, which were ingested one after the other."""
    for epoch in (1, 2):
        add(tmp_path / "audit", epoch)
        ingest_here(tmp_path / "tables", tmp_path / "audit")
    return tmp_path / "audit"


@pytest.fixture
def tables(tmp_path: Path, audit: Path) -> Path:
    del audit
    return tmp_path / "tables"


def begun(tables: Path) -> Ledger:
    return Ledger(Tables(Location.local(tables)))


def cleared(tables: Path, audit: Path) -> None:
    clear_tables(Tables(Location.local(tables)), listing([Location.local(audit)]))


def assert_whole(tables: Path, epochs: int = 2) -> None:
    expected = [(CLUSTER, epoch, number) for epoch in range(1, epochs + 1) for number in range(1, EVENTS + 1)]
    assert places(tables) == expected
    assert len(rows_of(tables, Table.QUARANTINE)) == epochs


@pytest.mark.parametrize("removed", [0, 1, 2])
def test_making_anew_that_was_ended(tables: Path, audit: Path, removed: int) -> None:
    """What is left of the tables is not taken for them, and making them anew goes on."""
    (tables / CLEARING).touch()
    log = sorted((tables / "events" / "_delta_log").glob("*.json"))
    for file in log[:removed]:
        file.unlink()
    with pytest.raises(TablesError, match=r"is being rebuilt, or a run that rebuilt it was interrupted: .*--anew"):
        begun(tables)
    with pytest.raises(TablesError, match="is being rebuilt"):
        Tables(Location.local(tables)).require()
    cleared(tables, audit)
    ingest_here(tables, audit)
    assert_whole(tables)


def test_a_damaged_log_is_made_anew(tables: Path, audit: Path) -> None:
    """Which files were read stands in the state, so the log need not be read."""
    next((tables / "events" / "_delta_log").glob("*1.json")).write_bytes(b"garbage")
    with pytest.raises(
        TablesError,
        match=r"events cannot be read: .*: if this happens again, `minicontroller pipeline ingest --anew` rebuilds",
    ):
        begun(tables)
    cleared(tables, audit)
    ingest_here(tables, audit)
    assert_whole(tables)


@contextmanager
def forbidden(path: Path) -> Iterator[None]:
    """Keep this process from a file or folder within the block, also if it is root's."""
    user, mode = os.geteuid(), path.stat().st_mode
    path.chmod(0)
    try:
        os.seteuid(user or NOBODY)
        yield
    finally:
        os.seteuid(user)
        path.chmod(mode)


@pytest.fixture
def reachable() -> Iterator[Path]:
    """Give tables in a folder that everybody may enter."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        add(Path(name, "audit"), 1)
        ingest_here(Path(name, "tables"), Path(name, "audit"))
        yield Path(name, "tables")


@pytest.mark.parametrize("what", ["events", "events/_delta_log", f"events/_delta_log/{1:020}.json"])
def test_a_log_that_is_forbidden(reachable: Path, what: str) -> None:
    """It may be whole, so it is told what is to be allowed, and not to make the tables anew."""
    told = f"^{reachable}/events cannot be read: {DENIED}.$"
    with forbidden(reachable / what), pytest.raises(TablesError, match=told):
        begun(reachable)


def test_a_state_that_is_forbidden(reachable: Path) -> None:
    """A command says what is to be allowed."""
    with forbidden(reachable / STATE):
        told = CliRunner().invoke(pipeline, ["status", "--tables", str(reachable)])
    assert (told.exit_code, told.output) == (1, f"Error: {reachable}: {DENIED}.\n")


def test_a_file_that_is_forbidden(reachable: Path) -> None:
    """It may be whole, so it is told what is to be allowed, and not to make the tables anew."""
    files = begun(reachable).events.files
    file = reachable / "events" / files[0].path
    with forbidden(file), pytest.raises(OSError, match=DENIED) as told:
        list(batches(Location.local(reachable), Table.EVENTS, files, ["epoch"]))
    assert (told.value.filename, told.value.strerror) == (str(file), DENIED)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_an_audit_file_that_is_forbidden_after_some_of_it_was_read(reachable: Path, ending: str) -> None:
    """It is told as unreadable, and not as one whose last line has no end."""
    file = next((reachable.parent / "audit").iterdir())
    text = file.read_bytes() + b"no event\n"
    file.unlink()
    file = file.with_name(file.name + ending)
    file.write_bytes(gzip.compress(text) if ending else text)
    with forbidden(file):
        left = leftovers(listing([Location.local(file.parent)]), begun(reachable).state.files)
    assert left == Leftovers({}, {}, {str(file): "Permission denied"}, {})


def test_an_old_entry_of_the_log_that_is_damaged(tables: Path) -> None:
    """The status says so, though no snapshot needs the entry any more."""
    DeltaTable(tables / "events").create_checkpoint()
    (tables / "events" / "_delta_log" / f"{1:020}.json").write_bytes(b"garbage")
    with pytest.raises(TablesError, match=r"The log of events cannot be read: .*--anew"):
        print_status(Location.local(tables), io.StringIO())


def test_a_gap_in_the_log(tables: Path) -> None:
    """It is told without the structures of a library."""
    (tables / "events" / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(
        TablesError, match=r"Expected contiguous commit files, but found gap: if this happens again, `minicontroller"
    ):
        begun(tables)


def test_an_entry_of_the_log_that_is_empty(tables: Path, audit: Path) -> None:
    """Delta reads the log without it, so the events are counted."""
    (tables / "events" / "_delta_log" / f"{1:020}.json").write_bytes(b"")
    with pytest.raises(TablesError, match=r"events has 5 events, but ingest has added 10: .*--anew"):
        begun(tables)
    cleared(tables, audit)
    ingest_here(tables, audit)
    assert_whole(tables)


class Raced(Tables):
    """Tables into which another run puts the first events when this one saw that there are none."""

    def snapshot(self, table: Table) -> Snapshot:
        found = super().snapshot(table)
        if table is Table.EVENTS and not found.change:
            audit = self.location.path.parent / "audit"
            add(audit, 1)
            ingest_here(self.location.path, audit)
        return found


def test_of_two_first_ingests_one_is_told(tmp_path: Path) -> None:
    """It is told that the other one has changed the tables, and not that something is damaged."""
    with pytest.raises(ChangedMeanwhileError, match=r"Another run has changed .*tables meanwhile\."):
        Ledger(Raced(Location.parse(str(tmp_path / "tables"))))
    assert len(rows_of(tmp_path / "tables", Table.EVENTS)) == EVENTS - 2 + 2


def test_events_that_are_removed_during_a_run(tmp_path: Path, tables: Path) -> None:
    """The run says that they were, and makes no table of what is new alone."""
    ledger = begun(tables)
    shutil.rmtree(tables / "events")
    with pytest.raises(ChangedMeanwhileError, match=f"{tmp_path}/tables/events was removed meanwhile"):
        ledger.change(copied(ledger.state), [], [])


@pytest.mark.parametrize("content", [None, b"garbage"])
def test_a_file_of_the_events_that_is_damaged(tables: Path, audit: Path, content: bytes | None) -> None:
    """Merging and comparing what comes twice name it, out of all that they read."""
    snapshot = begun(tables).events
    file = tables / "events" / snapshot.files[-1].path
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises(OSError, match=r"it is gone or broken .*--anew") as told:
        list(batches(Location.local(tables), Table.EVENTS, snapshot.files, ["epoch"]))
    assert told.value.filename == str(file)
    for old in sorted(audit.iterdir()):
        (audit / f"again-{old.name}").write_bytes(old.read_bytes())
    with pytest.raises(OSError, match=r"it is gone or broken .*--anew") as told:
        ingest_here(tables, audit)
    assert told.value.filename == str(file)


def test_a_topic_history_that_is_damaged(spark: SparkSession, tables: Path, audit: Path) -> None:
    """An ingest names the file, and says what to do."""
    ingest_on(spark, tables, [audit])
    for file in (tables / "topic_history").glob("*.parquet"):
        file.write_bytes(b"garbage")
    add(audit, 3)
    with pytest.raises(OSError, match=r"it is gone or broken .*--anew.*/topic_history/"):
        ingest_on(spark, tables, [audit])


def test_what_others_made_stays(tmp_path: Path, audit: Path) -> None:
    """A folder with something of the tables' names, and no state, is none that may be removed."""
    file = tmp_path / "homework" / "problems" / "mine.txt"
    file.parent.mkdir(parents=True)
    file.touch()
    with pytest.raises(TablesError, match="homework/problems exists, and no state describes it"):
        cleared(tmp_path / "homework", audit)
    assert file.exists()


def test_events_that_are_gone(tables: Path, audit: Path) -> None:
    """The other tables do not get everything a second time."""
    shutil.rmtree(tables / "events")
    with pytest.raises(TablesError, match=r"the events are gone: .*--anew"):
        begun(tables)
    cleared(tables, audit)
    ingest_here(tables, audit)
    assert_whole(tables)


def test_a_quarantine_that_is_gone(tables: Path, audit: Path) -> None:
    """What is left is readable, and what comes is added."""
    shutil.rmtree(tables / "quarantine")
    add(audit, 3)
    ingest_here(tables, audit)
    assert len(rows_of(tables, Table.QUARANTINE)) == 1


def test_a_commit_that_was_lost(tables: Path, audit: Path) -> None:
    """A disk that lost power may lose the last commit: the state before is still there."""
    max((tables / "events" / "_delta_log").glob("*.json")).unlink()
    shutil.rmtree(tables / "quarantine")
    ingest_here(tables, audit)
    assert places(tables) == [(CLUSTER, epoch, number) for epoch in (1, 2) for number in range(1, EVENTS + 1)]


def test_a_topic_history_that_is_gone(spark: SparkSession, tables: Path, audit: Path) -> None:
    """It is made of all events again, also if it was removed long after it was made."""
    ingest_on(spark, tables, [audit])
    whole = sorted(map(str, rows_of(tables, Table.TOPIC_HISTORY)))
    add(audit, 3)
    ingest_here(tables, audit)
    shutil.rmtree(tables / "topic_history")
    ingest_on(spark, tables, [audit])
    rows = rows_of(tables, Table.TOPIC_HISTORY)
    assert whole and sorted(str(row) for row in rows if row["until_epoch"] and row["until_epoch"] < 3) == [
        each for each in whole if "'until_epoch': None" not in each
    ]
    ingest_on(spark, tables.parent / "other", [audit])
    assert sorted(map(str, rows)) == sorted(map(str, rows_of(tables.parent / "other", Table.TOPIC_HISTORY)))


@pytest.mark.parametrize("table", ["events", "topic_history"])
def test_a_table_of_another_program(tmp_path: Path, table: str) -> None:
    """It is told as what it is."""
    write_deltalake(tmp_path / table, pa.table({"a": [1]}))
    with pytest.raises(TablesError, match=f"{table} is a table of another program: take another folder"):
        begun(tmp_path)


def test_an_old_state_that_is_broken(tmp_path: Path, audit: Path) -> None:
    """What tables of an older form hold cannot be told then."""
    (tmp_path / "old" / OLD_STATE).parent.mkdir(parents=True)
    (tmp_path / "old" / OLD_STATE).write_bytes(b"garbage")
    with pytest.raises(TablesError, match=r"state\.json is broken .*: ingest everything into another folder"):
        cleared(tmp_path / "old", audit)


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_data_file_that_is_damaged(spark: SparkSession, tables: Path, is_gone: bool) -> None:
    """A report names the file, and says what to do."""
    del spark
    file = next((tables / "events").glob("*.parquet"))
    file.unlink() if is_gone else file.write_bytes(b"garbage")
    told = CliRunner().invoke(pipeline, ["report", "--tables", str(tables), "--out", str(tables.parent / "page.html")])
    assert told.exit_code == 1
    assert f"Error: {file}: it is gone or broken (" in told.output
    assert "if this happens again, `minicontroller pipeline ingest --anew` rebuilds the tables" in told.output


def test_an_audit_folder_that_is_gone(tmp_path: Path) -> None:
    """The folder that is gone is the one that is named."""
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: .*/audit'"):
        listing([Location.local(tmp_path / "audit")])


@pytest.mark.parametrize("folder", [*(table.value for table in Table), STATE])
def test_a_file_in_the_place_of_a_folder(tmp_path: Path, audit: Path, folder: str) -> None:
    """Whoever reads, fills or makes anew the tables is told which file is in the way, and what to
    do.
    """
    tables = tmp_path / "others"
    tables.mkdir()
    (tables / folder).touch()
    told = f"^{tables / folder} is a file in the place of a folder of the tables: move it away.$"
    for call in (Tables(Location.local(tables)).require, lambda: begun(tables), lambda: cleared(tables, audit)):
        with pytest.raises(TablesError, match=told):
            call()
