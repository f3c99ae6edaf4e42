"""The events of the audit log, schema version 1: the fields of each line, for everybody who writes
or reads the log (docs/audit.md).

Rule: events are frozen and complete. (cluster_id, epoch, sequence) orders all events of a cluster;
times do not. A state holds everything that a policy may see of a topic. No event holds a secret:
secrets are redacted before an event is made. No field ever gets another meaning; a change of
meaning needs a new schema version.
"""

from contextlib import suppress
from enum import Enum
from typing import Any

import msgspec

SCHEMA_VERSION = 1
MAX_LINE_BYTES = 16 << 20
"""The longest line, without its newline, for all writers and readers. An event of a topic with a
hundred thousand partitions takes half of it.
"""
REDACTED = "[hidden]"
"""The text that replaces a value which is secret or may be."""
HIGH_WATERMARK = -1
"""The offset in `delete_records_offsets` that stands for the end of a partition."""
NOT_AUTHENTICATED = "(not authenticated)"
"""The text that people are shown for a principal that is null."""


class Effect(Enum):
    """The effect of a decision on the cluster."""

    APPLIED = "applied"
    """The change is in effect, and the store holds the state after it."""
    NONE = "none"
    """The request was refused, or only validated."""
    UNKNOWN = "unknown"
    """The controller was replaced or lost its connection before it knew. The next snapshot shows
    whether the change is in effect. Of a gateway: the cluster did not answer, or did not show what
    it had created; an `observed` event shows it.
    """


class RecordedState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A topic as it was at one moment."""

    topic_id: str
    """The topic id as Kafka prints it: 22 characters of URL-safe base64. A topic without an id has
    `AAAAAAAAAAAAAAAAAAAAAA`.
    """
    replicas: tuple[tuple[int, ...], ...]
    """The broker ids of each partition, in the order of partitions; the preferred leader is first.
    While a partition is being reassigned, they include the replicas that are added and those that
    will be removed.
    """
    configs: dict[str, str]
    """The topic's own configs, without defaults. A value that may be secret is `[hidden]`."""
    marked_for_deletion: bool
    """Whether the topic was deleted and its clean-up is not complete."""
    internal: bool
    """Whether the topic is one of Kafka's internal topics."""
    created_ms: int | None
    """When the topic was created, in milliseconds since 1970, by the clock of the controller that
    created it, or else of ZooKeeper. Null if unknown.
    """


