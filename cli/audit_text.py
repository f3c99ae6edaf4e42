"""Prints audit events for people, as one line or with all details.

Rule: names, client ids and messages in an audit log come from clients, so they are escaped.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
from rich.text import Text

from ..audit.event import (
    HIGH_WATERMARK,
    NOT_AUTHENTICATED,
    AuditEvent,
    Decision,
    Dropped,
    Effect,
    Observed,
    RecordedState,
    Removal,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotTopics,
    as_plain,
)
from ..audit.outcomes import WOULD_BE_REFUSED, would_be_refused
from ..text import escaped, plural
from .console import PlainConsole

COMMON = frozenset({"kind", "schema_version", "cluster_id", "epoch", "sequence", "time_ms", "decided_node"})
STATES = frozenset({"before", "after", "requested"})
PIPE_WIDTH = 10_000
PARTITIONS = 5
"""The most partitions that one line names."""


def _console() -> PlainConsole:
    console = PlainConsole()
    return console if console.is_terminal else PlainConsole(width=PIPE_WIDTH)


def when(time_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}.{time_ms % 1000:03}Z"
    except (ValueError, OverflowError, OSError):
        return str(time_ms)


def one_line(event: AuditEvent) -> None:
    text = Text(f"{when(event.time_ms)}  {event.epoch}/{event.sequence}  ", style="dim")
    text.append(*_headline(event))
    _console().print(text, soft_wrap=True)


def _headline(event: AuditEvent) -> tuple[str, str]:
    match event:
        case Decision():
            return _decided(event), _colour(event)
        case Removal():
            return f"removed {escaped(event.topic)}", "magenta"
        case Observed():
            why = "reassignment" if event.reassignment else "changed without a request"
            return f"{why}: {escaped(event.topic)}: {changes(event.before, event.after)}", "magenta"
        case SnapshotBegin():
            return (
                f"node {event.decided_node} is the controller ({escaped(event.reason)}): {plural(event.topics, 'topic')}",
                "blue",
            )
        case SnapshotTopics():
            return f"state of {plural(len(event.topics), 'topic')}", "dim"
        case SnapshotEnd():
            return f"snapshot complete: {plural(event.topics, 'topic')}", "dim"
        case Dropped():
            return (
                f"events {event.first_sequence} to {event.last_sequence} were dropped: {escaped(event.reason)}",
                "red",
            )


def _colour(event: Decision) -> str:
    if event.error_code:
        return "red"
    return "green" if event.effect is not Effect.UNKNOWN and would_be_refused(event) is None else "yellow"


def _decided(event: Decision) -> str:
    objection = would_be_refused(event)
    parts = [
        escaped(event.principal or NOT_AUTHENTICATED),
        _operation(event),
        escaped(event.name) or "(default)",
        event.error if event.error_code else "ok" if objection is None else WOULD_BE_REFUSED,
    ]
    if event.further_denials:
        parts.append(f"and {event.further_denials} more of the request")
    parts += _partitions_named(event)
    if objection is not None:
        parts.append(f"by {escaped(objection.by)} - " if objection.by else "- ")
        parts[-1] += escaped(objection.message)
    elif event.enforced and event.policy is not None and event.policy.rule:
        parts.append(f"by {escaped(event.policy.rule)}")
    if event.message:
        parts.append(f"- {escaped(event.message)}")
    if event.effect is Effect.APPLIED and event.resource == "topic":
        parts.append(f"- {changes(event.before, event.after)}")
    return " ".join(parts)


def _operation(event: Decision) -> str:
    kind = f" {escaped(event.election_type)}" if event.election_type else ""
    return event.operation + kind + ("?" if event.validate_only else "")


def _partitions_named(event: Decision) -> Iterator[str]:
    named = [
        *(f"{each} {'cancelled' if row is None else list(row)}" for each, row in (event.reassignments or {}).items()),
        *(f"{each} before {_offset(at)}" for each, at in (event.delete_records_offsets or {}).items()),
    ]
    if named:
        more = f" and {len(named) - PARTITIONS} more" if len(named) > PARTITIONS else ""
        yield f"({', '.join(named[:PARTITIONS])}{more})"


def _offset(offset: int) -> str:
    return "the end" if offset == HIGH_WATERMARK else str(offset)


def changes(before: RecordedState | None, after: RecordedState | None) -> str:
    if after is None:
        return "gone" if before is not None else "nothing"
    if before is None:
        return f"new, {_size(after)}{_configs(after)}"
    parts = []
    if before.topic_id != after.topic_id:
        parts.append("another topic of this name")
    if after.marked_for_deletion and not before.marked_for_deletion:
        parts.append("marked for deletion")
    if len(before.replicas) != len(after.replicas):
        parts.append(f"partitions {len(before.replicas)} -> {len(after.replicas)}")
    elif before.replicas != after.replicas:
        parts.append("replicas moved")
    for key in sorted({*before.configs, *after.configs}):
        old, new = before.configs.get(key), after.configs.get(key)
        if old != new:
            parts.append(f"{escaped(key)}: {_value(old)} -> {_value(new)}")
    return ", ".join(parts) or "nothing"


def _size(state: RecordedState) -> str:
    replicas = len(state.replicas[0]) if state.replicas else 0
    return f"{plural(len(state.replicas), 'partition')}, {plural(replicas, 'replica')}"


def _configs(state: RecordedState) -> str:
    return "".join(f", {escaped(key)}={escaped(value)}" for key, value in sorted(state.configs.items()))


def _value(value: str | None) -> str:
    return "(default)" if value is None else escaped(value)


# ------------------------------------------------------------------ everything


def print_details(event: AuditEvent) -> None:
    one_line(event)
    console = _console()
    for key, value in as_plain(event).items():
        if key in COMMON or _is_empty(value):
            continue
        shown = _state_text(value) if key in STATES else _flat(value)
        console.print(Text(f"    {key}: ", style="dim").append(shown, "default"), soft_wrap=True)


def _state_text(value: dict[str, object]) -> str:
    return _flat({key: each for key, each in value.items() if each is not False and not _is_empty(each)})


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str | list | tuple | dict) and not value)


def _flat(value: object) -> str:
    """Write a value of an event's JSON on one line: constants as in JSON, lists in brackets,
    objects in braces.
    """
    if value is None or isinstance(value, bool):
        return msgspec.json.encode(value).decode()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{escaped(str(key))}={_flat(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + " ".join(_flat(each) for each in value) + "]"
    return escaped(str(value))
