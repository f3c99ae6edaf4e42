"""A request and its cluster, as rules see them.

Rule: values are made only when a rule that applies reads them, and only the fields that its
expression reads, because handing a value to the engine costs more than judging it (measured: 2.5 us
for a string, 3 us for a row of replicas, 0.3 us for a comparison). If an expression looks up a
literal key in a map, only this entry is handed over.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import cel
import msgspec

from ..interface import (
    ANONYMOUS,
    NO_CONFIGS,
    AdminRequest,
    AlterBrokerConfigsRequest,
    AlterLoggersRequest,
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    EntityRequest,
    JudgedRequest,
    RequestedTopicState,
    TopicState,
)
from ..topic_counts import counts_of
from .matching import compiled_regex
from .vocabulary import ABSENT, CONFIG_APIS, FLAT, OPERATION_OF_API, OPERATION_OF_KIND, REASSIGN, VARIABLES

OPERATION_OF: Mapping[type, str] = {
    CreateTopicRequest: "create",
    AlterTopicRequest: "alter",
    DeleteTopicRequest: "delete",
    DeleteRecordsRequest: "delete_records",
    AlterBrokerConfigsRequest: "alter_broker",
    AlterLoggersRequest: "alter_loggers",
}
REPLACES_CONFIGS = "AlterConfigs"
"""The API that changes also those configs that it does not name."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def operation_of(request: JudgedRequest) -> str:
    if isinstance(request, AdminRequest):
        return OPERATION_OF_KIND[request.kind] if request.api in CONFIG_APIS else OPERATION_OF_API[request.api]
    if isinstance(request, AlterTopicRequest) and request.reassignments is not None:
        return REASSIGN
    return OPERATION_OF[type(request)]


class NoTimeError(Exception):
    """The request does not have its time."""


class Configs(msgspec.Struct, frozen=True):
    """The configs of a broker, or the levels of loggers, before or after a request."""

    configs: Mapping[str, str]
    raw_configs: Mapping[str, str]
    effective_configs: Mapping[str, str]
    """The defaults that hold for topics."""


class Facts:
    """Everything that rules can read about one request."""

    def __init__(self, request: JudgedRequest, cluster: ClusterState) -> None:
        self.request = request
        self.cluster = cluster
        self.operation = operation_of(request)
        self.principal = request.principal or ANONYMOUS
        self.topic: str = getattr(request, "topic", "")
        """The name of the topic; empty if the request does not concern a topic's state."""
        self.after: RequestedTopicState | None = getattr(request, "requested_state", None)
        self._context: cel.Context | None = None
        self._given: set[str] = set()

    @property
    def before(self) -> TopicState | None:
        """The topic before the request; None if it does not exist or none is concerned."""
        return None if self.operation == "create" or not self.topic else self.cluster.topic_state(self.topic)

    def of(self, variable: str) -> Any:
        """Return the value of a variable. For brokers and loggers, `before` and `after` are
        `Configs`.
        """
        if variable in ABSENT and isinstance(self.request, EntityRequest):
            effective = getattr(self.request, "effective_configs", NO_CONFIGS)
            return Configs(
                getattr(self.request, variable), getattr(self.request, f"raw_{variable}") or NO_CONFIGS, effective
            )
        return getattr(self, variable)

    def user(self) -> str | None:
        """Return the name of the client's principal without its type; None if the client is not
        authenticated or has no name.
        """
        return (self.request.principal or "").partition(":")[2] or None

    @property
    def is_automatic(self) -> bool:
        return isinstance(self.request, CreateTopicRequest) and self.request.automatic

    @property
    def is_kafkas_own(self) -> bool:
        """Whether the cluster creates one of Kafka's internal topics for itself."""
        return self.is_automatic and self.after is not None and self.after.internal

    @property
    def reassignments(self) -> Mapping[int, Sequence[int] | None] | None:
        """The broker ids that a reassignment asks for, by partition; None for other requests."""
        return self.request.reassignments if isinstance(self.request, AlterTopicRequest) else None

    @property
    def cancelled(self) -> frozenset[int]:
        return frozenset(partition for partition, row in (self.reassignments or {}).items() if row is None)

    @property
    def is_growth(self) -> bool:
        """Whether the request asks for a number of partitions of a topic that exists."""
        request = self.request
        return (
            isinstance(request, AlterTopicRequest)
            and request.config_operations is None
            and request.reassignments is None
        )

    @property
    def may_grow_unseen(self) -> bool:
        """Whether the request may bring new partitions although the topic seems to have them."""
        return self.is_growth and self._state_may_be_old

    def may_move_unseen(self, partition: int) -> bool:
        """Whether the request may bring a partition new replicas although it seems to have them."""
        return self._state_may_be_old and partition in (self.reassignments or {})

    def may_set_unseen(self, key: str) -> bool:
        """Whether the request may change a config although it seems to have the value already."""
        operations = getattr(self.request, "config_operations", None)
        if operations is None or not self._state_may_be_old:
            return False
        return key in operations or self.request.api == REPLACES_CONFIGS

    @property
    def _state_may_be_old(self) -> bool:
        return bool(getattr(self.request, "state_may_be_old", False))

    @property
    def created_ms(self) -> int | None:
        """When the topic that is to be deleted was created, in milliseconds since 1970."""
        return self.request.created_ms if isinstance(self.request, DeleteTopicRequest) else None

    @property
    def time(self) -> datetime:
        if self.request.time_ms is None:
            raise NoTimeError("the time of the request is unknown")
        return EPOCH + timedelta(milliseconds=self.request.time_ms)

    def given(self, reads: "Collection[FieldRead]") -> cel.Context:
        """Return the engine's context with the values of these reads and of all earlier ones."""
        context = self._context
        if context is None:
            context = self._context = cel.Context({}, {"_matches": _matches})
        for read in reads:
            if read.name not in self._given:
                self._given.add(read.name)
                if (value := read.value(self)) is not Missing:
                    context.add_variable(read.name, value)
        return context


