"""Records what became of requests that were judged: in the mirror, the audit log and the page.

Rule: what is recorded is what the cluster shows. Once it has answered, the topics that a request
has changed are read until they show the change, and only then is the request over for those that
wait for their turn. What the cluster does not show in time is recorded as the request would have
left it, but for what the cluster itself chooses: the ids and places of new topics and partitions.
The effect is unknown then, as it is without an answer, and a later reading shows it.
"""

import logging
from collections.abc import Sequence
from functools import partial

from ...admin.changes import Element, Outcome
from ...admin.recording.decisions import NodeDecisions
from ...admin.recording.requests import AuditedRequest
from ...cluster.delta import NO_CHANGE, Delta, TopicBecomes, TopicMarked, TopicRemoved
from ...cluster.entities import NO_TOPIC_ID, Topic
from ...cluster.image import Image
from ...network.serving.request_log import describe_unexpected_error
from ...process.observe.logs import about
from ...protocol.error_codes import ErrorCode
from .cluster_reader import NotKnownError
from .judge import Judge
from .judged import Effect, Judged, PassingRequest
from .mirror import Mirror
from .reading import with_moves_of

log = logging.getLogger("minicontroller.gateway")

PAUSES = (0.05,) * 20
"""The seconds after which a topic is read again that does not show a change yet: brokers learn of
it a moment after the controller.
"""
MORE_PAUSES = (0.5,) * 18
"""The further ones where the cluster has said that the change took effect."""
NO_ANSWER = "The cluster did not answer this part of the request."


class Records:
    """Completes the requests that were judged."""

    def __init__(self, mirror: Mirror, judge: Judge, decisions: NodeDecisions) -> None:
        self._mirror = mirror
        self._judge = judge
        self._decisions = decisions

    @property
    def has_log(self) -> bool:
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
            outcomes = _outcomes(judged, response)
            shown = await self._shown(judged, outcomes)
            self._record(judged, outcomes, shown)
        except Exception as error:  # noqa: BLE001 - the client was answered, and others are not to suffer
            text = describe_unexpected_error(error, judged.request)
            log.error("recording a request of %s failed:\n%s", judged.asked.policy_api, text, extra=about(judged.asked))  # noqa: TRY400 - its text says all, without secrets
            return
        finally:
            self._judge.answered(judged)
        if judged.audited is not None and self._mirror.recorder is not None:
            await self._mirror.recorder.wait_durable(judged.audited)

    async def _shown(self, judged: Judged, outcomes: Sequence[Outcome]) -> Image:
        """Return an image that shows the topics which the request has changed."""
        changed = [each for each in outcomes if _topic(judged, each) is not None]
        names = {each.change.resource for each in changed}
        certain = [each for each in changed if not each.is_in_doubt]
        if judged.form.effect is Effect.REMOVAL:
            self._note_gone(certain)
        if not names or judged.validate_only:
            return self._mirror.image
        pauses: tuple[float, ...] = PAUSES if judged.is_automatic else ()
        if certain:
            pauses = PAUSES + MORE_PAUSES
        awaited = changed if judged.is_automatic else certain
        try:
            return await self._mirror.look_until(
                names, lambda image: all(_is_shown(each, image) for each in awaited), pauses
            )
        except NotKnownError as error:
            log.warning(
                "the audit log has the expected state of the topics %s, because the gateway cannot read them: %s",
                ", ".join(sorted(names)[:5]),
                error,
            )
            return self._mirror.image

    def _note_gone(self, deleted: Sequence[Outcome]) -> None:
        """Note the topics that the cluster says are deleted, whatever its brokers show."""
        for each in deleted:
            topic = self._mirror.image.topics.get(each.change.resource)
            if topic is not None:
                self._mirror.gone(topic)

    def _record(self, judged: Judged, outcomes: Sequence[Outcome], shown: Image) -> None:
        before = self._mirror.image
        names = [_topic(judged, each) for each in outcomes]
        unshown = {
            name: partial(_is_shown, each)
            for name, each in zip(names, outcomes, strict=True)
            if name is not None and each.judgement is not None and not each.is_in_doubt and not _is_shown(each, shown)
        }
        for name, each in zip(names, outcomes, strict=True):
            if each.is_in_doubt and each.judgement is not None and name is not None and _is_shown(each, shown):
                each.is_in_doubt, each.is_late = False, not judged.is_automatic
            elif not judged.validate_only and _is_unknown(judged, each, shown):
                each.is_in_doubt = True
        elements = [_element(judged, each, shown) for each in outcomes]
        pairs = list(zip(elements, outcomes, strict=True))
        if judged.audited is not None:
            self._plan(judged, judged.audited, pairs)
        certain = [element for element, each in pairs if not each.is_in_doubt]
        self._mirror.completed(_after(before, certain), certain, {} if judged.validate_only else unshown)
        gone = [
            Element(TopicRemoved(each.topic, NO_TOPIC_ID))
            for each in certain
            if each.topic and _is_gone(each.topic, self._mirror.image, shown)
        ]
        if gone:
            self._mirror.completed(_after(self._mirror.image, gone), gone)
        self._mirror.in_doubt([element for element, each in pairs if each.is_in_doubt])
        self._decisions.record(judged.asked, outcomes, validate_only=judged.validate_only)

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


