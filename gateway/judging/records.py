"""Records what became of requests that were judged: in the mirror, the audit log and the page.

Rule: what is recorded is what the cluster shows. Once it has answered, the topics that a request
has changed are read until they show the change, and only then is the request over for those that
wait for their turn. What the cluster does not show in time is recorded as the request would have
left it, but for what the cluster itself chooses: the ids and places of new topics and partitions.
The effect is unknown then, as it is without an answer, and a later reading shows it.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from ...admin.changes import Element, Outcome
from ...admin.recording.decisions import NodeDecisions
from ...admin.recording.requests import AuditedRequest
from ...cluster.delta import NO_CHANGE, Delta, TopicBecomes, TopicMarked, TopicRemoved
from ...cluster.entities import NO_TOPIC_ID
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...network.serving.request_log import describe_unexpected_error
from ...process.observe.logs import about
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from .cluster_reader import NotKnownError
from .description import PassingRequest
from .dissection import ClusterAnswer
from .judge import Judge
from .judged import Judged
from .mirror import Mirror
from .parts import Part
from .reading import with_moves_of

log = logging.getLogger("minicontroller.gateway")

PAUSES = (0.05,) * 20
"""The seconds after which a topic is read again that does not show a change yet: brokers learn of
it a moment after the controller.
"""
MORE_PAUSES = (0.5,) * 18
"""The further ones where the cluster has said that the change took effect."""
CHOOSING = frozenset({ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS})
"""The APIs whose effect is not known from the request: the cluster chooses ids and replicas."""
KNOWN_CODES = frozenset(map(int, ErrorCode))
V = TypeVar("V")
NO_ANSWER = ClusterAnswer(ErrorCode.UNKNOWN_SERVER_ERROR, "The cluster did not answer this part of the request.")


class Result(msgspec.Struct, eq=False):
    """The outcome of a part, or of some of its partitions."""

    judged: Part
    outcome: Outcome
    changes_topics: bool
    is_in_doubt: bool = False
    """Whether the cluster did not say, or not in time, what became of it."""

    @property
    def topic(self) -> str | None:
        """The topic that it has changed or may have changed, if any."""
        if self.outcome.refusal is not None or self.outcome.change.kind != "topic" or not self.changes_topics:
            return None
        return self.outcome.change.resource or None

    def is_shown(self, image: Image) -> bool:
        """Whether an image shows the change, as far as that is known."""
        question = self.judged.question
        if question is not None:
            return question.reached(image)
        return self.topic is None or self.topic in image.topics


class Records:
    """Completes the requests that were judged."""

    def __init__(self, mirror: Mirror, judge: Judge, decisions: NodeDecisions) -> None:
        self._mirror = mirror
        self._judge = judge
        self._decisions = decisions

    @property
    def has_log(self) -> bool:
        """Whether there is an audit log."""
        return self._mirror.recorder is not None

    def begun(self, asked: PassingRequest, *, validate_only: bool) -> AuditedRequest | None:
        """Begin to record a request, before it is judged. Raises Refusal while the audit log allows
        no changes.
        """
        recorder = self._mirror.recorder
        if recorder is None:
            return None
        audited = recorder.request(asked, validate_only=validate_only)
        audited.undone_count = audited.undone.count
        return audited

    async def complete(self, judged: Judged, response: object | None) -> None:
        """Record a request by the cluster's response, or without one if nothing was passed or the
        connection broke, and end its turn. Waits until the record is safe if answers wait for it.
        """
        try:
            results = _results(judged, response)
            shown = await self._shown(judged, results)
            self._record(judged, results, shown)
        except Exception as error:  # noqa: BLE001 - the client was answered, and others are not to suffer
            text = describe_unexpected_error(error, judged.request)
            log.error("recording a request of %s failed:\n%s", judged.asked.policy_api, text, extra=about(judged.asked))  # noqa: TRY400 - its text says all, without secrets
            return
        finally:
            self._judge.answered(judged)
        if judged.audited is not None and self._mirror.recorder is not None:
            await self._mirror.recorder.wait_durable(judged.audited)

    async def _shown(self, judged: Judged, results: Sequence[Result]) -> Image:
        """Return an image that shows the topics which the request has changed."""
        changed = [each for each in results if each.topic is not None]
        if judged.form.key == ApiKey.DELETE_TOPICS:
            self._note_gone(changed)
        names = {each.topic or "" for each in changed}
        if not names or judged.validate_only:
            return self._mirror.image
        pauses: tuple[float, ...] = PAUSES if judged.is_automatic else ()
        if not all(each.is_in_doubt for each in changed):
            pauses = PAUSES + MORE_PAUSES

        def is_reached(image: Image) -> bool:
            return all(each.is_shown(image) for each in changed if judged.is_automatic or not each.is_in_doubt)

        try:
            return await self._mirror.look_until(names, is_reached, pauses)
        except NotKnownError as error:
            log.warning(
                "the audit log has the expected state of the topics %s, because the gateway cannot read them: %s",
                ", ".join(sorted(names)[:5]),
                error,
            )
            return self._mirror.image

    def _note_gone(self, deleted: Sequence[Result]) -> None:
        """Note the topics that the cluster says are deleted, whatever its brokers show."""
        for each in deleted:
            topic = self._mirror.image.topics.get(each.topic or "")
            if topic is not None and not each.is_in_doubt:
                self._mirror.gone(topic)

    def _record(self, judged: Judged, results: Sequence[Result], shown: Image) -> None:
        before = self._mirror.image
        unshown = {
            each.topic: each.judged.question.reached
            for each in results
            if not each.is_in_doubt and each.topic and each.judged.question and not each.is_shown(shown)
        }
        for each in results:
            if each.is_in_doubt and each.judged.question is not None and each.topic and each.is_shown(shown):
                each.is_in_doubt, each.outcome.is_late = False, not judged.is_automatic
            elif not judged.validate_only and _is_unknown(judged, each, shown):
                each.is_in_doubt = True
        elements = [_element(judged, each, shown) for each in results]
        if judged.audited is not None:
            self._plan(judged, judged.audited, list(zip(elements, (each.outcome for each in results), strict=True)))
        certain = [element for element, each in zip(elements, results, strict=True) if not each.is_in_doubt]
        self._mirror.completed(_after(before, certain), certain, {} if judged.validate_only else unshown)
        gone = [
            _removal(each.topic) for each in certain if each.topic and _is_gone(each.topic, self._mirror.image, shown)
        ]
        if gone:
            self._mirror.completed(_after(self._mirror.image, gone), gone)
        self._mirror.in_doubt([element for element, each in zip(elements, results, strict=True) if each.is_in_doubt])
        self._decisions.record(judged.asked, [each.outcome for each in results], validate_only=judged.validate_only)

    def _plan(self, judged: Judged, audited: AuditedRequest, changes: Sequence[tuple[Element, Outcome]]) -> None:
        """Give the record its changes, and note what this request and others that are under way
        saw otherwise than the log has it: each was judged with the others before it as done.
        """
        recorder, count = self._mirror.recorder, audited.undone_count
        assert recorder is not None
        recorder.seen_otherwise({*judged.supposed, *(each.topic for each, _ in changes if each.topic is not None)})
        audited.planned(changes, judged.image, elements_left=0)
        audited.undone_count = count
        oldest = self._judge.oldest_count
        recorder.forget_before(count if oldest is None else oldest)


def _results(judged: Judged, response: object | None) -> list[Result]:
    """Return what became of each part, in the order of the request."""
    passed = judged.passed
    found = [] if response is None else judged.form.answers(passed, response)
    answers = dict(zip(map(id, passed), found, strict=False))
    results: list[Result] = []
    for each in judged.parts:
        if response is None or not each.is_passed:
            is_in_doubt = each.is_passed
            results.append(Result(each, each.outcome, judged.form.changes_topics, is_in_doubt=is_in_doubt))
        else:
            results += [_result(judged, each, answer) for answer in answers[id(each)] or [NO_ANSWER]]
    return results


def _result(judged: Judged, each: Part, answer: ClusterAnswer) -> Result:
    outcome = each.outcome
    if answer.partitions:
        change = msgspec.structs.replace(
            outcome.change,
            reassignments=_only(outcome.change.reassignments, answer.partitions),
            delete_records_offsets=_only(outcome.change.delete_records_offsets, answer.partitions),
        )
        outcome = msgspec.structs.replace(outcome, change=change)
    if answer.code == ErrorCode.REQUEST_TIMED_OUT:
        return Result(each, outcome, judged.form.changes_topics, is_in_doubt=True)
    if answer.code:
        code = ErrorCode(answer.code) if answer.code in KNOWN_CODES else ErrorCode.UNKNOWN_SERVER_ERROR
        outcome = msgspec.structs.replace(outcome, refusal=Refusal(code, answer.message))
    return Result(each, outcome, judged.form.changes_topics)


def _only(rows: Mapping[int, V] | None, partitions: Sequence[int]) -> Mapping[int, V] | None:
    return None if rows is None else {index: rows[index] for index in partitions if index in rows}


def _element(judged: Judged, result: Result, shown: Image) -> Element:
    is_made = result.topic is not None and not judged.validate_only
    return Element(
        delta=_delta(judged, result, result.topic or "", shown) if is_made else NO_CHANGE,
        refusal=result.outcome.refusal,
        is_decision_only=result.outcome.refusal is not None or judged.validate_only,
        request=judged.audited,
    )


def _is_unknown(judged: Judged, result: Result, shown: Image) -> bool:
    """Whether a change that was carried out left a topic that only the cluster could tell of."""
    if judged.form.key not in CHOOSING or result.topic is None:
        return False
    return result.topic not in shown.topics or not result.is_shown(shown)


def _delta(judged: Judged, result: Result, name: str, shown: Image) -> Delta:
    """Return what a change has made of the topic of this name."""
    if judged.form.key == ApiKey.DELETE_TOPICS:
        return TopicMarked(name, NO_TOPIC_ID)  # a removal follows
    question, topic = result.judged.question, shown.topics.get(name)
    if question is not None and (topic is None or not result.is_shown(shown)):
        return question.delta  # where it is gone, others have deleted it since
    if topic is None:
        return TopicRemoved(name, NO_TOPIC_ID)
    if question is not None and judged.form.key == ApiKey.ALTER_PARTITION_REASSIGNMENTS:
        topic = with_moves_of(question.delta.evolve(topic) or topic, topic)
    return TopicBecomes.of(topic)


def _removal(topic: str) -> Element:
    return Element(TopicRemoved(topic, NO_TOPIC_ID), refusal=None, is_decision_only=False, request=None)


def _is_gone(name: str, image: Image, shown: Image) -> bool:
    """Whether a topic that is marked for deletion is no longer shown by the cluster."""
    marked, found = image.topics.get(name), shown.topics.get(name)
    return (
        marked is not None
        and marked.marked_for_deletion
        and (found is None or found.marked_for_deletion or found.topic_id != marked.topic_id)
    )


def _after(image: Image, elements: Sequence[Element]) -> Image:
    """Return the image with these elements in effect."""
    for element in elements:
        image = element.delta.apply(image)
    return image
