"""Requests that are judged, and their parts, until the cluster has answered them.

Rule: a part of a request goes on to the cluster only on grounds: a verdict that lets it pass, or a
recorded reason why it needs none. A part without grounds is refused, so that what is forgotten does
not pass. A reason that no verdict was due holds for every state of the cluster (`NO_POLICY` and
those beside it); any other is counted, and marked in the audit log.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from ...admin.apis import SPECS
from ...admin.changes import Change, Element, Outcome, Unjudged
from ...admin.recording.requests import AuditedRequest
from ...admin.spec import Changes, Spec
from ...cluster.delta import NO_CHANGE, Delta
from ...cluster.entities import NO_TOPIC_ID
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...policies.interface import JudgedRequest
from ...process.settings.node_config import NOTHING
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.header import RequestOrigin
from ...protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResource
from ...protocol.registry import KAFKA
from ...protocol.schema import WireStruct
from .cluster_reader import NotKnownError
from .mirror import Mirror
from .questions import QuestionContext
from .turns import Turn

Place = tuple[str, int]
"""A field of a request, and the index of one of its elements."""
Row = tuple[str, Hashable]
"""The name of the thing that a row of a request is about, and the state that it asks for."""
AskForClient = Callable[[ApiKey, int, Any], Awaitable[Any]]
"""Has the cluster answer a request of the gateway itself as if the client had sent it. Raises
ProtocolError.
"""

NO_POLICY = Unjudged("no policy is in force")
NO_JUDGED_API = Unjudged("no rule judges requests of this API")
NO_JUDGED_KIND = Unjudged("policies do not judge the configs of such a resource")
CLUSTER_REFUSES = Unjudged("no cluster carries it out")
"""The reasons for which no verdict is due. None of them depends on what was read of the cluster."""
NO_GROUNDS = "The gateway did not judge this part of the request."
KNOWN_CODES = frozenset(map(int, ErrorCode))


class NotSeen(Refusal):
    """The topic or resource of a request is not in the state that was read, which may be old."""


class NotAsked(NotSeen):
    """The gateway itself finds something wrong with what is asked of a topic that it sees."""


class Part(msgspec.Struct, eq=False):
    """A part of a request, which is everything that it asks for of one topic or resource, and the
    judgement of it.
    """

    key: Hashable
    places: list[Place]
    """Where the part stands in the request."""
    outcome: Outcome
    """The judgement of the part, and its refusal if it goes no further. Its delta is the effect on
    the topic, as far as that is known.
    """
    topic_id: bytes = NO_TOPIC_ID
    """The id of a topic that the request gives by its id alone."""
    contradiction: str | None = None
    """Why it is refused, if it asks two things of one."""
    requests: Sequence[JudgedRequest] = ()
    """The requests that the policy has to allow. The last is the part's own; those before it are
    for what the cluster itself does because of the part.
    """
    first_refusal: Refusal | None = None
    """The error by which Kafka refuses the part before it asks a policy, if one is known."""
    stated_form: IncrementalAlterConfigsResource | None = None
    """The element in a form that does not depend on what was read, if the request's own does."""
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
        return [getattr(request, field)[index] for field, index in self.places]

    def plan(
        self,
        request: JudgedRequest,
        delta: Delta = NO_CHANGE,
        *,
        besides: Sequence[JudgedRequest] = (),
        first_refusal: Refusal | None = None,
        stated_form: IncrementalAlterConfigsResource | None = None,
    ) -> None:
        """Note what the policy is to be asked, and the effect of the part if it is passed."""
        self.requests, self.outcome.element = (*besides, request), Element(delta)
        self.first_refusal, self.stated_form = first_refusal, stated_form

    @property
    def is_passed(self) -> bool:
        """Whether the part goes on, for which it needs grounds."""
        return self.outcome.refusal is None and (self.outcome.unjudged is not None or self._has_verdict)

    @property
    def _has_verdict(self) -> bool:
        judgement = self.outcome.judgement
        return judgement is not None and judgement.verdict is not None

    @property
    def reveals_topic(self) -> bool:
        """Whether its refusal shows that its topic exists or not, which is not for clients that may
        not describe the topic.
        """
        return not self.is_passed and (isinstance(self.outcome.refusal, NotSeen) or self._has_verdict)

    def deny(self, refusal: Refusal) -> None:
        """Refuse the part as the cluster does, which checks the client's rights before a policy."""
        self.outcome.judgement = self.outcome.element = None
        self.refuse(refusal)

    @property
    def stated(self) -> Any | None:
        """The element in whose place the part goes on, so that what was judged is carried out."""
        judgement = self.outcome.judgement
        return self.stated_form if self._has_verdict and judgement is not None and judgement.is_enforced else None

    @property
    def refusal(self) -> Refusal:
        """The reason why the part does not go on."""
        return self.outcome.refusal or Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, NO_GROUNDS)

    def pass_unjudged(self, reason: Unjudged) -> None:
        """Let the part go on without a verdict."""
        self.outcome.unjudged = reason

    def refuse(self, refusal: Refusal) -> None:
        self.outcome.refusal, self.outcome.unjudged = refusal, None

    def answered(self, code: int, message: str | None, partitions: Sequence[int] = ()) -> Outcome:
        """Return what has become of the part, or of these partitions, by the cluster's answer."""
        refusal = None
        if code:
            refusal = Refusal(ErrorCode(code) if code in KNOWN_CODES else ErrorCode.UNKNOWN_SERVER_ERROR, message)
        change = _of_partitions(self.change, partitions) if partitions else self.change
        return msgspec.structs.replace(self.outcome, change=change, refusal=refusal)


