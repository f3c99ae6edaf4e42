"""Makes the requests that a policy is asked about from what a TOML file says.

Rule: omitted values have the plainest defaults.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Literal, TypeVar

import msgspec

from ..cluster.entities import INTERNAL_TOPICS
from ..policies.configs.effective import defaults_with
from ..policies.interface import (
    AlterBrokerConfigsRequest,
    AlterLoggersRequest,
    AlterTopicRequest,
    JudgedRequest,
    PolicyRequest,
    RequestedTopicState,
    TopicState,
)
from ..policies.requests import RequestBuilder
from ..policies.rules.vocabulary import ELECT_LEADERS, GROUPS, OPERATION_OF_API, OPERATION_OF_KIND, OPERATIONS
from ..policies.states import requested_state, topic_state

APIS = {
    "create": "CreateTopics",
    "alter": "IncrementalAlterConfigs",
    "reassign": "AlterPartitionReassignments",
    "delete": "DeleteTopics",
    "delete_records": "DeleteRecords",
    "alter_broker": "IncrementalAlterConfigs",
    "alter_loggers": "IncrementalAlterConfigs",
    **{operation: api for api, operation in OPERATION_OF_API.items()},
    **dict.fromkeys(OPERATION_OF_KIND.values(), "IncrementalAlterConfigs"),
}
ALTER_LOGGERS = "alter_loggers"
ENTITIES = frozenset({"alter_broker", ALTER_LOGGERS})
"""The operations on brokers and their loggers."""
KINDS: Mapping[str, str] = {
    **dict.fromkeys(GROUPS["acls"], "acl"),
    **dict.fromkeys(GROUPS["tokens"], "token"),
    **dict.fromkeys(GROUPS["groups"], "group"),
    "alter_user_scram_credentials": "user",
    "alter_client_quotas": "client_quota",
    ELECT_LEADERS: "topic",
    "alter_replica_log_dirs": "replica",
    **{operation: kind for kind, operation in OPERATION_OF_KIND.items()},
}
"""The kind of resource that each operation of an `AdminRequest` changes."""
NEED_TOPIC = frozenset({"alter", "reassign", "delete", "delete_records"})
"""The operations on topics that exist."""
DELETIONS = frozenset({"delete_acls", "offset_delete"})
"""The operations that delete each key that they name."""
MAX_DIGITS = 10
"""Numbers of partitions have fewer digits."""
Value = TypeVar("Value")


class TopicGiven(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A topic in a case, described by counts or by the replicas of its partitions. Omitted values
    of a requested topic stay as they are.
    """

    partitions: int | None = None
    replication: int | None = None
    replicas: list[list[int]] | None = None
    configs: dict[str, str] | None = None

    def rows(self, before: TopicState | None = None) -> list[Sequence[int]]:
        """Return the replicas of each partition. Omitted counts are those of `before`, or else
        1.
        """
        if self.replicas is not None:
            return list(self.replicas)
        there = [] if before is None else list(before.replica_assignments.values())
        replication = self.replication or (before.replication_factor if before is not None else 1)
        placed = list(range(1, replication + 1))
        kept = [row if self.replication is None or len(row) == replication else placed for row in there]
        partitions = self.partitions or len(there) or 1
        return kept[:partitions] + [placed] * (partitions - len(kept))


