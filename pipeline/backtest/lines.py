"""Lines of events, read as far as a replay needs them: most of a line are the states of its topic,
which hardly anybody looks at.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from ...audit.event import Decision, RecordedState


class _Named(msgspec.Struct, frozen=True, gc=False):
    topic: str


class _Step(msgspec.Struct, frozen=True, gc=False):
    epoch: int
    sequence: int
    before: msgspec.Raw
    after: msgspec.Raw = msgspec.Raw(b"null")
    name: str = ""
    topic: str = ""
    assumed: tuple[_Named, ...] = ()


class _Request(msgspec.Struct, frozen=True, gc=False):
    cluster_id: str
    epoch: int
    sequence: int
    time_ms: int
    principal: str | None
    operation: str
    name: str
    resource: str = "topic"


ASKED_ABOUT = (
    *("cluster_id", "epoch", "sequence", "time_ms", "request", "element", "elements", "assumed", "cluster_size"),
    *("principal", "client_id", "client_host", "api", "operation", "resource", "name", "validate_only", "asked_ms"),
    *("asked_created_ms", "requested", "config_operations", "config_operation_kinds", "reassignments"),
    *("delete_records_offsets", "upstream_cluster_id", "before", "after"),
)
"""The fields of a decision that identify what a policy is asked about, and the decision's place."""


def _asked_about() -> Any:
    """Return the type of a decision as far as a policy is asked about it, its states as JSON."""
    fields = [
        (each.name, msgspec.Raw if each.name in {"before", "after"} else each.type, msgspec.field(default=each.default))
        for each in msgspec.structs.fields(Decision)
        if each.name in ASKED_ABOUT
    ]
    return msgspec.defstruct("Decision", fields, kw_only=True, frozen=True, gc=False)


step_of = msgspec.json.Decoder(_Step).decode
"""Reads what an event makes of its topic."""
request_of = msgspec.json.Decoder(_Request).decode
"""Reads what a difference says of its request."""
decision_of: Callable[[bytes | memoryview], Any] = msgspec.json.Decoder(_asked_about()).decode
"""Reads what a policy is asked about a decision, with `before` and `after` as JSON."""
state_of = msgspec.json.Decoder(RecordedState | None).decode
