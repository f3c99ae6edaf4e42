"""Takes requests for changes apart, and puts responses together again.

Rule: a request is divided into parts, each about one topic or resource, and each part is refused or
passed as a whole. A response has its rows in the order of the request, whoever made them. Where
nothing is refused, request and response stay as they are.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from ....admin.apis import SPECS
from ....admin.changes import Outcome
from ....admin.error_answers import error_answer
from ....admin.spec import Rows, Spec
from ....cluster.entities import NO_TOPIC_ID, Topic
from ....cluster.errors import Refusal
from ....cluster.image import Image
from ....protocol.error_codes import ErrorCode
from ....protocol.registry import KAFKA
from ..judged import AskForClient, Form, Judged, NotAsked, NotSeen, Part, Place
from ..questions import QuestionContext

DENIALS = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED})
NOT_SEEN_YET = "The gateway does not see this yet; try it again."


def by_name(thing: Any) -> Hashable:
    return ("name", thing.name)


@dataclass(frozen=True, eq=False, kw_only=True)
class PartedForm(Form):
    """The form of an API whose requests are judged part by part."""

    fields: Sequence[str]
    """The fields of a request whose elements are what it asks for."""
    ask: Callable[[QuestionContext, Part, Any, Image], None]
    """Plans a part by the first of its elements."""
    impossible: Callable[[Any], bool] = lambda _element: False
    """Returns whether no cluster carries out an element."""
    identity: Callable[[Any], Hashable] = by_name
    """Returns what an element of the request is about."""
    row_identities: Callable[[Any], Iterable[Hashable]] = lambda row: (by_name(row),)
    """Returns what a row of the response is about, in every form in which a request may say it."""
    told_once: Collection[ErrorCode] = ()
    """The errors of which the cluster has one row, also for what a request names twice."""
    own_rows: Rows | None = None
    """The rows of the response, if the API's declaration has none."""

    @property
    def spec(self) -> Spec:
        declared = SPECS[self.key]
        return declared if self.own_rows is None else msgspec.structs.replace(declared, rows=self.own_rows)

    @property
    def rows(self) -> Rows:
        rows = self.own_rows or SPECS[self.key].rows
        assert rows is not None
        return rows

    def _elements(self, request: Any) -> Iterator[tuple[Place, Any]]:
        for field in self.fields:
            for index, element in enumerate(getattr(request, field, None) or ()):
                yield (field, index), element

    def count(self, request: Any) -> int:
        return sum(len(getattr(request, field, None) or ()) for field in self.fields)

    def parts(self, request: Any) -> list[Part]:
        places: dict[Hashable, list[Place]] = {}
        ids: dict[Hashable, bytes] = {}
        for place, thing in self._elements(request):
            key = self.identity(thing)
            places.setdefault(key, []).append(place)
            is_named = getattr(thing, "name", None) is not None
            ids.setdefault(key, NO_TOPIC_ID if is_named else getattr(thing, "topic_id", NO_TOPIC_ID))
        return [self._part(request, key, own, ids[key]) for key, own in places.items()]

    def _part(self, request: Any, key: Hashable, places: list[Place], topic_id: bytes) -> Part:
        changes, own = self.spec.changes, self.only(request, places)
        assert changes is not None
        change = next(iter(changes.requested(own)))
        return Part(key, places, Outcome(change), topic_id, self.contradiction(own))

    def is_impossible(self, part: Part, request: Any) -> bool:
        return all(map(self.impossible, part.elements(request)))

    def plan(self, context: QuestionContext, part: Part, request: Any, image: Image) -> None:
        self.ask(context, part, part.elements(request)[0], image)

    def only(self, request: Any, places: Iterable[Place]) -> Any:
        """Return the request with these elements and no others, in the same order."""
        kept: dict[str, list[int]] = {field: [] for field in self.fields}
        for field, index in sorted(places):
            kept[field].append(index)
        fields = {
            field: [getattr(request, field)[index] for index in kept[field]]
            for field in self.fields
            if getattr(request, field, None)
        }
        return msgspec.structs.replace(request, **fields)

    def passing(self, request: Any, parts: Sequence[Part]) -> Any:
        passed = [each for each in parts if each.is_passed]
        for each in passed:
            if each.stated is not None:
                for field, index in each.places:
                    elements = list(getattr(request, field))
                    elements[index] = each.stated
                    request = msgspec.structs.replace(request, **{field: elements})
        if len(passed) == len(parts):
            return request
        return self.only(request, [place for each in passed for place in each.places])

    def together(
        self, request: Any, version: int, response: Any | None, refused: Sequence[tuple[Part, ErrorCode, str | None]]
    ) -> Any:
        rows = self.rows
        spec = self.spec
        own: dict[Hashable, list[Any]] = {}
        for part, code, message in refused:
            answer = error_answer(spec, self.only(request, part.places), version, code=code, message=message)
            made = list(getattr(answer, rows.field))
            own[part.key] = [_merged(rows, made)] if code in self.told_once else made
        theirs = self._by_identity(() if response is None else getattr(response, rows.field))
        taken: set[int] = set()
        ordered: list[Any] = []
        for _, thing in self._elements(request):
            key = self.identity(thing)
            waiting = own.get(key) or [row for row in theirs.get(key, ()) if id(row) not in taken]
            if waiting:
                row = waiting[0]
                taken.add(id(row))
                if key in own:
                    own[key] = own[key][1:]
                ordered.append(row)
        left = () if response is None else (row for row in getattr(response, rows.field) if id(row) not in taken)
        whole = KAFKA[self.key].response() if response is None else response
        return msgspec.structs.replace(whole, **{rows.field: [*ordered, *left]})

    def outcomes(self, parts: Sequence[Part], response: Any) -> list[list[Outcome]]:
        own = getattr(response, "error_code", 0)
        if own:
            return [[each.answered(own, getattr(response, "error_message", None))] for each in parts]
        theirs = self._by_identity(getattr(response, self.rows.field))
        return [self._outcomes_of(each, theirs.get(each.key, [])) for each in parts]

    def _outcomes_of(self, part: Part, rows: Sequence[Any]) -> list[Outcome]:
        inner = self.rows.inner
        if inner is None:
            return [part.answered(row.error_code, getattr(row, "error_message", None)) for row in rows[:1]]
        by_error: dict[tuple[int, str | None], list[int]] = {}
        for row in rows:
            for each in getattr(row, inner.field):
                error = each.error_code, getattr(each, "error_message", None)
                by_error.setdefault(error, []).append(each.partition_index)
        return [part.answered(code, message, indexes) for (code, message), indexes in by_error.items()]

    def _by_identity(self, rows: Iterable[Any]) -> Mapping[Hashable, list[Any]]:
        found: dict[Hashable, list[Any]] = {}
        for row in rows:
            for key in self.row_identities(row):
                found.setdefault(key, []).append(row)
        return found


