"""The tables and their columns, as Arrow has them. docs/pipeline.md says what each column means.

Rule: declared once, here; the code that writes a table, and the code that reads it, take its
columns from here.
"""

from enum import Enum

import pyarrow as pa

CLUSTER = "cluster_id"
STRING, INT, LONG, BOOLEAN, DAY = pa.string(), pa.int32(), pa.int64(), pa.bool_(), pa.date32()
TIME = pa.timestamp("us", tz="UTC")


def list_of(type_: pa.DataType, *, nullable: bool = False) -> pa.DataType:
    return pa.list_(pa.field("element", type_, nullable=nullable))


def map_of(key: pa.DataType, value: pa.DataType, *, nullable: bool = False) -> pa.DataType:
    return pa.map_(key, pa.field("value", value, nullable=nullable))


_TYPES = {
    "string": STRING,
    "int": INT,
    "bigint": LONG,
    "boolean": BOOLEAN,
    "date": DAY,
    "timestamp": TIME,
    "replicas": list_of(list_of(INT)),
    "configs": map_of(STRING, STRING),
    "operands": map_of(STRING, STRING, nullable=True),
    "reassignments": map_of(INT, list_of(INT), nullable=True),
    "offsets": map_of(INT, LONG),
}
"""The types of columns; `replicas` are the broker ids of each partition."""


def _columns(required: str, optional: str = "") -> list[pa.Field]:
    """Read columns of the form `name type, name type`, of which the optional ones may be null."""
    declared = [(column.split(), False) for column in required.split(",")]
    declared += [(column.split(), True) for column in optional.split(",") if column]
    return [pa.field(name, _TYPES[type_], nullable=nullable) for (name, type_), nullable in declared]


STATE = pa.struct(
    _columns(
        "topic_id string, replicas replicas, configs configs, marked_for_deletion boolean, internal boolean",
        "created timestamp",
    )
)
"""A topic's state: `RecordedState` of `audit/event.py`."""
REQUESTED = pa.struct(
    _columns(
        "replicas replicas, configs configs, marked_for_deletion boolean, internal boolean, "
        "generated_replica_assignments boolean, default_configs configs"
    )
)
"""A topic as it is requested: `Requested` of `audit/event.py`."""
FINDING = pa.struct(_columns("rule string, action string, message string", "error string"))
_TYPES |= {"requested": REQUESTED, "state": STATE, "findings": list_of(FINDING)}
NAMED_STATE = pa.struct(_columns("topic string", "state state"))
_TYPES["states"] = list_of(NAMED_STATE)


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
        """Whether a file holds rows of one cluster, whose id is in the log and not in the file."""
        return self in (Table.EVENTS, Table.TOPIC_HISTORY)

    @property
    def in_files(self) -> pa.Schema:
        """The columns that the table's files hold."""
        return self.schema.remove(self.schema.get_field_index(CLUSTER)) if self.is_partitioned else self.schema

    @property
    def statistics(self) -> tuple[str, ...]:
        """The columns of which each file's lowest and highest value is in the table's log."""
        return tuple(_STATISTICS.get(self, "").split())


_COLUMNS = {
    Table.EVENTS: _columns(
        "cluster_id string, epoch int, sequence bigint, time timestamp, day date, decided_node int, kind string",
        "request bigint, element int, elements int, principal string, client_id string, client_host string, "
        "software string, listener string, received_node int, api string, api_version int, operation string, "
        "resource string, name string, validate_only boolean, asked boolean, asked_ms bigint, asked_created_ms bigint, "
        "cluster_size int, requested requested, config_operations operands, config_operation_kinds configs, "
        "before state, after state, topics states, decision string, policy string, policy_hash string, rule string, "
        "findings findings, policy_message string, policy_us bigint, effect string, error_code int, error string, "
        "message string, latency_us bigint, partitions_before int, partitions_after int, reassignments reassignments, "
        "reassignment boolean, delete_records_offsets offsets, further_denials int, enforced boolean, "
        "upstream_cluster_id string, unjudged string, election_type string, event string",
    ),
    Table.TOPIC_HISTORY: _columns(
        "cluster_id string, topic string, topic_id string, partitions int, replication_factor int, replicas replicas, "
        "configs configs, marked_for_deletion boolean, internal boolean",
        "created timestamp, from_epoch int, from_sequence bigint, from_time timestamp, from_cause string, "
        "from_principal string, until_epoch int, until_sequence bigint, until_time timestamp, until_cause string, "
        "until_principal string",
    ),
    Table.CONTROLLER_EPOCHS: _columns(
        "cluster_id string, epoch int, node int, first_sequence bigint, last_sequence bigint, events bigint, "
        "decisions bigint, missing bigint, duplicates bigint, began timestamp, ended timestamp, "
        "begins_with_snapshot boolean"
    ),
    Table.PROBLEMS: _columns(
        "kind string, text string",
        "cluster_id string, epoch int, first_sequence bigint, last_sequence bigint, events bigint, file string",
    ),
    Table.QUARANTINE: _columns("file string, line bigint, reason string, text string, ingested timestamp"),
}
_SCHEMAS = {table: pa.schema(columns) for table, columns in _COLUMNS.items()}
_STATISTICS = {
    Table.EVENTS: "epoch sequence time",
    Table.TOPIC_HISTORY: "topic from_epoch from_sequence from_time until_epoch until_sequence until_time",
    Table.QUARANTINE: "line",
}
