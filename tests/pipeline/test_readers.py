"""How other tools read the tables: what docs/pipeline.md shows of each, carried out."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from minicontroller.pipeline.schemas import Table
from tests.pipeline.ingest.local import ingest_on
from tests.pipeline.ingest.test_ingest import CLUSTERS, fill

DOCS = (Path(__file__).parents[2] / "docs" / "pipeline.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```python\n(.*?)```", DOCS[DOCS.index("## The tables") : DOCS.index("### `events`")], re.DOTALL)
"""What the page shows: pandas and DuckDB, and Spark."""


@pytest.fixture(name="tables", scope="module")
def tables_fixture(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the tables of a log of seven clusters, one with an id that no folder could have."""
    root = tmp_path_factory.mktemp("readers")
    fill(root / "one", root / "other")
    ingest_on(spark, root / "tables", [root / "one", root / "other"])
    return root / "tables"


def shown(number: int, folder: Path, monkeypatch: pytest.MonkeyPatch, **names: Any) -> dict[str, Any]:
    """Carry out an example where `tables` is, and return what it has named."""
    monkeypatch.chdir(folder)
    exec(SHOWN[number], names)
    return names


def test_all_tools_read_the_same(spark: SparkSession, tables: Path) -> None:
    """DuckDB, pandas, Spark by way of Arrow and Spark by the list of files see the same rows in
    each table (P-2c).
    """
    columns = {
        Table.EVENTS: ["epoch", "sequence", "kind", "name", "principal", "event"],
        Table.TOPIC_HISTORY: ["topic", "partitions", "from_sequence", "until_cause"],
        Table.CONTROLLER_EPOCHS: ["cluster_id", "epoch", "events", "missing"],
        Table.PROBLEMS: ["kind", "text", "cluster_id", "first_sequence"],
        Table.QUARANTINE: ["line", "reason", "text"],
    }
    for table, names in columns.items():
        delta = DeltaTable(tables / table.value)
        rows = delta.to_pyarrow_dataset()  # noqa: F841 - in the query
        of_duckdb = duckdb.execute(f"SELECT {', '.join(names)} FROM rows").fetchall()
        frame = delta.to_pandas(columns=names).convert_dtypes(dtype_backend="numpy_nullable").astype(object)
        of_pandas = [tuple(None if pd.isna(each) else each for each in row) for row in frame[names].to_numpy()]
        by_arrow = spark.createDataFrame(delta.to_pyarrow_table(columns=names)).collect()
        by_files = spark.read.parquet(*delta.file_uris()).select(*names).collect()
        first, *others = (
            sorted(str(tuple(row)) for row in rows) for rows in (of_duckdb, of_pandas, by_arrow, by_files)
        )
        assert first, table
        assert all(other == first for other in others), table


def test_pandas_and_duckdb(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's example of them gives the tables' clusters, and who asked how often."""
    found = shown(0, tables.parent, monkeypatch)
    assert set(found["history"].cluster_id) == set(CLUSTERS)
    rows = DeltaTable(tables / "events").to_pyarrow_table(columns=["kind", "principal"]).to_pylist()
    asked = Counter(row["principal"] for row in rows if row["kind"] == "decision")
    assert dict(found["asked"].fetchall()) == asked


def test_spark_without_the_jar(spark: SparkSession, tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark reads the files that Delta's log names, and each row has its cluster's id."""
    events: DataFrame = shown(1, tables.parent, monkeypatch, spark=spark)["events"]
    assert set(events.columns) == set(Table.EVENTS.schema.names)
    assert Counter(row.cluster_id for row in events.collect()) == clusters_of(tables)


def clusters_of(tables: Path) -> dict[str, int]:
    """Return the number of events of each cluster, by Delta's log."""
    return Counter(DeltaTable(tables / "events").to_pyarrow_table(columns=["cluster_id"])["cluster_id"].to_pylist())