def _outcomes(judged: Judged, response: object | None) -> list[Outcome]:
    """Return what became of each part, or of some of its partitions, in the request's order."""
    passed = judged.passed
    found = [] if response is None else judged.form.outcomes(passed, response)
    answers = dict(zip(map(id, passed), found, strict=False))
    outcomes: list[Outcome] = []
    for each in judged.parts:
        if response is None or not each.is_passed:
            each.outcome.is_in_doubt = each.is_passed
            outcomes.append(each.outcome)
        else:
            outcomes += answers[id(each)] or [each.answered(ErrorCode.UNKNOWN_SERVER_ERROR, NO_ANSWER)]
    for outcome in outcomes:
        if response is not None and outcome.code == ErrorCode.REQUEST_TIMED_OUT:
            outcome.refusal, outcome.is_in_doubt = None, True
    return outcomes


def _topic(judged: Judged, outcome: Outcome) -> str | None:
    """Return the topic that may have another state now, if any."""
    if judged.form.effect is Effect.NONE or outcome.refusal is not None or outcome.change.kind != "topic":
        return None
    return outcome.change.resource or None


def _is_shown(outcome: Outcome, image: Image) -> bool:
    """Whether an image shows a change of a topic, as far as that is known. It is shown as well if
    others have changed the topic since.
    """
    name = outcome.change.resource
    now = image.topics.get(name)
    if outcome.judgement is None:
        return now is not None
    before = outcome.judgement.image.topics.get(name)
    if isinstance(outcome.delta, TopicBecomes):
        return has_become(outcome.delta.topic, before, now)
    return now is None or before is None or now.topic_id != before.topic_id


def has_become(after: Topic, before: Topic | None, now: Topic | None) -> bool:
    """Whether a topic has left the state before a change in everything that the change is about."""
    if before is None or before.topic_id != after.topic_id:  # it is created
        return now is not None and (before is None or before.topic_id == NO_TOPIC_ID or now.topic_id != before.topic_id)
    if now is None or now.topic_id != before.topic_id:
        return True
    keys = (key for key in {*before.configs, *after.configs} if before.configs.get(key) != after.configs.get(key))
    partitions = zip(before.partitions, after.partitions, now.partitions, strict=False)
    return (
        len(now.partitions) >= len(after.partitions)
        and all(now.configs.get(key) != before.configs.get(key) for key in keys)
        and all(shown.replicas != old.replicas for old, new, shown in partitions if new.replicas != old.replicas)
    )


def _element(judged: Judged, outcome: Outcome, shown: Image) -> Element:
    topic = _topic(judged, outcome)
    return Element(
        delta=_delta(judged, outcome, topic, shown) if topic is not None and not judged.validate_only else NO_CHANGE,
        refusal=outcome.refusal,
        is_decision_only=outcome.refusal is not None or judged.validate_only,
        request=judged.audited,
    )


def _is_unknown(judged: Judged, outcome: Outcome, shown: Image) -> bool:
    """Whether a change that was carried out left a topic that only the cluster could tell of."""
    topic = _topic(judged, outcome)
    if judged.form.effect is not Effect.CHOSEN or topic is None:
        return False
    return topic not in shown.topics or not _is_shown(outcome, shown)


def _delta(judged: Judged, outcome: Outcome, name: str, shown: Image) -> Delta:
    """Return what a change has made of the topic of this name."""
    if judged.form.effect is Effect.REMOVAL:
        return TopicMarked(name, NO_TOPIC_ID)  # a removal follows
    topic, is_known = shown.topics.get(name), outcome.judgement is not None
    if is_known and (topic is None or not _is_shown(outcome, shown)):
        return outcome.delta  # where it is gone, others have deleted it since
    if topic is None:
        return TopicRemoved(name, NO_TOPIC_ID)
    if is_known and outcome.change.reassignments is not None:
        topic = with_moves_of(outcome.delta.evolve(topic) or topic, topic)
    return TopicBecomes.of(topic)


def _is_gone(name: str, image: Image, shown: Image) -> bool:
    """Whether a topic that is marked for deletion is no longer shown by the cluster."""
    marked, found = image.topics.get(name), shown.topics.get(name)
    return (
        marked is not None
        and marked.marked_for_deletion
        and (found is None or found.marked_for_deletion or found.topic_id != marked.topic_id)
    )


def _after(image: Image, elements: Sequence[Element]) -> Image:
    for element in elements:
        image = element.delta.apply(image)
    return image