class RequestGiven(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    topic: str = ""
    broker: str = ""
    """The broker id. Empty means the default of all brokers."""
    resource: str = ""
    """The name of what is changed if it is neither a topic's state nor a broker: an ACL, a user, a
    group.
    """
    operation: str = "create"
    principal: str | None = None
    api: str | None = None
    client_id: str | None = None
    client_host: str = "127.0.0.1"
    validate_only: bool = False
    automatic: bool = False
    """Whether the topic is created automatically because a client used it."""
    time: datetime | None = None
    created: datetime | None = None
    """When the topic that is to be deleted was created."""
    after: TopicGiven | None = None
    config_operations: dict[str, str] | None = None
    """The operand of each changed key."""
    reassignments: dict[str, list[int]] = {}
    """The broker ids that each partition is to have. An empty list cancels a reassignment, as TOML
    has no null.
    """
    delete_records_offsets: dict[str, int] = {}
    election_type: Literal["preferred", "unclean"] = "preferred"


def misnamed(request: RequestGiven) -> str | None:
    operation = request.operation
    if operation not in OPERATIONS:
        near = get_close_matches(operation, OPERATIONS, 1, 0.6)
        return f"there is no operation {operation!r}" + (f"; did you mean {near[0]}?" if near else "")
    if operation in KINDS:
        wrong = "topic" if request.topic else "broker" if request.broker else ""
        return f"{operation} is about a resource, and names a {wrong}" if wrong else None
    if request.resource:
        return f"{operation} names a resource, which is for {', '.join(GROUPS)} and the operations in them"
    if operation in ENTITIES:
        return f"{operation} is about a broker, and names a topic" if request.topic else None
    return None if request.topic else f"{operation} names no topic"


def _ms(time: datetime) -> int:
    if time.tzinfo is None:
        raise ValueError(f"the time {time} has no zone: write it with Z or an offset")
    return int(time.timestamp() * 1000)


def asked(
    request: RequestGiven, before: TopicState | None, configs: Mapping[str, str], defaults: Mapping[str, str]
) -> JudgedRequest:
    """Return the request to the policy. `before` is its topic as it is, `configs` those of its
    broker, and `defaults` the cluster's defaults of topics. Raises ValueError.
    """
    if request.operation in KINDS:
        operands: Mapping[str, str | None] = request.config_operations or {}
        if request.operation in DELETIONS:
            operands = dict.fromkeys(operands)
        elects = request.election_type if request.operation == ELECT_LEADERS else None
        kind = KINDS[request.operation]
        return _builder(request).admin(kind, request.resource, config_operations=operands, election_type=elects)
    if request.operation in ENTITIES:
        return _entity_request(request, configs, defaults)
    return _topic_request(request, before, defaults)


def _builder(request: RequestGiven, api: str = "") -> RequestBuilder:
    """Return the builder of a request. `api` is what a client would have called if neither the
    request nor its operation says so.
    """
    return RequestBuilder(
        principal=request.principal,
        client_id=request.client_id,
        client_host=request.client_host,
        api=request.api or api or APIS[request.operation],
        validate_only=request.validate_only,
        time_ms=None if request.time is None else _ms(request.time),
    )


def _entity_request(
    given: RequestGiven, before: Mapping[str, str], defaults: Mapping[str, str]
) -> AlterBrokerConfigsRequest | AlterLoggersRequest:
    after = {**before, **(given.config_operations or {})}
    if given.after is not None and given.after.configs is not None:
        after = given.after.configs
    changed: Mapping[str, str | None] = {name: after.get(name) for name in _different(before, after)}
    operands = given.config_operations or changed
    if given.operation == ALTER_LOGGERS:
        return _builder(given).alter_loggers(given.broker, before, after, config_operations=operands)
    return _builder(given).alter_broker_configs(
        given.broker,
        before,
        after,
        config_operations=operands,
        default_configs_before=defaults_with(before, defaults),
        default_configs=defaults_with(after, defaults),
    )


def _topic_request(given: RequestGiven, before: TopicState | None, defaults: Mapping[str, str]) -> PolicyRequest:
    if given.operation == "delete":
        created_ms = None if given.created is None else _ms(given.created)
        return _builder(given).delete_topic(given.topic, created_ms=created_ms)
    if given.operation == "delete_records":
        return _builder(given).delete_records(given.topic, _by_partition(given.delete_records_offsets))
    if given.operation == "create":
        state = _after(given, None, defaults)
        return _builder(given).create_topic(given.topic, state, automatic=given.automatic)
    if given.operation == "reassign":
        return _reassignment(given, before or topic_state([[1]]), defaults)
    return _alteration(given, before or topic_state([[1]]), defaults)


def _by_partition(given: Mapping[str, Value]) -> dict[int, Value]:
    for partition in given:
        if not (partition.isascii() and partition.isdecimal() and len(partition) < MAX_DIGITS):
            raise ValueError(f"{partition!r} is no number of a partition")
    return {int(partition): value for partition, value in given.items()}


def _reassignment(given: RequestGiven, before: TopicState, defaults: Mapping[str, str]) -> AlterTopicRequest:
    """Make the request of a reassignment. A partition whose reassignment is cancelled stays as it
    is, unless `after` says what it will be.
    """
    if not given.reassignments:
        raise ValueError("reassign names no partition in reassignments")
    wanted = {partition: row or None for partition, row in _by_partition(given.reassignments).items()}
    after = _after(given, before, defaults)
    rows = dict(enumerate(_rows(after)))
    unknown = sorted(wanted.keys() - rows.keys())
    if unknown:
        raise ValueError(f"{given.topic} has no partition {unknown[0]}")
    rows |= {partition: tuple(row) for partition, row in wanted.items() if row is not None}
    state = requested_state(
        list(rows.values()),
        after.raw_configs,
        internal=after.internal,
        generated_replica_assignments=False,
        default_configs=defaults,
    )
    return _builder(given).alter_topic(given.topic, state, reassignments=wanted)


def _alteration(given: RequestGiven, before: TopicState, defaults: Mapping[str, str]) -> AlterTopicRequest:
    """Make the request that a node would make: unless partitions move, it names the changed
    configs.
    """
    after = _after(given, before, defaults)
    operations: Mapping[str, str | None] | None = given.config_operations
    moves = _rows(after) != _rows(before)
    if operations is None and not moves:
        changed = _different(before.raw_configs, after.raw_configs)
        operations = {name: after.raw_configs.get(name) for name in changed}
    builder = _builder(given, "CreatePartitions" if moves else "")
    return builder.alter_topic(given.topic, after, config_operations=operations)


def _rows(state: TopicState) -> list[tuple[int, ...]]:
    return [tuple(row) for row in state.replica_assignments.values()]


def _different(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def _after(given: RequestGiven, before: TopicState | None, defaults: Mapping[str, str]) -> RequestedTopicState:
    after = given.after or TopicGiven()
    configs = after.configs
    if configs is None:
        configs = {**({} if before is None else before.raw_configs), **(given.config_operations or {})}
    rows = after.rows(before)
    is_placed_here = before is None or list(map(tuple, rows)) != _rows(before)
    return requested_state(
        rows,
        configs,
        internal=given.topic in INTERNAL_TOPICS,
        generated_replica_assignments=is_placed_here and after.replicas is None,
        default_configs=defaults,
    )
