"""Builds synthetic questions for a rule from values of columns: a request with these values, and a
cluster without known topics.

There is no question if a rule reads a value that no column has. A rule that reads the cluster gets
an exception.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...audit.replay import CREATE_PARTITIONS, CREATE_TOPICS
from ...policies.interface import ClusterState, PolicyRequest, RequestedTopicState, TopicState
from ...policies.requests import RequestBuilder
from ...policies.rules.rule import Rule
from ...policies.rules.vocabulary import FLAT, REASSIGN
from ...policies.states import requested_state, topic_state
from .encoded import CONFIG, DEFAULT

STATELESS = frozenset({"create"})
"""Operations for which there is no topic before the request."""
WITHOUT_CONFIGS = frozenset({"create", "delete", "delete_records"})
"""Operations of requests that change no configs of a topic that exists."""
COLUMNS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("principal", ""): ("principal",),
    ("request", "topic"): ("name",),
    ("request", "operation"): (),
    ("request", "api"): ("api",),
    ("request", "automatic"): ("api",),
    ("request", "client_id"): ("client_id",),
    ("request", "client_host"): ("client_host",),
    ("request", "validate_only"): ("validate_only",),
    ("request", "broker"): (),
    ("request", "kind"): (),
    ("request", "name"): (),
    ("after", ""): (),
    ("after", "num_partitions"): ("num_partitions",),
    ("after", "replication_factor"): ("replication_factor",),
    ("after", "internal"): ("internal",),
    ("after", "marked_for_deletion"): ("marked_for_deletion",),
    ("after", "generated_replica_assignments"): ("generated_replica_assignments",),
    ("cluster", "cluster_size"): ("cluster_size",),
}
"""The columns of what rules read, by variable and field."""
PARTITIONS_BEFORE = "partitions_before"
_OF_PARTITIONS = (PARTITIONS_BEFORE, "operation", "upstream_cluster_id")
BEFORE: Mapping[str, tuple[str, ...]] = {"": _OF_PARTITIONS, "num_partitions": _OF_PARTITIONS}
"""The columns of what rules read of the topic before the request, if it was as the event says: a
gateway's policy is asked about partitions that the topic seems to have already.
"""
NAMES = ("principal", "client_id", "client_host", "api", "validate_only")


def inputs_of(rule: Rule, operation: str, more: Collection[tuple[str, str]] = ()) -> tuple[str, ...] | None:
    """Return the columns that a rule's answer about requests of an operation depends on, given what
    it reads and `more`; None if not all of them exist.
    """
    found: set[str] = set()
    for variable, field in (*rule.reads, *more):
        names = _columns(rule, operation, variable, field.removesuffix(FLAT))
        if names is None:
            return None
        found.update(names)
    return tuple(sorted(found))


def _columns(rule: Rule, operation: str, variable: str, field: str) -> Sequence[str] | None:
    of, is_entry, key = field.partition(FLAT)
    if variable == "before":
        return () if operation in STATELESS else BEFORE.get(field)
    if (variable, of) == ("after", "replica_assignments"):  # of which a rule that is built in reads the lengths
        return ("least_replicas", "most_replicas") if rule.lenient_to_existing and operation != REASSIGN else None
    if variable == "after" and is_entry:
        name = bytes.fromhex(key).decode()
        own, default = f"{CONFIG}{name}", f"{DEFAULT}{name}"
        return {"configs": (own,), "raw_configs": (own,), "effective_configs": (own, default)}.get(of)
    if of in {"config_operations", "config_operation_kinds"}:
        return () if operation in WITHOUT_CONFIGS else None
    if of == "reassignments":
        return None if operation == REASSIGN else ()
    if of == "delete_records_offsets":
        return None if operation == "delete_records" else ()
    return None if is_entry else COLUMNS.get((variable, field))


class UnknownStateError(Exception):
    """A rule looks at the topics of the cluster."""


class UnknownCluster(ClusterState):
    """A cluster of which nothing but its size is known, and the topic of the request if it is
    `known`.
    """

    def __init__(self, cluster_size: int, known: Sequence[TopicState | None]) -> None:
        self._cluster_size = cluster_size
        self._known = known

    @property
    def cluster_size(self) -> int:
        return self._cluster_size

    def topic_state(self, topic: str) -> TopicState | None:
        for state in self._known:
            return state
        raise UnknownStateError(topic)

    def topics(self, *, include_internal: bool = False, include_marked_for_deletion: bool = False) -> frozenset[str]:
        raise UnknownStateError(include_internal, include_marked_for_deletion)


class SyntheticQuestion:
    """A request that has some values of columns, and its cluster."""

    def __init__(self, operation: str, values: Mapping[str, Any], rule: Rule | None = None) -> None:
        self.request = _request(operation, values)
        known: list[TopicState | None] = [None] if rule is not None and rule.lenient_to_existing else []
        if PARTITIONS_BEFORE in values:
            partitions = values[PARTITIONS_BEFORE]
            known = [None if partitions is None else topic_state([(0,)] * partitions, {})]
        self.cluster = UnknownCluster(values.get("cluster_size", 0), known)
        self.is_exact = values.get("least_replicas") == values.get("most_replicas")
        """Whether the values leave out no length between those of the shortest and the longest row
        of replicas: a rule may speak of it.
        """


def _request(operation: str, values: Mapping[str, Any]) -> PolicyRequest:
    common: dict[str, Any] = {"principal": None, **{name: values[name] for name in NAMES if name in values}}
    asked = RequestBuilder(**common, state_may_be_old=values.get("upstream_cluster_id") is not None)
    topic = values.get("name", "topic" if PARTITIONS_BEFORE in values else "")
    if operation == "delete":
        return asked.delete_topic(topic)
    if operation == "delete_records":
        return asked.delete_records(topic, {})
    wanted = _wanted(values)
    if operation == "create":
        automatic = values.get("api", CREATE_TOPICS) != CREATE_TOPICS
        return asked.create_topic(topic, wanted, automatic=automatic)
    return asked.alter_topic(
        topic,
        wanted,
        config_operations=None if values.get("operation") in {None, CREATE_PARTITIONS} else {},
        reassignments={} if operation == REASSIGN else None,
    )


def _wanted(values: Mapping[str, Any]) -> RequestedTopicState:
    return requested_state(
        _rows(values),
        _entries(values, CONFIG),
        generated_replica_assignments=values.get("generated_replica_assignments", False),
        marked_for_deletion=values.get("marked_for_deletion", False),
        internal=values.get("internal", False),
        default_configs=_entries(values, DEFAULT),
    )


def _rows(values: Mapping[str, Any]) -> Sequence[tuple[int, ...]]:
    """Return rows of replicas that are as many, or as long, as the values say."""
    if "most_replicas" in values:
        lengths = [length for length in (values["least_replicas"], values["most_replicas"]) if length is not None]
        return [(0,) * length for length in lengths]
    count = values.get("num_partitions", 1)
    first = (0,) * values.get("replication_factor", 0)
    return [first] * count


def _entries(values: Mapping[str, Any], beginning: str) -> dict[str, str]:
    return {
        name.removeprefix(beginning): value
        for name, value in values.items()
        if name.startswith(beginning) and value is not None
    }