def _merged(rows: Rows, made: Sequence[Any]) -> Any:
    """Return one row for all that are about a topic, with one inside it for each partition."""
    if rows.inner is None:
        return made[0]
    field = rows.inner.field
    partitions = {each.partition_index: each for row in made for each in getattr(row, field)}
    return msgspec.structs.replace(made[0], **{field: list(partitions.values())})


@contextmanager
def seen_topic(part: Part, image: Image, *, has_text: bool = True) -> Iterator[Topic]:
    """Give the topic that a part is about, or raise NotSeen, which clients take for a reason to try
    it again. A Refusal inside becomes NotAsked: it would tell a client without rights that the
    topic is there.
    """
    topic = image.topics.get(part.change.resource)
    if topic is None:
        code, text = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{part.change.resource}' does not exist."
        if part.topic_id != NO_TOPIC_ID:
            code, text = ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."
        raise NotSeen(code, text if has_text else None, reason=text)
    try:
        yield topic
    except NotSeen:
        raise
    except Refusal as refusal:
        raise NotAsked(refusal.code, refusal.message) from refusal


async def inquire(
    make: Callable[[Judged, Sequence[Part]], Any], judged: Judged, version: int, ask: AskForClient
) -> None:
    """Ask the cluster by one request of the same API about all parts whose refusal would reveal a
    topic.
    """
    parts = [each for each in judged.parts if each.reveals_topic]
    if not parts:
        return
    response = await ask(judged.form.key, version, make(judged, parts))
    own = getattr(response, "error_code", ErrorCode.NONE)
    if own in DENIALS or (own and any(isinstance(each.outcome.refusal, NotSeen) for each in parts)):
        judged.refusing = response
    for part, outcomes in zip(parts, judged.form.outcomes(parts, response), strict=True):
        for outcome in outcomes[:1]:
            refuse_by(part, outcome)


def refuse_by(part: Part, outcome: Outcome) -> None:
    """Refuse a part as the cluster does, which only denies what the policy refuses. What the
    cluster would carry out has come to be since the gateway looked, and the client is to ask again.
    """
    refusal, is_unseen = outcome.refusal, isinstance(part.outcome.refusal, NotSeen)
    if refusal is not None and (is_unseen or refusal.code in DENIALS):
        reason = part.refusal.reason if refusal.code == part.refusal.code else ""
        part.deny(Refusal(refusal.code, refusal.message, reason=reason))
    elif refusal is None and is_unseen and not isinstance(part.outcome.refusal, NotAsked):
        part.refuse(Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_SEEN_YET))


def _dry(judged: Judged, parts: Sequence[Part]) -> Any:
    assert isinstance(judged.form, PartedForm)
    places = [place for each in parts for place in each.places]
    return msgspec.structs.replace(judged.form.only(judged.request, places), validate_only=True)


dry_run = partial(inquire, _dry)
"""Inquires by a request of the same parts that is only validated."""
