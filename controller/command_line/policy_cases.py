"""Reads requests and test cases for rules from TOML, and evaluates them.

Rule: omitted values have the plainest defaults, and errors begin with the name of the file. The
time and the cluster of a case come from its file only, so its result is reproducible.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from ...policies.configs.canonical import canonical_configs
from ...policies.configs.effective import defaults_with
from ...policies.interface import (
    AlterBrokerConfigsRequest,
    AlterLoggersRequest,
    AlterTopicRequest,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    JudgedRequest,
    PolicyRequest,
    RequestedTopicState,
    TopicState,
)
from ...policies.rules.ruleset import RuleSet
from ...policies.states import ClusterSnapshot, requested_state, topic_state
from ...policies.verdict import Finding, RuleAction, refusal
from ..metadata.entities import INTERNAL_TOPICS

APIS = {
    "create": "CreateTopics",
    "alter": "IncrementalAlterConfigs",
    "reassign": "AlterPartitionReassignments",
    "delete": "DeleteTopics",
    "delete_records": "DeleteRecords",
    "alter_broker": "IncrementalAlterConfigs",
    "alter_loggers": "IncrementalAlterConfigs",
}
ENTITIES: Mapping[str, type[AlterBrokerConfigsRequest | AlterLoggersRequest]] = {
    "alter_broker": AlterBrokerConfigsRequest,
    "alter_loggers": AlterLoggersRequest,
}
"""The requests about brokers and their loggers, by operation."""
NEED_TOPIC = frozenset({"alter", "reassign", "delete", "delete_records"})
"""The operations on topics that exist."""


MAX_DIGITS = 10
"""Numbers of partitions have fewer digits."""
Value = TypeVar("Value")


class CaseError(Exception):
    """A file of cases is invalid. The message is a sentence that begins with the file's name."""


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
    operation: Literal["create", "alter", "reassign", "delete", "delete_records", "alter_broker", "alter_loggers"] = (
        "create"
    )
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
    reassignments: dict[str, list[int]] = {}
    """The broker ids that each partition is to have. An empty list cancels a reassignment, as TOML
    has no null.
    """
    delete_records_offsets: dict[str, int] = {}


