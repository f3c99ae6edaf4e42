"""Tests of the tables as Delta Lake has them: snapshots, commits, merged and vacuumed files."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from minicontroller.pipeline.datafiles import DataFile, NewFile, dataset
from minicontroller.pipeline.delta import MANY, ChangedMeanwhileError, Tables, TablesError
from minicontroller.pipeline.location import Location, LocationError
from minicontroller.pipeline.schemas import Table

FIRST = datetime(1, 1, 1, tzinfo=UTC)
ODD = ("plain", "ä/b c%20=?#", "x:y\"'", "é" * 60)


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(Location.local(tmp_path / "tables"))


def written(tables: Tables, cluster_id: str, first: int, count: int = 10) -> DataFile:
    values: dict[str, list[Any]] = {
        "epoch": [1] * count,
        "sequence": [*range(first, first + count)],
        "time": [FIRST + timedelta(milliseconds=number) for number in range(count)],
        "day": [date(1, 1, 1)] * count,
        "decided_node": [1] * count,
        "kind": ["removal"] * count,
    }
    schema = Table.EVENTS.in_files
    arrays = [pa.array(values.get(field.name, [None] * count), field.type) for field in schema]
    file = NewFile(tables.location, Table.EVENTS, cluster_id)
    file.write(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return file.finish()


def places(tables: Tables, files: Any = None) -> list[tuple[str, int]]:
    found = dataset(tables.location, Table.EVENTS, files or tables.snapshot(Table.EVENTS).files)  # noqa: F841 - in the query
    return duckdb.execute("SELECT cluster_id, sequence FROM found ORDER BY ALL").fetchall()


def test_what_was_committed_is_there(tables: Tables) -> None:
    """Rows, cluster ids of any characters, statistics and the change's number come back."""
    files = [written(tables, cluster_id, 1) for cluster_id in ODD]
    tables.commit(tables.snapshot(Table.EVENTS), 5, files)
    snapshot = tables.snapshot(Table.EVENTS)
    assert snapshot.change == 5
    assert set(snapshot.of_clusters()) == set(ODD)
    assert places(tables) == sorted((cluster_id, number) for cluster_id in ODD for number in range(1, 11))
    low = {"epoch": 1, "sequence": 1, "time": -62_135_596_800_000_000}
    assert [(file.low, file.high["sequence"], file.nulls["epoch"]) for file in snapshot.files] == [(low, 10, 0)] * len(
        ODD
    )


def test_of_two_runs_at_once_one_fails(tables: Tables) -> None:
    """Of two runs that begin with the same snapshot only one changes the table."""
    before = tables.commit(tables.snapshot(Table.EVENTS), 1)
    tables.commit(before, 2, [written(tables, "a", 1)])
    with pytest.raises(ChangedMeanwhileError, match="Another run has changed"):
        tables.commit(before, 3, [written(tables, "a", 11)])
    assert places(tables) == [("a", number) for number in range(1, 11)]


def test_a_snapshot_stays_as_it_was(tables: Tables) -> None:
    """Who reads a snapshot sees no later commit, and no merged file is gone yet."""
    tables.commit(tables.snapshot(Table.EVENTS), 1, [written(tables, "a", number) for number in range(MANY)])
    before = tables.snapshot(Table.EVENTS)
    assert tables.merge_small(tables.snapshot(Table.EVENTS)) == MANY - 1
    merged = tables.snapshot(Table.EVENTS)
    tables.commit(merged, 2, [written(tables, "a", 91, 2)], merged.files)
    tables.vacuum(Table.EVENTS)
    assert len(places(tables, before.files)) == 10 * MANY
    assert places(tables) == [("a", 91), ("a", 92)]


def test_merged_files_hold_the_same_rows(tables: Tables) -> None:
    """Merging small files changes neither rows, nor statistics, nor the change's number."""
    firsts = range(1, 10 * MANY, 10)
    tables.commit(tables.snapshot(Table.EVENTS), 4, [written(tables, name, first) for name in ODD for first in firsts])
    rows = places(tables)
    assert tables.merge_small(tables.snapshot(Table.EVENTS)) == len(ODD) * (MANY - 1)
    snapshot = tables.snapshot(Table.EVENTS)
    assert places(tables) == rows
    assert snapshot.change == 4
    assert [(file.rows, file.low["sequence"], file.high["sequence"]) for file in snapshot.files] == [
        (10 * MANY, 1, 10 * MANY)
    ] * len(ODD)


def test_of_two_merges_at_once_one_counts(tables: Tables) -> None:
    """Two runs that merge the same files, or one that merges and one that adds, double no row."""
    before = tables.commit(
        tables.snapshot(Table.EVENTS), 1, [written(tables, "a", 1 + 10 * number) for number in range(MANY)]
    )
    added = tables.commit(before, 2, [written(tables, "a", 1 + 10 * MANY)])
    assert [tables.merge_small(each) for each in (before, added, added)] == [0, MANY, 0]
    assert places(tables) == [("a", number) for number in range(1, 1 + 10 * (MANY + 1))]
    with pytest.raises(ChangedMeanwhileError):
        tables.commit(added, 3, [written(tables, "a", 1000)])
    assert tables.snapshot(Table.EVENTS).commits(9)[0][1] == 10


def test_nothing_was_written(tables: Tables) -> None:
    """Tables that were never written are empty, and it is told how to make them."""
    assert tables.snapshot(Table.QUARANTINE).files == ()
    with pytest.raises(TablesError, match=r"There are no tables in .*: `minicontroller pipeline ingest"):
        tables.require()


def test_addresses() -> None:
    """An address that is served has one form; another one is refused with those that are."""
    assert str(Location.parse("s3a://bucket/some/tables/")) == "s3://bucket/some/tables"
    assert str(Location.parse("file:///tmp/with%20space")) == "/tmp/with space"
    assert Location.parse("some/tables").path == Path("some/tables").absolute()
    for text, why in (
        ("ftp://host/tables", "addresses begin with s3://"),
        ("s3://", "names no bucket"),
        ("s3://key:secret@bucket/tables", "must not contain credentials"),
    ):
        with pytest.raises(LocationError, match=why) as refused:
            Location.parse(text)
        assert "secret" not in str(refused.value)
