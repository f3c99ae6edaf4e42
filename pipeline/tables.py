"""The tables: where they lie, which columns they have, and how they are read. docs/pipeline.md says
what each column means.

Rule: a table is a folder of Parquet files that any tool can read as it is. What the pipeline keeps
for itself lies in `_state`, which no reader looks into: names that begin with an underscore are
hidden from Spark, and no glob of the documentation meets them.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

STATE = "_state"

_STRING, _INT, _LONG, _BOOLEAN, _TIME = StringType(), IntegerType(), LongType(), BooleanType(), TimestampType()


def _schema(required: Iterable[tuple[str, DataType]], optional: Iterable[tuple[str, DataType]] = ()) -> StructType:
    fields = [StructField(name, type_, nullable=False) for name, type_ in required]
    return StructType([*fields, *(StructField(name, type_) for name, type_ in optional)])


FINDING = StructType(
    [StructField(name, _STRING, nullable=name == "error") for name in ("rule", "action", "message", "error")]
)

EVENTS = _schema(
    required=(
        ("epoch", _INT),
        ("sequence", _LONG),
        ("time", _TIME),
        ("decided_node", _INT),
        ("kind", _STRING),
    ),
    optional=(
        ("request", _LONG),
        ("element", _INT),
        ("elements", _INT),
        ("principal", _STRING),
        ("client_id", _STRING),
        ("client_host", _STRING),
        ("software", _STRING),
        ("listener", _STRING),
        ("received_node", _INT),
        ("api", _STRING),
        ("api_version", _INT),
        ("operation", _STRING),
        ("resource", _STRING),
        ("name", _STRING),
        ("validate_only", _BOOLEAN),
        ("asked", _BOOLEAN),
        ("cluster_size", _INT),
        ("decision", _STRING),
        ("policy", _STRING),
        ("policy_hash", _STRING),
        ("rule", _STRING),
        ("findings", ArrayType(FINDING, containsNull=False)),
        ("policy_message", _STRING),
        ("policy_us", _LONG),
        ("effect", _STRING),
        ("error_code", _INT),
        ("error", _STRING),
        ("message", _STRING),
        ("latency_us", _LONG),
        ("partitions_before", _INT),
        ("partitions_after", _INT),
        ("reassignments", MapType(_INT, ArrayType(_INT, containsNull=False))),
        ("delete_records_offsets", MapType(_INT, _LONG, valueContainsNull=False)),
        ("further_denials", _INT),
        ("enforced", _BOOLEAN),
        ("upstream_cluster_id", _STRING),
        ("event", _STRING),
        ("cluster_id", _STRING),
        ("day", DateType()),
    ),
)

TOPIC_HISTORY = _schema(
    required=(
        ("topic", _STRING),
        ("topic_id", _STRING),
        ("partitions", _INT),
        ("replication_factor", _INT),
        ("replicas", ArrayType(ArrayType(_INT, containsNull=False), containsNull=False)),
        ("configs", MapType(_STRING, _STRING, valueContainsNull=False)),
        ("marked_for_deletion", _BOOLEAN),
        ("internal", _BOOLEAN),
    ),
    optional=(
        ("created", _TIME),
        ("from_epoch", _INT),
        ("from_sequence", _LONG),
        ("from_time", _TIME),
        ("from_cause", _STRING),
        ("from_principal", _STRING),
        ("until_epoch", _INT),
        ("until_sequence", _LONG),
        ("until_time", _TIME),
        ("until_cause", _STRING),
        ("until_principal", _STRING),
        ("cluster_id", _STRING),
    ),
)

CONTROLLER_EPOCHS = _schema(
    required=(
        ("cluster_id", _STRING),
        ("epoch", _INT),
        ("node", _INT),
        ("first_sequence", _LONG),
        ("last_sequence", _LONG),
        ("events", _LONG),
        ("decisions", _LONG),
        ("missing", _LONG),
        ("duplicates", _LONG),
        ("began", _TIME),
        ("ended", _TIME),
        ("begins_with_snapshot", _BOOLEAN),
    ),
)

PROBLEMS = _schema(
    required=(("kind", _STRING), ("text", _STRING)),
    optional=(
        ("cluster_id", _STRING),
        ("epoch", _INT),
        ("first_sequence", _LONG),
        ("last_sequence", _LONG),
        ("events", _LONG),
        ("file", _STRING),
    ),
)

QUARANTINE = _schema(
    required=(("file", _STRING), ("line", _LONG), ("reason", _STRING), ("text", _STRING), ("ingested", _TIME)),
)


class Table(Enum):
    """A table of the pipeline; its folder has its name."""

    EVENTS = "events"
    TOPIC_HISTORY = "topic_history"
    CONTROLLER_EPOCHS = "controller_epochs"
    PROBLEMS = "problems"
    QUARANTINE = "quarantine"

    @property
    def schema(self) -> StructType:
        """The columns of the table; those of `partitioned_by` come last, as Spark reads them."""
        return _SCHEMAS[self]

    @property
    def partitioned_by(self) -> tuple[str, ...]:
        """The columns that are in the names of folders, in Hive's way."""
        return _PARTITIONS.get(self, ())


_SCHEMAS = {
    Table.EVENTS: EVENTS,
    Table.TOPIC_HISTORY: TOPIC_HISTORY,
    Table.CONTROLLER_EPOCHS: CONTROLLER_EPOCHS,
    Table.PROBLEMS: PROBLEMS,
    Table.QUARANTINE: QUARANTINE,
}
_PARTITIONS = {Table.EVENTS: ("cluster_id", "day"), Table.TOPIC_HISTORY: ("cluster_id",)}


class NoTablesError(Exception):
    """A folder has no tables; the message is a sentence that says what to do about it."""


class Tables:
    """The tables of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    @property
    def state(self) -> Path:
        """The folder of what the pipeline keeps for itself: checkpoint, lock, commits."""
        return self.folder / STATE

    def path(self, table: Table) -> Path:
        return self.folder / table.value

    def files(self, table: Table) -> Mapping[str, Sequence[Path]]:
        """Return the files of a table that is partitioned by clusters, by cluster id, in the order
        of their names. Raises OSError.
        """
        root, column = self.path(table), "cluster_id="
        folders = [folder for folder in root.iterdir() if folder.name.startswith(column)] if root.is_dir() else []
        found = {unquote(folder.name.removeprefix(column)): folder.rglob("*.parquet") for folder in folders}
        return {
            cluster: sorted(file for file in found[cluster] if not file.name.startswith((".", "_")))
            for cluster in sorted(found)
        }

    def read(self, spark: SparkSession, table: Table) -> DataFrame:
        """Read a table with the columns of its schema, in their order; it is empty where nothing
        was written yet. A column is null in files that are older than it.
        """
        if not self.path(table).is_dir():
            return spark.createDataFrame([], table.schema)
        return spark.read.schema(table.schema).option("basePath", str(self.path(table))).parquet(str(self.path(table)))

    def require(self) -> None:
        """Raise NoTablesError if nothing was ingested."""
        if not self.path(Table.EVENTS).is_dir():
            raise NoTablesError(
                f"There are no tables in {self.folder}: `minicontroller pipeline ingest --audit DIR --tables {self.folder}` makes them."
            )
