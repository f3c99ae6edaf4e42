"""The audit log's events, schema version 1: what stands in each line, for whoever writes it and
whoever reads it (docs/audit.md).

Rule: plain, frozen, complete. (cluster_id, epoch, sequence) orders all events of a cluster, and
their clocks do not; a state says all that a policy may see of a topic; nothing that is secret is in
an event, because it was taken out before the event was made. A field is never given another
meaning: what must change gets a new schema version.
"""

from contextlib import suppress
from enum import Enum
from typing import Any

import msgspec

SCHEMA_VERSION = 1
MAX_LINE_BYTES = 16 << 20
"""Of an event, without the end of its line: for every reader alike. One of a topic with a hundred
thousand partitions has half of that.
"""
UNKNOWN_NODE = -1
REDACTED = "[hidden]"
"""In the place of a value that is secret, or may be."""
NOT_AUTHENTICATED = "(not authenticated)"
"""How a principal that is null is shown to people, wherever it is."""


class Effect(Enum):
    """What a decision did to the cluster."""

    APPLIED = "applied"
    """It is in effect: the state after it is what the store holds."""
    NONE = "none"
    """Refused, or only validated."""
    UNKNOWN = "unknown"
    """The controller lost its place, or its connection, while the change was under way: the next
    snapshot tells.
    """


