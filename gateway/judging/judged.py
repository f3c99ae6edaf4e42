"""Requests that are judged, until the cluster has answered them.

Rule: a part of a request goes on to the cluster only on grounds: a verdict that lets it pass, or a
recorded reason why it needs none. A part without grounds is refused, so that what is forgotten does
not pass. A reason that no verdict was due holds for every state of the cluster (`NO_POLICY` and
those beside it); any other is counted, and marked in the audit log.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from ...admin.changes import Outcome, Unjudged
from ...admin.recording.requests import AuditedRequest
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...process.settings.node_config import NOTHING
from ...protocol.error_codes import ErrorCode
from ...protocol.schema import WireStruct
from .cluster_reader import NotKnownError
from .description import PassingRequest
from .dissection import Form, Part
from .questions import Question
from .resolution import Resolution
from .turns import Turn

NO_POLICY = Unjudged("no policy is in force")
NO_JUDGED_API = Unjudged("no rule judges requests of this API")
NO_JUDGED_KIND = Unjudged("policies do not judge the configs of such a resource")
CLUSTER_REFUSES = Unjudged("no cluster carries it out")
"""The reasons for which no verdict is due. None of them depends on what was read of the cluster."""
NO_GROUNDS = "The gateway did not judge this part of the request."


class JudgedPart(msgspec.Struct, eq=False):
    """A part of a request, and the judgement of it."""

    part: Part
    outcome: Outcome
    """What becomes of the part, for the records, with the refusal if it goes no further."""
    question: Question | None = None
    """None if there was nothing to ask, or the state that was read has no such topic."""
    before: Mapping[str, str] | NotKnownError | Refusal = NOTHING
    """The configs of a broker or the levels of its loggers before the request."""
    is_there: bool = False
    """Whether it is the automatic creation of a topic that was seen, which may be gone since."""

    @classmethod
    def of(cls, part: Part) -> "JudgedPart":
        return cls(part, Outcome(part.change))

    @property
    def line(self) -> str:
        """The name of the line in which requests about the same wait for their turns."""
        return f"{self.outcome.change.kind} {self.outcome.change.resource}"

    def elements(self, request: Any) -> list[Any]:
        """Return the elements of the request that the part is made of."""
        return [getattr(request, field)[index] for field, index in self.part.places]

    @property
    def is_passed(self) -> bool:
        """Whether the part goes on, for which it needs grounds."""
        return self.outcome.refusal is None and self._has_grounds

    @property
    def _has_grounds(self) -> bool:
        judgement = self.outcome.judgement
        return self.outcome.unjudged is not None or (judgement is not None and judgement.verdict is not None)

    @property
    def stated(self) -> Any | None:
        """The element in whose place the part goes on, if it was judged in another form."""
        judgement = self.outcome.judgement
        is_enforced = judgement is not None and judgement.verdict is not None and judgement.is_enforced
        return self.question.stated if is_enforced and self.question is not None else None

    @property
    def refusal(self) -> Refusal:
        """The reason why the part does not go on."""
        return self.outcome.refusal or Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, NO_GROUNDS)

    def pass_unjudged(self, reason: Unjudged) -> None:
        """Let the part go on without a verdict."""
        self.outcome.unjudged = reason

    def refuse(self, refusal: Refusal) -> None:
        self.outcome.refusal, self.outcome.unjudged = refusal, None


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
    """Whether a part of it got no verdict although one was due."""
    resolution: Resolution | None = None
    """The request that goes on in place of the client's, if that does not name what it changes."""
    refusing: WireStruct | None = None
    """The response by which the cluster refuses the request as a whole, if it was asked."""

    @property
    def is_automatic(self) -> bool:
        """Whether the request only has topics created."""
        return self.form.key != self.asked.api_key

    @property
    def passed(self) -> list[JudgedPart]:
        return [each for each in self.parts if each.is_passed]

    @property
    def refused(self) -> list[tuple[Part, ErrorCode, str | None]]:
        left = [each for each in self.parts if not each.is_passed]
        return [(each.part, each.refusal.code, each.refusal.message) for each in left]


def is_dry_run(request: Any) -> bool:
    """Whether a request only asks if it would be allowed."""
    return bool(getattr(request, "validate_only", False))