class ClusterGiven(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cluster_size: int = 3
    default_configs: dict[str, str] = {}
    """The cluster's defaults of topic configs, by config name, where they differ from Kafka's."""
    topics: dict[str, TopicGiven] = {}


class CaseGiven(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    request: RequestGiven
    name: str = ""
    before: TopicGiven | None = None
    """The state before the request: of its topic, instead of an entry in `cluster.topics`, or the
    configs of its broker.
    """
    cluster: ClusterGiven = ClusterGiven()
    expect: Literal["allow", "deny", "warn", "audit"] = "allow"
    rule: str | None = None
    message: str | None = None
    """A text that the message of the decisive rule must contain."""


class FileGiven(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    case: list[CaseGiven]
    rules: list[str] = []
    """The rule files, relative to this file. The default is the rule file of the same name:
    orders.toml for orders.cases.toml.
    """


class Case(msgspec.Struct, frozen=True):
    file: Path
    name: str
    rules: tuple[Path, ...]
    request: JudgedRequest
    cluster: ClusterSnapshot
    expect: str
    rule: str | None = None
    message: str | None = None


class CaseOutcome(msgspec.Struct, frozen=True):
    case: Case
    decision: str
    """The decision: `deny`, `warn`, `audit` or `allow`."""
    findings: tuple[Finding, ...]
    failure: str | None
    """A sentence about the difference from the expectation, or None if there is none."""


def read_request(file: Path) -> Case:
    """Read one request for `policy check --request`. Its time defaults to now. Raises CaseError."""
    given = _converted(file, _document(file), CaseGiven)
    request = given.request
    if request.time is None:
        request = msgspec.structs.replace(request, time=datetime.now(UTC))
    return _case(file, 1, msgspec.structs.replace(given, request=request), ())


def read_cases(file: Path) -> Iterator[Case]:
    """Yield the cases in a file. Raises CaseError."""
    given = _converted(file, _document(file), FileGiven)
    rules = tuple(file.parent / name for name in given.rules) or (
        file.with_name(file.name.removesuffix(".cases.toml") + ".toml"),
    )
    for number, case in enumerate(given.case, 1):
        yield _case(file, number, case, rules)


def judged(case: Case, rules: RuleSet) -> CaseOutcome:
    findings = rules.judge(case.request, case.cluster)
    actions = {finding.action for finding in findings}
    decision = next((action.value for action in RuleAction if action in actions), "allow")
    return CaseOutcome(case, decision, findings, _failure(case, decision, findings))


def _failure(case: Case, decision: str, findings: Sequence[Finding]) -> str | None:
    said = "; ".join(f"{finding.rule}: {finding.error or finding.message}" for finding in findings)
    if decision != case.expect:
        return f"expected {case.expect}, but it is {decision}{f' ({said})' if said else ''}"
    decisive = refusal(findings) or next((f for f in findings if f.action.value == decision), None)
    if case.rule is not None and (decisive is None or decisive.rule != case.rule):
        return f"expected {decision} by {case.rule}, but it is by {decisive.rule if decisive else 'no rule'}"
    if case.message is not None and (decisive is None or case.message not in decisive.message):
        return f"expected {case.message!r} in the message, but it is {decisive.message if decisive else ''!r}"
    return None


# ------------------------------------------------------------------ reading


def _document(file: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CaseError(f"{file}: {error}") from None


def _converted(file: Path, document: Mapping[str, Any], kind: type[Any]) -> Any:
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise CaseError(f"{file}: {error}") from None


def _case(file: Path, number: int, given: CaseGiven, rules: tuple[Path, ...]) -> Case:
    request = given.request
    topics = {name: _state(name, topic) for name, topic in given.cluster.topics.items()}
    if request.operation in ENTITIES and request.topic:
        raise CaseError(f"{file}: case {number}: {request.operation} is about a broker, and names a topic")
    if request.operation not in ENTITIES and not request.topic:
        raise CaseError(f"{file}: case {number}: {request.operation} names no topic")
    if given.before is not None and request.topic:
        topics[request.topic] = _state(request.topic, given.before)
    if request.operation in NEED_TOPIC and request.topic not in topics:
        topics[request.topic] = _state(request.topic, TopicGiven())
    try:
        asked = _asked(given, topics.get(request.topic), canonical_configs(given.cluster.default_configs))
    except ValueError as error:
        raise CaseError(f"{file}: case {number}: {error}") from None
    return Case(
        file, given.name or f"case {number}", rules, asked, ClusterSnapshot(topics, given.cluster.cluster_size),
        given.expect, given.rule, given.message,
    )  # fmt: skip


def _state(name: str, given: TopicGiven) -> TopicState:
    return topic_state(given.rows(), given.configs or {}, internal=name in INTERNAL_TOPICS)


def _ms(time: datetime) -> int:
    if time.tzinfo is None:
        raise CaseError(f"the time {time} has no zone: write it with Z or an offset")
    return int(time.timestamp() * 1000)


def _asked(given: CaseGiven, before: TopicState | None, defaults: Mapping[str, str]) -> JudgedRequest:
    request = given.request
    common: dict[str, Any] = {
        "principal": request.principal,
        "client_id": request.client_id,
        "client_host": request.client_host,
        "api": request.api or APIS[request.operation],
        "validate_only": request.validate_only,
        "time_ms": None if request.time is None else _ms(request.time),
    }
    if request.operation in ENTITIES:
        configs = given.before.configs or {} if given.before is not None else {}
        return _entity_request(request, configs, defaults, common)
    return _topic_request(request, before, defaults, {**common, "topic": request.topic})


def _entity_request(
    given: RequestGiven, before: Mapping[str, str], defaults: Mapping[str, str], common: Mapping[str, Any]
) -> AlterBrokerConfigsRequest | AlterLoggersRequest:
    after = {**before, **(given.config_operations or {})}
    if given.after is not None and given.after.configs is not None:
        after = given.after.configs
    changed: Mapping[str, str | None] = {name: after.get(name) for name in _different(before, after)}
    asked = ENTITIES[given.operation](
        **common,
        broker=given.broker,
        config_operations=given.config_operations or changed,
        before=before,
        after=after,
    )
    if isinstance(asked, AlterLoggersRequest):
        return asked
    return msgspec.structs.replace(
        asked, default_configs_before=defaults_with(before, defaults), default_configs=defaults_with(after, defaults)
    )


def _topic_request(
    given: RequestGiven, before: TopicState | None, defaults: Mapping[str, str], common: Mapping[str, Any]
) -> PolicyRequest:
    if given.operation == "delete":
        return DeleteTopicRequest(**common, created_ms=None if given.created is None else _ms(given.created))
    if given.operation == "delete_records":
        return DeleteRecordsRequest(**common, delete_records_offsets=_by_partition(given.delete_records_offsets))
    if given.operation == "create":
        return CreateTopicRequest(**common, requested_state=_after(given, None, defaults), automatic=given.automatic)
    if given.operation == "reassign":
        return _reassignment(given, before or topic_state([[1]]), defaults, common)
    return _alteration(given, before or topic_state([[1]]), defaults, common)


def _by_partition(given: Mapping[str, Value]) -> dict[int, Value]:
    for partition in given:
        if not (partition.isascii() and partition.isdecimal() and len(partition) < MAX_DIGITS):
            raise ValueError(f"{partition!r} is no number of a partition")
    return {int(partition): value for partition, value in given.items()}


def _reassignment(
    given: RequestGiven, before: TopicState, defaults: Mapping[str, str], common: Mapping[str, Any]
) -> AlterTopicRequest:
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
    return AlterTopicRequest(**common, requested_state=state, reassignments=wanted)


def _alteration(
    given: RequestGiven, before: TopicState, defaults: Mapping[str, str], common: Mapping[str, Any]
) -> AlterTopicRequest:
    """Make the request that a node would make: unless partitions move, it names the changed
    configs.
    """
    after = _after(given, before, defaults)
    operations: Mapping[str, str | None] | None = given.config_operations
    moves = _rows(after) != _rows(before)
    if operations is None and not moves:
        changed = _different(before.raw_configs, after.raw_configs)
        operations = {name: after.raw_configs.get(name) for name in changed}
    api = given.api or ("CreatePartitions" if moves else APIS[given.operation])
    return AlterTopicRequest(**{**common, "api": api}, requested_state=after, config_operations=operations)


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
