"""Requests that are judged, until the cluster has answered them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ...controller.audit.requests import AuditedRequest
from ...controller.config.node_config import NOTHING
from ...controller.errors import Refusal
from ...controller.metadata.image import Image
from ...controller.requests.changes import Change
from ...protocol.error_codes import ErrorCode
from .description import PassingRequest
from .dissection import Form, Part
from .mirror import NotKnownError
from .questions import Question
from .turns import Turn


class JudgedPart(msgspec.Struct, eq=False):
    """A part of a request, and the judgement of it."""

    part: Part
    change: Change
    """The change for the records, with the refusal if the part goes no further."""
    question: Question | None = None
    """None if there was nothing to ask: the cluster has no such topic, or nobody judges it."""
    before: Mapping[str, str] | NotKnownError = NOTHING
    """The configs of a broker or the levels of its loggers before the request."""

    @classmethod
    def of(cls, part: Part) -> "JudgedPart":
        requested = part.requested
        change = Change(
            resource=requested.resource,
            kind=requested.kind,
            operations=requested.operations,
            operation_kinds=requested.operation_kinds,
            reassignments=requested.reassignments,
            delete_records_offsets=requested.delete_records_offsets,
        )
        return cls(part, change)

    @property
    def is_passed(self) -> bool:
        return self.change.refusal is None


class Judged(msgspec.Struct, eq=False):
    """A request whose parts are judged, until the cluster has answered it."""

    asked: PassingRequest
    request: Any
    form: Form
    parts: list[JudgedPart]
    turn: Turn
    image: Image
    """The state that its first part was judged by."""
    validate_only: bool
    audited: AuditedRequest | None = None
    """The record of the request, where there is an audit log; it began before the judgement."""
    supposed: frozenset[str] = frozenset()
    """The topics of the requests under way that it was judged after, which count as done."""
    too_long: Refusal | None = None
    """The reason why it is not judged, if it names too much. It is then one part."""
    is_unjudged: bool = False
    """Whether the policy failed on a part of it."""

    @property
    def is_automatic(self) -> bool:
        """Whether the request only has topics created."""
        return self.form.key != self.asked.api_key

    @property
    def passed(self) -> list[JudgedPart]:
        return [each for each in self.parts if each.is_passed]

    @property
    def refused(self) -> list[tuple[Part, ErrorCode, str | None]]:
        return [(each.part, each.change.code, each.change.message) for each in self.parts if not each.is_passed]


def is_dry_run(request: Any) -> bool:
    """Whether a request only asks if it would be allowed."""
    return bool(getattr(request, "validate_only", False))
