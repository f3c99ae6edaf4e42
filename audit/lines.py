"""An event as a line that every reader takes.

Rule: no line is longer than readers read (`MAX_LINE_BYTES`). What a request may name and what a
topic may be is bounded, so that decisions fit; where one does not all the same, it is told without
what was asked, or else that there was one, and the node's log says so.
"""

import logging

import msgspec

from .event import MAX_LINE_BYTES, AuditEvent, Decision, Dropped, encode

log = logging.getLogger("minicontroller.audit")

TOO_LONG = "it would have been longer than a line may be"


def line_of(event: AuditEvent) -> bytes:
    """Encode an event as a line with its end."""
    line = encode(event)
    if len(line) <= MAX_LINE_BYTES:
        return line
    log.error("event %d of epoch %d has %d bytes: what was asked is left out", event.sequence, event.epoch, len(line))
    if isinstance(event, Decision):
        line = encode(_without_what_was_asked(event))
    return line if len(line) <= MAX_LINE_BYTES else encode(_dropped(event))


def _without_what_was_asked(event: Decision) -> Decision:
    """Leave out of an event what the caller asked for; who it was, what came of it and the states
    stay.
    """
    policy = None if event.policy is None else msgspec.structs.replace(event.policy, findings=())
    return msgspec.structs.replace(
        event,
        asked_ms=None,
        requested=None,
        entity=None,
        config_operations=None,
        config_operation_kinds=None,
        assumed=(),
        policy=policy,
    )


def _dropped(event: AuditEvent) -> Dropped:
    return Dropped(
        event.schema_version,
        event.cluster_id,
        event.epoch,
        event.sequence,
        event.time_ms,
        event.decided_node,
        first_sequence=event.sequence,
        last_sequence=event.sequence,
        reason=TOO_LONG,
    )