class Missing:
    """Stands for a value that is not given to the engine. An expression that reads it fails, and so
    denies.
    """


class FieldRead(msgspec.Struct, frozen=True):
    """A value that an expression reads: its name in the engine, and a function that finds it."""

    name: str
    value: Callable[[Facts], Any]


def field_read(variable: str, field: str) -> FieldRead:
    """Return how a pair (variable, field) of `Checked.fields` is read. The field is empty for a
    variable without a field.
    """
    if not field:
        return FieldRead(variable, _principal if variable == "principal" else _is_there(variable))
    name = f"{variable}{FLAT}{field}"
    of, is_entry, rest = field.partition(FLAT)
    if is_entry and rest:
        key, asks_whether, _ = rest.partition(FLAT)
        return FieldRead(name, _entry(variable, of, bytes.fromhex(key).decode(), asks_whether=bool(asks_whether)))
    if is_entry:
        value = field_read(variable, of).value
        return FieldRead(name, lambda facts: value(facts) is not Missing)
    return FieldRead(name, _OTHERWISE.get((variable, field)) or _field(variable, field))


def _principal(facts: Facts) -> str | None:
    return facts.request.principal


def _is_there(variable: str) -> Callable[[Facts], bool | None]:
    """Make a function for a variable without a field, which is only compared with null: it returns
    True if the variable is not null, otherwise None.
    """
    return lambda facts: None if facts.of(variable) is None else True


def _field(variable: str, field: str) -> Callable[[Facts], Any]:
    is_map = VARIABLES[variable][field].name == "map"

    def value(facts: Facts) -> Any:
        of = facts.of(variable)
        if of is None:
            return Missing
        found = getattr(of, field, None)
        return dict(found) if is_map and found is not None else found

    return value


def _entry(variable: str, field: str, key: str, *, asks_whether: bool) -> Callable[[Facts], Any]:
    """Make a function for an entry of a map, or for whether it exists. Both are missing if the map
    is.
    """

    def value(facts: Facts) -> Any:
        entries = getattr(facts.of(variable), field, None)
        if entries is None:
            return Missing
        return key in entries if asks_whether else entries.get(key, Missing)

    return value


def _replica_assignments(variable: str) -> Callable[[Facts], Any]:
    def value(facts: Facts) -> Any:
        of = facts.of(variable)
        if of is None:
            return Missing
        rows = of.replica_assignments
        return [list(rows[partition]) for partition in sorted(rows)]

    return value


def _reassignments(facts: Facts) -> Any:
    rows = facts.reassignments
    return None if rows is None else {partition: row and list(row) for partition, row in rows.items()}


def _topic_count(facts: Facts) -> int:
    counts = counts_of(facts.cluster)
    return len(facts.cluster.topics()) if counts is None else counts.topics


_OTHERWISE: Mapping[tuple[str, str], Callable[[Facts], Any]] = {
    ("request", "operation"): lambda facts: facts.operation,
    ("request", "automatic"): lambda facts: facts.is_automatic,
    ("request", "time"): lambda facts: Missing if facts.request.time_ms is None else facts.time,
    ("request", "created"): lambda facts: (
        Missing if facts.created_ms is None else EPOCH + timedelta(milliseconds=facts.created_ms)
    ),
    ("request", "reassignments"): _reassignments,
    ("cluster", "topic_count"): _topic_count,
    ("before", "replica_assignments"): _replica_assignments("before"),
    ("after", "replica_assignments"): _replica_assignments("after"),
}
"""Fields that are not simply attributes of the variable's value."""


def _matches(text: str, pattern: str) -> bool:
    return compiled_regex(pattern).search(text.encode("utf-8", "replace")) is not None