class State(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A topic as it is."""

    topic_id: str
    """22 characters of url-safe base64, as Kafka prints it; of a topic without an id,
    `AAAAAAAAAAAAAAAAAAAAAA`.
    """
    replicas: tuple[tuple[int, ...], ...]
    """Row i holds the broker ids of partition i, the preferred leader first."""
    configs: dict[str, str]
    """The topic's own configs, without the broker's defaults. A value that may be secret is
    `[hidden]`.
    """
    marked_for_deletion: bool
    """Gone for clients; its clean-up is under way."""
    internal: bool
    """One of Kafka's own."""
    created_ms: int | None
    """Since 1970, by the clock of the controller that created it, or else of ZooKeeper; null where
    nobody knows.
    """


class Requested(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A topic as it would be if the request was allowed."""

    replicas: tuple[tuple[int, ...], ...]
    """As in State."""
    configs: dict[str, str]
    """As in State: all of them, not those alone that the request named."""
    marked_for_deletion: bool
    """As in State."""
    internal: bool
    """As in State."""
    generated_replica_assignments: bool
    """The controller chose (some of) the replicas, the request gave counts."""
    default_configs: dict[str, str] = {}
    """What the cluster said for topics that say nothing, where that was otherwise than Kafka's own
    default; absent where nothing was.
    """


class EntityChange(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The configs of a broker or of the default of all brokers, or the levels of a node's loggers
    that the request names.
    """

    before: dict[str, str]
    """In the moment before. A value that may be secret is `[hidden]`."""
    requested: dict[str, str]
    """As they would be if the request was allowed: all of them, as before."""
    after: dict[str, str]
    """In the moment after: as before, if there was no effect or the effect is unknown."""
    default_configs_before: dict[str, str] = {}
    """Of brokers: what held for topics that say nothing, where that was otherwise than Kafka's own
    default; absent where nothing was.
    """
    default_configs: dict[str, str] = {}
    """The same, as it would be if the request was allowed."""


class NamedState(msgspec.Struct, frozen=True, kw_only=True):
    """A topic and its state."""

    topic: str
    """Its name."""
    state: State | None
    """Null for no topic of this name."""


class RuleFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule had against the request."""

    rule: str
    """Its name."""
    action: str
    """`deny`, `warn` or `audit`."""
    message: str
    """What it says of the request."""
    error: str | None = None
    """Why the rule could not be evaluated; then it denies."""


class PolicyDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What the policy said."""

    decision: str
    """`allowed`, `violated`, or `broken`: the policy failed, and nothing passes a policy that
    fails.
    """
    policy: str
    """The name of its class, of its files, or both."""
    policy_hash: str
    """SHA-256, in hexadecimal, of the policy that was in force."""
    rule: str
    """The rule that decided; empty where none did."""
    findings: tuple[RuleFinding, ...]
    """Of all rules, warnings included, in their order; a policy in Python has none."""
    message: str | None
    """Why not: for the caller if it was violated, for the operator if it is broken."""
    microseconds: int
    """How long it thought."""


class Event(msgspec.Struct, frozen=True, gc=False, tag_field="kind"):
    """What all events tell."""

    schema_version: int
    """1."""
    cluster_id: str
    """As clients are told it."""
    epoch: int
    """Of the controller: each election gets a higher one."""
    sequence: int
    """From 1 in each epoch, without gaps, in the order in which the changes took effect."""
    time_ms: int
    """Since 1970, by the clock of the node that decided. It may go backwards, and orders nothing.
    """
    decided_node: int
    """The node that was the controller, and wrote this."""


class Decision(Event, frozen=True, gc=False, tag="decision"):
    """One element of one request was decided."""

    request: int
    """The same for all elements of a request; unique within the epoch."""
    element: int
    """Which of them, from 0, in the order in which they were judged."""
    elements: int
    """How many there are. Those that were not begun in time have no event: nothing was decided of
    them.
    """
    principal: str | None
    """`User:alice`; null for a caller who is not authenticated (`User:ANONYMOUS` is a user of that
    name).
    """
    client_id: str | None
    """As the client said."""
    client_host: str
    """The client's address."""
    software: str
    """The client's name and version, `name/version`, as it told them (KIP-511); empty if it did
    not, or a real broker forwarded it.
    """
    listener: str
    """On which the request reached the node that decided."""
    received_node: int
    """The node that holds the client's connection; -1 if it is not known."""
    api: str
    """Kafka's name of the API that the client used; `Metadata` for an automatic creation."""
    api_version: int
    """The version in which the client spoke."""
    operation: str
    """`create_topic`, `delete_topic`, `create_partitions`, `alter_configs` or
    `incremental_alter_configs`.
    """
    resource: str
    """`topic`, `broker`, `logger` (the levels of a node's loggers), or `resource` for what has no
    configs that can be changed, and for a request that asks for more than is allowed at once: it is
    one event without a name.
    """
    name: str
    """Of the resource, of a broker its number; empty for the default of all brokers, and for a
    topic that was named by an id that nobody has or looked up.
    """
    requested: Requested | None
    """Null for a deletion, for brokers, and for what was refused before it was known what it would
    come to.
    """
    config_operations: dict[str, str | None] | None
    """For changes of configs: the keys that the request named, with their operands, null to delete
    one.
    """
    validate_only: bool
    """The request only asked whether it would be allowed."""
    asked_ms: int | None
    """The time that the policy was told, since 1970; null for what was refused before the policy
    had its turn.
    """
    asked_created_ms: int | None
    """The time of the topic's creation that the policy was told, where it wanted to know;
    `before.created_ms` may differ by clocks.
    """
    cluster_size: int
    """How many brokers were registered when it was judged."""
    before: State | None
    """The topic in the moment before; null for none, and for brokers."""
    after: State | None
    """The topic in the moment after: as before, if there was no effect or the effect is unknown."""
    assumed: tuple[NamedState, ...]
    """Where the policy saw topics otherwise than the events before this one tell: changes on their
    way that failed later. Mostly empty.
    """
    policy: PolicyDecision | None
    """Null where no policy was asked: there is none, or the request was wrong in itself."""
    effect: Effect
    """`applied`: it is in the store, and `after` tells the state; or the level of a logger is set.
    `none`: refused, or only validated. `unknown`: see Replay.
    """
    error_code: int
    """Kafka's code of what was decided, 0 for no error. A client that did not wait long enough was
    told REQUEST_TIMED_OUT instead.
    """
    error: str
    """Its name."""
    message: str | None
    """What the client is told besides."""
    latency_us: int
    """Microseconds from the request's arrival at the node that decided until it was decided, and
    safe in the store.
    """
    config_operation_kinds: dict[str, str] | None = None
    """For changes of configs what is done with each key: `set`, `delete`, `append`, `subtract`, or
    `unknown`, which is refused. Also those keys that AlterConfigs deletes by leaving them out. Null
    in logs that were written before there was this field.
    """
    entity: EntityChange | None = None
    """Of a broker, of the default of all brokers, and of loggers: their configs. Null for topics,
    and for what was refused before it was known.
    """


class Removal(Event, frozen=True, kw_only=True, tag="removal"):
    """The clean-up of a deletion is complete: the topic is gone, and its name is free."""

    topic: str
    """Its name."""
    before: State | None
    """What it was, marked for deletion."""


class Observed(Event, frozen=True, kw_only=True, tag="observed"):
    """A topic is otherwise without a request: others wrote into ZooKeeper, or the controller gave
    an id to a topic that had none.
    """

    topic: str
    """Its name."""
    before: State | None
    """Null if it is new."""
    after: State | None
    """Null if it is gone."""


class SnapshotBegin(Event, frozen=True, kw_only=True, tag="snapshot_begin"):
    """What follows is the whole state. Nothing else comes before the snapshot's end."""

    reason: str
    """`elected`, `reread` (the connection broke, and everything was read anew) or `recovered`
    (events were lost).
    """
    cluster_size: int
    """How many brokers are registered."""
    topics: int
    """How many topics follow."""


class SnapshotTopics(Event, frozen=True, kw_only=True, tag="snapshot_topics"):
    """Some of the topics."""

    topics: tuple[NamedState, ...]
    """In the order of their names."""


class SnapshotEnd(Event, frozen=True, kw_only=True, tag="snapshot_end"):
    """The snapshot is complete."""

    topics: int
    """How many there were."""


class Dropped(Event, frozen=True, kw_only=True, tag="dropped"):
    """Events that could not be written and were given up (`audit.on.failure=drop`). A snapshot
    follows.
    """

    first_sequence: int
    """Of this epoch, as the next."""
    last_sequence: int
    """All from the first to this one are missing."""
    reason: str
    """Why."""


AuditEvent = Decision | Removal | Observed | SnapshotBegin | SnapshotTopics | SnapshotEnd | Dropped

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AuditEvent] = msgspec.json.Decoder(AuditEvent)


class _Version(msgspec.Struct):
    schema_version: int


_version_decoder = msgspec.json.Decoder(_Version)


class UnreadableLineError(Exception):
    """A line of an audit file is no event; the message is a sentence that says why."""


class UnknownSchemaError(UnreadableLineError):
    """A line is an event of a schema version that is not known here."""


def encode(event: AuditEvent) -> bytes:
    """Encode an event as a line with its end. What is no Unicode in a text (a policy may say
    anything) becomes `?`.
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
    """Return an event as the plain values of its JSON."""
    plain: dict[str, Any] = msgspec.to_builtins(event)
    return plain
