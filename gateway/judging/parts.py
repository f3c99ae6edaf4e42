"""The parts of requests that are judged, each about one topic or resource.

Rule: a part of a request goes on to the cluster only on grounds: a verdict that lets it pass, or a
recorded reason why it needs none. A part without grounds is refused, so that what is forgotten does
not pass. A reason that no verdict was due holds for every state of the cluster (`NO_POLICY` and
those beside it); any other is counted, and marked in the audit log.
"""

from collections.abc import Hashable, Mapping
from typing import Any

import msgspec

from ...admin.changes import Change, Outcome, Unjudged
from ...cluster.entities import NO_TOPIC_ID
from ...cluster.errors import Refusal
from ...process.settings.node_config import NOTHING
from ...protocol.error_codes import ErrorCode
from .cluster_reader import NotKnownError
from .questions import Question

Place = tuple[str, int]
"""A field of a request, and the index of one of its elements."""

NO_POLICY = Unjudged("no policy is in force")
NO_JUDGED_API = Unjudged("no rule judges requests of this API")
NO_JUDGED_KIND = Unjudged("policies do not judge the configs of such a resource")
CLUSTER_REFUSES = Unjudged("no cluster carries it out")
"""The reasons for which no verdict is due. None of them depends on what was read of the cluster."""
NO_GROUNDS = "The gateway did not judge this part of the request."


class Part(msgspec.Struct, eq=False):
    """A part of a request, which is everything that it asks for of one topic or resource, and the
    judgement of it.
    """

    key: Hashable
    places: list[Place]
    """Where the part stands in the request."""
    outcome: Outcome
    """What becomes of the part, for the records, with the refusal if it goes no further."""
    topic_id: bytes = NO_TOPIC_ID
    """The id of a topic that the request gives by its id alone."""
    contradiction: str | None = None
    """Why it is refused, if it asks two things of one."""
    question: Question | None = None
    """None if there was nothing to ask, or the state that was read has no such topic."""
    before: Mapping[str, str] | NotKnownError | Refusal = NOTHING
    """The configs of a broker or the levels of its loggers before the request."""
    is_there: bool = False
    """Whether it is the automatic creation of a topic that was seen, which may be gone since."""

    @property
    def change(self) -> Change:
        return self.outcome.change

    @property
    def is_repeated(self) -> bool:
        return len(self.places) > 1

    @property
    def line(self) -> str:
        """The name of the line in which requests about the same wait for their turns."""
        return f"{self.change.kind} {self.change.resource}"

    def elements(self, request: Any) -> list[Any]:
        """Return the elements of the request that the part is made of."""
        return [getattr(request, field)[index] for field, index in self.places]

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
