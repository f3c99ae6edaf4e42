"""The variables with their fields, the functions and the types that expressions may use.

Rule: everything is in tables. `checking.py` checks expressions by them, `facts.py` fills the
variables, and docs/policies.md documents them.
"""

from collections.abc import Mapping, Sequence

import msgspec

REASSIGN = "reassign"
TOPIC_OPERATIONS = ("create", "alter", REASSIGN, "delete", "delete_records")
"""The operations of a rule that names none."""
TOPICS = frozenset(TOPIC_OPERATIONS)
INCLUDED: Mapping[str, frozenset[str]] = {"alter": frozenset({REASSIGN})}
"""The operations that a rule judges besides one that it names: a reassignment alters a topic."""
ELECT_LEADERS = "elect_leaders"
ELECTION_TYPES = ("preferred", "unclean")
OPERATION_OF_API: Mapping[str, str] = {
    "CreateAcls": "create_acls",
    "DeleteAcls": "delete_acls",
    "AlterUserScramCredentials": "alter_user_scram_credentials",
    "AlterClientQuotas": "alter_client_quotas",
    "CreateDelegationToken": "create_delegation_token",
    "RenewDelegationToken": "renew_delegation_token",
    "ExpireDelegationToken": "expire_delegation_token",
    "DeleteGroups": "delete_groups",
    "OffsetCommit": "offset_commit",
    "OffsetDelete": "offset_delete",
    "ElectLeaders": ELECT_LEADERS,
    "AlterReplicaLogDirs": "alter_replica_log_dirs",
}
"""The operations of `AdminRequest`s, by Kafka's names of their APIs."""
CONFIG_APIS = frozenset({"AlterConfigs", "IncrementalAlterConfigs"})
OPERATION_OF_KIND: Mapping[str, str] = {
    "group_config": "alter_group_configs",
    "client_metrics": "alter_client_metrics",
}
"""The operations of `AdminRequest`s of CONFIG_APIS, by the kind of what has the configs."""
ADMIN_OPERATIONS = (*OPERATION_OF_API.values(), *OPERATION_OF_KIND.values())
ADMIN = frozenset(ADMIN_OPERATIONS)
GROUPS: Mapping[str, Sequence[str]] = {
    "acls": ("create_acls", "delete_acls"),
    "tokens": ("create_delegation_token", "renew_delegation_token", "expire_delegation_token"),
    "groups": ("delete_groups", "offset_commit", "offset_delete", "alter_group_configs"),
    "admin": ADMIN_OPERATIONS,
}
"""Names that stand for several operations where a rule names its operations."""
OPERATIONS = (*TOPIC_OPERATIONS, "alter_broker", "alter_loggers", *ADMIN_OPERATIONS)


class Type(msgspec.Struct, frozen=True):
    name: str
    item: "Type | None" = None
    """The type of a list's elements or of a map's values."""
    key: "Type | None" = None
    nullable: bool = False

    def __str__(self) -> str:
        if self.name == "map":
            return f"map of {self.key} to {self.item}"
        return f"list of {self.item}" if self.name == "list" else self.name


ANY, BOOL, INT, UINT, DOUBLE = Type("any"), Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL, TYPE = Type("string"), Type("bytes"), Type("null"), Type("type")
TIMESTAMP, DURATION = Type("timestamp"), Type("duration")
NUMBERS = frozenset({"int", "uint", "double"})


def list_of(item: Type) -> Type:
    return Type("list", item)


def map_of(key: Type, item: Type, *, nullable: bool = False) -> Type:
    return Type("map", item, key, nullable=nullable)


def or_null(kind: Type) -> Type:
    return Type(kind.name, kind.item, kind.key, nullable=True)


STATE: Mapping[str, Type] = {
    "num_partitions": INT,
    "replication_factor": INT,
    "replica_assignments": list_of(list_of(INT)),
    "configs": map_of(STRING, STRING),
    "raw_configs": map_of(STRING, STRING),
    "internal": BOOL,
    "marked_for_deletion": BOOL,
}

VARIABLES: Mapping[str, Mapping[str, Type]] = {
    "request": {
        "topic": STRING,
        "broker": or_null(STRING),
        "kind": or_null(STRING),
        "name": or_null(STRING),
        "operation": STRING,
        "api": STRING,
        "client_id": or_null(STRING),
        "client_host": STRING,
        "validate_only": BOOL,
        "automatic": BOOL,
        "time": TIMESTAMP,
        "created": TIMESTAMP,
        "config_operations": map_of(STRING, or_null(STRING), nullable=True),
        "config_operation_kinds": map_of(STRING, STRING, nullable=True),
        "reassignments": map_of(INT, Type("list", INT, nullable=True), nullable=True),
        "delete_records_offsets": map_of(INT, INT, nullable=True),
        "election_type": or_null(STRING),
    },
    "before": STATE,
    "after": {**STATE, "generated_replica_assignments": BOOL, "effective_configs": map_of(STRING, STRING)},
    "cluster": {"cluster_size": INT, "topic_count": INT},
}
"""The variables with fields. `principal` is a string without fields; it is null if the client is
not authenticated.
"""

FLAT = "__"
"""The separator of a variable and its field in the engine's name for both. At the end of the name
it asks whether the field exists. Names in expressions must not contain it.
"""


def entry_of(variable: str, field: str, key: str, ending: str = "") -> tuple[str, str]:
    return variable, f"{field}{FLAT}{key.encode().hex()}{ending}"


TIME = ("request", "time")
TOPIC = ("request", "topic")
NAME = ("request", "name")
ELECTION_TYPE = ("request", "election_type")
PRINCIPAL = ("principal", "")
PARTITIONS = ("after", "num_partitions")
PARTITIONS_BEFORE = ("before", "num_partitions")
REPLICAS = ("after", "replica_assignments")
CREATED = ("request", "created")
"""The pair (variable, field) that is read from the store, and only if a rule reads it."""

ABSENT: Mapping[str, frozenset[str]] = {
    "before": frozenset({"create"}) | ADMIN,
    "after": frozenset({"delete", "delete_records"}) | ADMIN,
}
"""The operations for which a variable is null."""

MACROS = frozenset({"all", "exists", "exists_one", "filter", "map"})

FUNCTIONS: Mapping[str, tuple[tuple[frozenset[str], ...], Type]] = {
    "size": ((frozenset({"string", "bytes", "list", "map"}),), INT),
    "int": ((frozenset({"int", "uint", "double", "string"}),), INT),
    "uint": ((frozenset({"int", "uint", "double", "string"}),), UINT),
    "double": ((frozenset({"int", "uint", "double", "string"}),), DOUBLE),
    "string": ((frozenset({"int", "uint", "double", "string", "timestamp", "duration"}),), STRING),
    "timestamp": ((frozenset({"string"}),), TIMESTAMP),
    "duration": ((frozenset({"string"}),), DURATION),
}
"""Functions by name: the possible types of each argument, and the type of the result."""

METHODS: Mapping[str, tuple[tuple[frozenset[str], ...], Type]] = {
    "size": ((frozenset({"string", "bytes", "list", "map"}),), INT),
    **{
        name: ((frozenset({"string"}), frozenset({"string"})), BOOL)
        for name in ("startsWith", "endsWith", "contains", "matches")
    },
    **{
        name: ((frozenset({"timestamp"}),), INT)
        for name in ("getFullYear", "getMonth", "getDate", "getDayOfWeek", "getHours", "getMinutes", "getSeconds")
    },
}
"""Methods by name, as `FUNCTIONS`; their first argument is what they are called on. Times are in
UTC; months and days of the week count from 0.
"""
