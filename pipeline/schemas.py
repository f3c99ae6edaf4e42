"""The tables and their columns, as Arrow has them. docs/pipeline.md says what each column means.

Rule: declared once, here; who writes a table, and who reads it, takes its columns from here.
"""

from collections.abc import Iterable
from enum import Enum

import pyarrow as pa

STRING, INT, LONG, BOOLEAN, DAY = pa.string(), pa.int32(), pa.int64(), pa.bool_(), pa.date32()
TIME = pa.timestamp("us", tz="UTC")


def _fields(columns: Iterable[tuple[str, pa.DataType]], *, nullable: bool) -> list[pa.Field]:
    return [pa.field(name, type_, nullable=nullable) for name, type_ in columns]


def _schema(required: Iterable[tuple[str, pa.DataType]], optional: Iterable[tuple[str, pa.DataType]] = ()) -> pa.Schema:
    return pa.schema([*_fields(required, nullable=False), *_fields(optional, nullable=True)])


def list_of(type_: pa.DataType, *, nullable: bool = False) -> pa.DataType:
    return pa.list_(pa.field("element", type_, nullable=nullable))


def map_of(key: pa.DataType, value: pa.DataType, *, nullable: bool = False) -> pa.DataType:
    return pa.map_(key, pa.field("value", value, nullable=nullable))


REPLICAS = list_of(list_of(INT))
"""The broker ids of each partition."""
CONFIGS = map_of(STRING, STRING)
STATE = pa.struct(
    [
        *_fields((("topic_id", STRING), ("replicas", REPLICAS), ("configs", CONFIGS)), nullable=False),
        *_fields((("marked_for_deletion", BOOLEAN), ("internal", BOOLEAN)), nullable=False),
        pa.field("created", TIME),
    ]
)
"""A topic's state: `RecordedState` of `audit/event.py`."""
REQUESTED = pa.struct(
    _fields(
        (
            *(("replicas", REPLICAS), ("configs", CONFIGS)),
            *((name, BOOLEAN) for name in ("marked_for_deletion", "internal", "generated_replica_assignments")),
            ("default_configs", CONFIGS),
        ),
        nullable=False,
    )
)
"""`Requested` of `audit/event.py`."""
FINDING = pa.struct(
    [pa.field(name, STRING, nullable=name == "error") for name in ("rule", "action", "message", "error")]
)
NAMED_STATE = pa.struct([pa.field("topic", STRING, nullable=False), pa.field("state", STATE)])

EVENTS = _schema(
    required=(
        ("cluster_id", STRING),
        ("epoch", INT),
        ("sequence", LONG),
        ("time", TIME),
        ("day", DAY),
        ("decided_node", INT),
        ("kind", STRING),
    ),
    optional=(
        ("request", LONG),
        ("element", INT),
        ("elements", INT),
        ("principal", STRING),
        ("client_id", STRING),
        ("client_host", STRING),
        ("software", STRING),
        ("listener", STRING),
        ("received_node", INT),
        ("api", STRING),
        ("api_version", INT),
        ("operation", STRING),
        ("resource", STRING),
        ("name", STRING),
        ("validate_only", BOOLEAN),
        ("asked", BOOLEAN),
        ("asked_ms", LONG),
        ("asked_created_ms", LONG),
        ("cluster_size", INT),
        ("requested", REQUESTED),
        ("config_operations", map_of(STRING, STRING, nullable=True)),
        ("config_operation_kinds", CONFIGS),
        ("before", STATE),
        ("after", STATE),
        ("topics", list_of(NAMED_STATE)),
        ("decision", STRING),
        ("policy", STRING),
        ("policy_hash", STRING),
        ("rule", STRING),
        ("findings", list_of(FINDING)),
        ("policy_message", STRING),
        ("policy_us", LONG),
        ("effect", STRING),
        ("error_code", INT),
        ("error", STRING),
        ("message", STRING),
        ("latency_us", LONG),
        ("partitions_before", INT),
        ("partitions_after", INT),
        ("reassignments", map_of(INT, list_of(INT), nullable=True)),
        ("reassignment", BOOLEAN),
        ("delete_records_offsets", map_of(INT, LONG)),
        ("further_denials", INT),
        ("enforced", BOOLEAN),
        ("upstream_cluster_id", STRING),
        ("event", STRING),
    ),
)

TOPIC_HISTORY = _schema(
    required=(
        ("cluster_id", STRING),
        ("topic", STRING),
        ("topic_id", STRING),
        ("partitions", INT),
        ("replication_factor", INT),
        ("replicas", REPLICAS),
        ("configs", CONFIGS),
        ("marked_for_deletion", BOOLEAN),
        ("internal", BOOLEAN),
    ),
    optional=(
        ("created", TIME),
        ("from_epoch", INT),
        ("from_sequence", LONG),
        ("from_time", TIME),
        ("from_cause", STRING),
        ("from_principal", STRING),
        ("until_epoch", INT),
        ("until_sequence", LONG),
        ("until_time", TIME),
        ("until_cause", STRING),
        ("until_principal", STRING),
    ),
)

CONTROLLER_EPOCHS = _schema(
    required=(
        ("cluster_id", STRING),
        ("epoch", INT),
        ("node", INT),
        ("first_sequence", LONG),
        ("last_sequence", LONG),
        ("events", LONG),
        ("decisions", LONG),
        ("missing", LONG),
        ("duplicates", LONG),
        ("began", TIME),
        ("ended", TIME),
        ("begins_with_snapshot", BOOLEAN),
    ),
)

PROBLEMS = _schema(
    required=(("kind", STRING), ("text", STRING)),
    optional=(
        ("cluster_id", STRING),
        ("epoch", INT),
        ("first_sequence", LONG),
        ("last_sequence", LONG),
        ("events", LONG),
        ("file", STRING),
    ),
)

QUARANTINE = _schema(
    required=(("file", STRING), ("line", LONG), ("reason", STRING), ("text", STRING), ("ingested", TIME)),
)


class Table(Enum):
    """A table of the pipeline; its folder has its name."""

    EVENTS = "events"
    TOPIC_HISTORY = "topic_history"
    CONTROLLER_EPOCHS = "controller_epochs"
    PROBLEMS = "problems"
    QUARANTINE = "quarantine"

    @property
    def schema(self) -> pa.Schema:
        """All columns of the table, the one that it is partitioned by included."""
        return _SCHEMAS[self]

    @property
    def is_partitioned(self) -> bool:
        """Whether each file holds the rows of one cluster, whose id is in the table's log and not
        in the file.
        """
        return self in (Table.EVENTS, Table.TOPIC_HISTORY)

    @property
    def in_files(self) -> pa.Schema:
        """The columns that the table's files hold."""
        return self.schema.remove(self.schema.get_field_index(CLUSTER)) if self.is_partitioned else self.schema

    @property
    def statistics(self) -> tuple[str, ...]:
        """The columns of which each file's lowest and highest value is in the table's log."""
        return _STATISTICS.get(self, ())


CLUSTER = "cluster_id"
_SCHEMAS = {
    Table.EVENTS: EVENTS,
    Table.TOPIC_HISTORY: TOPIC_HISTORY,
    Table.CONTROLLER_EPOCHS: CONTROLLER_EPOCHS,
    Table.PROBLEMS: PROBLEMS,
    Table.QUARANTINE: QUARANTINE,
}
_STATISTICS = {
    Table.EVENTS: ("epoch", "sequence", "time"),
    Table.TOPIC_HISTORY: (
        *("topic", "from_epoch", "from_sequence", "from_time"),
        *("until_epoch", "until_sequence", "until_time"),
    ),
}
