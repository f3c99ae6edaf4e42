"""From the files of an audit log to the tables: what is in them afterwards."""

from pathlib import Path

from pyspark.sql import SparkSession

from minicontroller.pipeline.ingest.run import ingest
from minicontroller.pipeline.tables import Table, Tables
from tests.audit.logs import a_log, write


def test_every_event_is_in_the_tables_once(spark: SparkSession, tmp_path: Path) -> None:
    """A log is in the tables after one run, and a second run adds nothing (P-1)."""
    audit, tables = tmp_path / "audit", Tables(tmp_path / "tables")
    audit.mkdir()
    write(audit / "a.ndjson", a_log(5))
    assert ingest(spark, tables.folder, [audit]).events == 7
    assert ingest(spark, tables.folder, [audit]).events == 0
    rows = tables.read(spark, Table.EVENTS).orderBy("sequence").collect()
    assert [row["sequence"] for row in rows] == list(range(1, 8))
    assert {row["topic"] for row in tables.read(spark, Table.TOPIC_HISTORY).collect()} == {f"t{n}" for n in range(3, 8)}
    [epoch] = tables.read(spark, Table.CONTROLLER_EPOCHS).collect()
    assert (epoch["events"], epoch["missing"], epoch["begins_with_snapshot"]) == (7, 0, True)