def _of_partitions(change: Change, partitions: Sequence[int]) -> Change:
    moved, offsets = change.reassignments, change.delete_records_offsets
    return msgspec.structs.replace(
        change,
        reassignments=None if moved is None else {index: moved[index] for index in partitions if index in moved},
        delete_records_offsets=None
        if offsets is None
        else {index: offsets[index] for index in partitions if index in offsets},
    )


class Effect(Enum):
    """The effect that requests of an API have on the topics of the mirror."""

    NONE = "none"
    STATED = "stated"
    """The state that the request says."""
    CHOSEN = "chosen"
    """A state of which the cluster chooses a part: ids and replicas."""
    REMOVAL = "removal"


class Resolution(msgspec.Struct, frozen=True):
    """The ACLs or topics that a request stands for without naming them."""

    parts: list[Part]
    request: Any
    """The request that names them."""
    answer: Callable[[Any], Any]
    """Returns the response to the client's request, given the response to this one."""
    excess: str | None = None
    """Why the request is not judged, if it stands for too much; `request` then changes nothing."""


async def no_inquiry(_judged: "Judged", _version: int, _ask: AskForClient) -> None:
    pass


def no_rows(_request: Any) -> Iterable[Row]:
    return ()


def rows_of_partitions(wanted: Callable[[Any], Hashable]) -> Callable[[Any], Iterable[Row]]:
    """Return the `asked_rows` of an API whose topics name partitions, each of which wants this."""
    return lambda request: (
        (f"partition {each.partition_index} of the topic {topic.name}", wanted(each))
        for topic in request.topics
        for each in topic.partitions
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Form(ABC):
    """All that the gateway has to know of an API whose requests it judges: how a request is divided
    into parts, what the policy is asked about them, and what the cluster's answer means.
    """

    key: ApiKey
    is_whole: bool = False
    """Whether a request is refused as a whole if one of its parts is."""
    effect: Effect = Effect.NONE
    creates: bool = False
    """Whether the things that a request names come to be by it."""
    repeated: str | None = None
    """Kafka's text for what must not be named twice; None if it may."""
    refuses_repeated: bool = False
    """Whether every Kafka refuses what is named twice, so that its own answer is the right one."""
    asked_rows: Callable[[Any], Iterable[Row]] = no_rows
    """Returns what a request asks for, row by row, if a release of Kafka carries out one of two
    rows about the same. Which one depends on the release (`tests/conformance/releases/` has a
    recording), and an answer may be to one row while the other is carried out.
    """
    knows_policies: int = 0
    """The first version whose clients know POLICY_VIOLATION (KIP-201)."""
    retried_as: ErrorCode = ErrorCode.NOT_CONTROLLER
    """The error for which clients look for the broker that answers the API, wait, and ask again."""
    inquire: Callable[["Judged", int, AskForClient], Awaitable[None]] = no_inquiry
    """Asks the cluster, as the client, about the parts that the gateway does not see or the policy
    refuses, in a version of the API, and refuses them as the cluster does. The state that was read
    may be old, and the cluster alone knows the client's rights. An inquiry changes nothing in any
    state of the cluster, and a part goes on after none of its answers.
    """
    resolve: Callable[[Any, Mirror], Awaitable[Resolution | None]] | None = None
    """Finds out what a request means that does not name it; returns None if it does. Raises
    NotKnownError.
    """

    @property
    def spec(self) -> Spec:
        return SPECS[self.key]

    def contradiction(self, request: Any) -> str | None:
        """Return why a request is refused that asks two things of one; None if it does not. Rows
        that ask for the same are one.
        """
        asked: dict[str, Hashable] = {}
        for thing, wanted in self.asked_rows(request):
            if asked.setdefault(thing, wanted) != wanted:
                return f"The request asks for two changes of {thing}. Name it once."
        return None

    def count(self, _request: Any) -> int:
        """Return how many things a request names that are read before it is judged."""
        return 0

    @abstractmethod
    def parts(self, request: Any) -> list[Part]:
        """Divide a request into parts, in the order in which it first names them."""

    def is_impossible(self, _part: Part, _request: Any) -> bool:
        """Whether no cluster carries out a part, so that its own answer is the right one."""
        return False

    @abstractmethod
    def plan(self, context: QuestionContext, part: Part, request: Any, image: Image) -> None:
        """Plan a part in this state of the cluster (`Part.plan`). Raises NotSeen, Refusal,
        NotKnownError.
        """

    def passing(self, request: Any, _parts: Sequence[Part]) -> Any:
        """Return the request with the parts alone that are passed, as they were judged; the same
        object if that is all.
        """
        return request

    @abstractmethod
    def together(
        self, request: Any, version: int, response: Any | None, refused: Sequence[tuple[Part, ErrorCode, str | None]]
    ) -> Any:
        """Return the response to the whole request: the rows of `response`, which is the answer of
        the cluster to the parts that were passed, and the rows of the parts that were refused.
        """

    @abstractmethod
    def outcomes(self, parts: Sequence[Part], response: Any) -> list[list[Outcome]]:
        """Return what became of each of the parts that were passed: one outcome, or one for each
        error of its partitions. REQUEST_TIMED_OUT says that nobody knows.
        """


class PassingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A `RequestDescription` of a request at the gateway."""

    api_key: ApiKey
    client_id: str | None
    origin: RequestOrigin
    listener: str
    """The name of the gateway's listener."""
    arrived: float
    """The time of arrival in seconds, by trio's clock."""
    forwarded: bool = False

    @property
    def changes(self) -> Changes | None:
        """The changes of the API. Requests that only ask for topics have them created."""
        declared = SPECS.get(self.api_key)
        return (None if declared is None else declared.changes) or SPECS[ApiKey.CREATE_TOPICS].changes

    @property
    def policy_api(self) -> str:
        return KAFKA[self.api_key].name


class Judged(msgspec.Struct, eq=False):
    """A request whose parts are judged, until the cluster has answered it."""

    asked: PassingRequest
    request: Any
    form: Form
    parts: list[Part]
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
    def passed(self) -> list[Part]:
        return [each for each in self.parts if each.is_passed]

    @property
    def refused(self) -> list[Part]:
        return [each for each in self.parts if not each.is_passed]


def is_dry_run(request: Any) -> bool:
    """Whether a request only asks if it would be allowed."""
    return bool(getattr(request, "validate_only", False))