class Requested(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A topic as it would be if the request were allowed."""

    replicas: tuple[tuple[int, ...], ...]
    """As in RecordedState: the broker ids of each partition."""
    configs: dict[str, str]
    """As in RecordedState: all configs of the topic, not only those that the request named."""
    marked_for_deletion: bool
    """As in RecordedState: whether the topic was deleted and its clean-up is not complete."""
    internal: bool
    """As in RecordedState: whether the topic is one of Kafka's internal topics."""
    generated_replica_assignments: bool
    """Whether the controller chose replicas, because the request gave only counts for them."""
    default_configs: dict[str, str] = {}
    """The cluster's defaults for topics that differ from Kafka's own defaults. Absent if none
    differs.
    """


class EntityChange(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A change of the configs of a broker or of the default for all brokers, or of the levels of a
    node's loggers. Of loggers it has only those that the request named.
    """

    before: dict[str, str]
    """The configs or levels before the decision. A value that may be secret is `[hidden]`."""
    requested: dict[str, str]
    """All configs or levels as they would be if the request were allowed."""
    after: dict[str, str]
    """The configs or levels after the decision. They are those before it if the effect is `none` or
    `unknown`.
    """
    default_configs_before: dict[str, str] = {}
    """For brokers: the defaults for topics before the decision that differed from Kafka's own
    defaults. Absent if none differed.
    """
    default_configs: dict[str, str] = {}
    """The default configs as they would be if the request were allowed."""


class NamedState(msgspec.Struct, frozen=True, kw_only=True):
    """A topic and its state."""

    topic: str
    """The topic's name."""
    state: RecordedState | None
    """The topic's state; null if there is no topic of this name."""


class RuleFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The finding of one rule on the request."""

    rule: str
    """The rule's name."""
    action: str
    """The rule's action: `deny`, `warn` or `audit`."""
    message: str
    """The rule's message about the request."""
    error: str | None = None
    """Why the rule could not be evaluated, in which case it denies; otherwise null."""


class PolicyDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The policy's verdict on the request."""

    decision: str
    """`allowed`; `violated` if the policy refused the request; `broken` if the policy failed, which
    refuses the request, too.
    """
    policy: str
    """The name of the policy's class, of the rule files, or both."""
    policy_hash: str
    """The SHA-256, in hexadecimal, of the policy and rules that were in force."""
    rule: str
    """The rule that refused the request; empty if none did."""
    findings: tuple[RuleFinding, ...]
    """The findings of all rules, warnings included, in the order of the rules. A policy in Python
    has none.
    """
    message: str | None
    """Why the request was refused: for the client if `violated`, for the operator if `broken`."""
    microseconds: int
    """How long the policy took, in microseconds."""


class Event(msgspec.Struct, frozen=True, gc=False, tag_field="kind"):
    """The fields of all events."""

    schema_version: int
    """The version of the schema: 1."""
    cluster_id: str
    """The cluster id that clients see."""
    epoch: int
    """The controller epoch; each election of a controller raises it."""
    sequence: int
    """The number of the event within its epoch: from 1, without gaps, in the order in which changes
    took effect.
    """
    time_ms: int
    """When the event was decided, in milliseconds since 1970, by the clock of the node that
    decided. It may go backwards, so it orders nothing.
    """
    decided_node: int
    """The id of the node that decided as the controller and wrote the event."""


class Decision(Event, frozen=True, gc=False, tag="decision"):
    """The controller decided one element of one request, such as one topic of a CreateTopics."""

    request: int
    """The number of the request, which all its elements share; unique within the epoch."""
    element: int
    """The number of the element within its request, from 0, in the order of judgement."""
    elements: int
    """How many elements the request has. Elements that were not begun in time have no event,
    because nothing was decided about them.
    """
    principal: str | None
    """The client's principal, such as `User:alice`; null if the client was not authenticated. A
    user named ANONYMOUS is `User:ANONYMOUS`.
    """
    client_id: str | None
    """The client id that the client sent."""
    client_host: str
    """The IP address of the client."""
    software: str
    """The name and version of the client's software, `name/version`, as it sent them (KIP-511).
    Empty if it sent none, or if a Kafka broker forwarded the request.
    """
    listener: str
    """The name of the listener through which the request reached the node that decided."""
    received_node: int
    """The id of the node that the client is connected to; -1 if unknown."""
    api: str
    """Kafka's name of the API that the client called; `Metadata` for an automatic creation."""
    api_version: int
    """The version of the API that the client used."""
    operation: str
    """The operation: `create_topic`, `delete_topic`, `create_partitions`, `alter_configs`,
    `incremental_alter_configs`, `alter_partition_reassignments`, `delete_records`, or the name of
    another API that changes something, such as `create_acls`.
    """
    resource: str
    """The type of the resource: `topic`, `broker`, `logger` for the levels of a node's loggers,
    `acl`, `user` for SCRAM credentials, `client_quota`, `token`, `group` for its offsets,
    `group_config` and `client_metrics` for configs that Kafka has on KRaft, or `replica` for the
    directories of a topic at the node that received the request, each named `TOPIC-PARTITION`.
    `resource` is used for types whose configs cannot be changed, and for a request that exceeds the
    bounds of requests, which is one event without a name.
    """
    name: str
    """The name of the resource: a topic's name, the id of a broker or node, or the name of another
    resource. Empty for the default of all brokers, and for a topic that was named by an id which
    was unknown or not looked up.
    """
    requested: Requested | None
    """The topic as it would be if the request were allowed; after a reassignment, with the replicas
    that it asked for. Null for deletions of topics and of records, for other resources than topics,
    and if the request was refused before this was known.
    """
    config_operations: dict[str, str | None] | None
    """For a change of configs, ACLs, users, quotas or tokens: the keys that the request named, with
    their operands; null deletes a key. Null for other requests.
    """
    validate_only: bool
    """Whether the request only asked if it would be allowed."""
    asked_ms: int | None
    """The time of the request that the policy was given, in milliseconds since 1970. Null if the
    request was refused before the policy was asked, and for changes of ACLs, users, quotas, tokens,
    groups and leaders if no policy judges them.
    """
    asked_created_ms: int | None
    """The time of the topic's creation that the policy was given, in milliseconds since 1970; null
    if no rule needs it. It is by the store's clock, so `before.created_ms` may differ.
    """
    cluster_size: int
    """How many brokers were registered when the element was judged."""
    before: RecordedState | None
    """The topic before the decision; null if there was none, and for other resources
    than topics.
    """
    after: RecordedState | None
    """The topic after the decision; null if there is none, and for other resources than topics. It
    is the topic before the decision if the effect is `none` or `unknown`.
    """
    assumed: tuple[NamedState, ...]
    """The topics that the policy saw in another state than the events before this one give, because
    changes that were under way failed later. Usually empty.
    """
    policy: PolicyDecision | None
    """The policy's verdict; null if no policy was asked, because there is none that judges such
    requests, or the request was invalid.
    """
    effect: Effect
    """`applied`: the change is in the store and `after` is the state, or the levels of loggers are
    set. `none`: the request was refused or only validated. `unknown`: see Replay.
    """
    error_code: int
    """Kafka's error code of the decision; 0 for no error. A client whose timeout passed before was
    sent REQUEST_TIMED_OUT instead.
    """
    error: str
    """Kafka's name of the error code, such as `POLICY_VIOLATION`; `NONE` for no error."""
    message: str | None
    """The error message for the client; null if there is none."""
    latency_us: int
    """The microseconds from the arrival of the request at the node that decided until the decision
    was made and, if it changed anything, safe in the store.
    """
    config_operation_kinds: dict[str, str] | None = None
    """For a change of configs: the operation on each key, which is `set`, `delete`, `append`,
    `subtract`, or `unknown`, which is refused. It includes the keys that AlterConfigs deletes by
    leaving them out. Null for other requests, and in logs that are older than this field.
    """
    entity: EntityChange | None = None
    """The change of a broker's configs, of the default of all brokers, or of loggers. Null for
    topics, and if the request was refused before this was known.
    """
    reassignments: dict[int, tuple[int, ...] | None] | None = None
    """For `alter_partition_reassignments`: the partitions that the request named with the broker
    ids that it asked for; null cancels a reassignment. Null for other requests.
    """
    delete_records_offsets: dict[int, int] | None = None
    """For `delete_records`: the partitions that the request named with the offsets before which
    records are deleted; -1 is the high watermark. Null for other requests.
    """
    further_denials: int = 0
    """How many later elements of the request this event stands for besides its own: they were
    refused for lack of a permission, too, and have no events. It is above 0 only if a request has
    more than 10 such elements.
    """
    enforced: bool = True
    """Whether a refusal by the policy is carried out. It is false for a gateway that only observes,
    and where a request passed that could not be judged: the verdict, if there is any, is in
    `policy`, and the error is that of the cluster.
    """
    upstream_cluster_id: str | None = None
    """The id of the cluster in front of which a gateway stands; null in the log of a controller."""
    unjudged: str | None = None
    """Why a gateway passed the request without a verdict of its policy. `enforced` is false if a
    verdict was due; otherwise the reason is one that holds for every state of the cluster, such as
    that there is no policy. Null where there is a verdict, if the gateway refused the request, and
    in the log of a controller.
    """
    election_type: str | None = None
    """For `elect_leaders`: `preferred` or `unclean`, or `unknown`, which is refused. Null for other
    requests, and in logs that are older than this field.
    """


class Removal(Event, frozen=True, kw_only=True, tag="removal"):
    """The clean-up of a deleted topic is complete: the topic is gone and its name is free."""

    topic: str
    """The topic's name."""
    before: RecordedState | None
    """The topic as it was, marked for deletion."""


class Observed(Event, frozen=True, kw_only=True, tag="observed"):
    """A topic changed without a request: another program wrote to ZooKeeper, a reassignment went on
    or ended, or the controller gave an id to a topic that had none. What other programs change of
    ACLs, users, quotas and tokens has no event.
    """

    topic: str
    """The topic's name."""
    before: RecordedState | None
    """The topic before the change; null if it is new."""
    after: RecordedState | None
    """The topic after the change; null if it is gone."""
    reassignment: bool = False
    """Whether a reassignment went on or ended, which a request had begun or another program."""


class SnapshotBegin(Event, frozen=True, kw_only=True, tag="snapshot_begin"):
    """A snapshot of all topics begins. Only `snapshot_topics` come between it and its end."""

    reason: str
    """Why there is a snapshot: `elected` (a controller was elected), `reread` (it lost its
    connection and read everything again) or `recovered` (events were lost).
    """
    cluster_size: int
    """How many brokers are registered."""
    topics: int
    """How many topics follow, in all `snapshot_topics` together."""


class SnapshotTopics(Event, frozen=True, kw_only=True, tag="snapshot_topics"):
    """Some topics of a snapshot."""

    topics: tuple[NamedState, ...]
    """The topics with their states, in the order of their names."""


class SnapshotEnd(Event, frozen=True, kw_only=True, tag="snapshot_end"):
    """A snapshot ends; it is complete."""

    topics: int
    """How many topics the snapshot has."""


class Dropped(Event, frozen=True, kw_only=True, tag="dropped"):
    """Events are missing because they could not be written (`audit.on.failure=drop`). A snapshot
    follows.
    """

    first_sequence: int
    """The sequence of the first missing event, in this epoch."""
    last_sequence: int
    """The sequence of the last missing event. All events from the first to the last are missing."""
    reason: str
    """Why the events could not be written."""


AuditEvent = Decision | Removal | Observed | SnapshotBegin | SnapshotTopics | SnapshotEnd | Dropped

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AuditEvent] = msgspec.json.Decoder(AuditEvent)


class _Version(msgspec.Struct):
    schema_version: int


_version_decoder = msgspec.json.Decoder(_Version)


class UnreadableLineError(Exception):
    """A line of an audit file is not an event. The message says why."""


class UnknownSchemaError(UnreadableLineError):
    """A line is an event of an unknown schema version."""


def encode(event: AuditEvent) -> bytes:
    """Encode an event as a line, with its newline. Surrogates, which the message of a policy may
    have, become `?`.
    """
    try:
        return _encoder.encode(event) + b"\n"
    except UnicodeEncodeError:
        return _encoder.encode(_sayable(msgspec.to_builtins(event))) + b"\n"


def _sayable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_sayable(key): _sayable(each) for key, each in value.items()}
    return [_sayable(each) for each in value] if isinstance(value, (list, tuple)) else value


def decode(line: bytes | memoryview | str) -> AuditEvent:
    """Decode a line to its event. Raises UnreadableLineError."""
    try:
        event = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _check_version(line)
        raise UnreadableLineError(f"not an event: {error}") from None
    if event.schema_version != SCHEMA_VERSION:
        raise _unknown(event.schema_version)
    return event


def _check_version(line: bytes | memoryview | str) -> None:
    """Raise UnknownSchemaError if a line that is no event of this version is one of another."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        version = _version_decoder.decode(line).schema_version
        if version != SCHEMA_VERSION:
            raise _unknown(version)


def _unknown(version: int) -> UnknownSchemaError:
    return UnknownSchemaError(f"schema version {version} is not known here; version {SCHEMA_VERSION} is")


def as_plain(event: AuditEvent) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(event)
    return plain
