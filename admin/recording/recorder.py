"""Records elements that the writer completes as events of the audit log. There is one recorder per
controller epoch.

The recorder observes the writer. It numbers an event where the order is decided, so that the log
can be replayed: an event comes after all events whose effects its decision saw, and anything else
that the decision saw is written into it. Nothing here waits. A decision is encoded at once: to keep
its parts for the thread of the log, which needs the interpreter lock as well, took more than twice
as much time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import trio

from ...audit.event import AuditEvent, Effect, NamedState, RecordedState
from ...audit.lines import encode_line
from ...clock import now_ms
from ...cluster.entities import Topic
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...protocol.error_codes import ErrorCode
from ..changes import Element, Outcome
from ..description import RequestDescription
from . import records
from .log import AuditLog
from .records import EventOrigin, Moment
from .requests import NO_IMAGE, AuditedRequest, UndonePlans

TOPICS_IN_A_CHUNK = 200
BYTES_IN_A_CHUNK = 1 << 20
"""The estimated size in bytes of the topics in one event of a snapshot, because a line of the log
is bounded. An event holds at least one topic.
"""
MOST_DENIALS = 10
"""How many elements of a request have an event each although a permission for them is lacking.
Those behind them share one, because whoever may do nothing could fill the log otherwise.
"""
BYTES_OF_A_REPLICA = 12
BYTES_OF_A_CHARACTER = 6
"""The most bytes that JSON needs for one character."""


class ObserverCall(msgspec.Struct, gc=False):
    """One call by the writer. All events that it makes have the same time."""

    time_ms: int
    """The time in milliseconds since 1970."""
    seconds: float
    """The time in seconds by trio's clock."""
    topics: dict[str, Topic | None] = {}
    """The topics after the events of this call so far, if they differ from the image."""
    denials: list[Element] = []
    """Elements of one request, each behind the other, that are to share an event."""


def _effect(element: Element) -> Effect:
    """Return whether an element changed anything. An element that writes nothing may have been
    carried out by the node that received the request.
    """
    if element.refusal is not None:
        return Effect.NONE
    if element.is_decision_only and not (element.request is not None and element.request.is_done(element)):
        return Effect.NONE
    return Effect.APPLIED


def _chunks(image: Image) -> Iterator[list[Topic]]:
    """Divide the topics of an image, sorted by name, into lists that fit into one line each."""
    chunk, size = list[Topic](), 0
    for name in sorted(image.topics):
        topic = image.topics[name]
        size += _size(topic)
        if chunk and (size > BYTES_IN_A_CHUNK or len(chunk) == TOPICS_IN_A_CHUNK):
            yield chunk
            chunk, size = [], _size(topic)
        chunk.append(topic)
    if chunk:
        yield chunk


def _size(topic: Topic) -> int:
    """Estimate the bytes of a topic in an event of a snapshot."""
    configs = sum(len(key) + len(value) for key, value in topic.configs.items()) if topic.configs else 0
    return len(topic.partitions) * topic.replication_factor * BYTES_OF_A_REPLICA + configs * BYTES_OF_A_CHARACTER


def _call() -> ObserverCall:
    return ObserverCall(now_ms(), trio.current_time())


class AuditRecorder:
    """Observes the writer and records its elements in the audit log, in the order of its calls."""

    def __init__(self, log: AuditLog, origin: EventOrigin) -> None:
        self.log = log
        self.answers_wait = log.settings.always
        """Whether an answer waits until its decisions are durable in the log."""
        self.created: dict[str, int] = {}
        """The times at which loaded topics were created, by name, in milliseconds since 1970 by the
        store's clock.
        """
        self._origin = origin
        self._sequence = 0
        self._requests = 0
        self._image: Image | None = None
        """The state after the last event; None before the first."""
        self._undone = UndonePlans()
        log.on_recovered(self._recovered)

    def request(self, context: RequestDescription, *, validate_only: bool) -> AuditedRequest:
        """Begin to record a request. Raises Refusal while the audit log does not allow changes."""
        refusal = self.log.refusal
        if refusal is not None:
            self.log.refused_requests += 1
            raise Refusal(ErrorCode.POLICY_VIOLATION, refusal)
        self._requests += 1
        return AuditedRequest(self._requests, context, validate_only, self._undone)

    async def wait_durable(self, request: AuditedRequest) -> None:
        """If answers wait for the log, wait until each decision of the request is durable or
        dropped (`audit.on.failure=drop`).
        """
        if self.answers_wait:
            await request.wait_placed()
            await self.log.wait_durable(request.ordinal)

    # ------------------------------------------------------------------ observing the writer

    def undone(self, elements: Iterable[Element]) -> None:
        """Note elements that will not take effect as plans saw them. The event of a decision that
        rested on one says what it had assumed.
        """
        self.seen_otherwise(element.topic for element in elements if element.topic is not None)

    def seen_otherwise(self, topics: Iterable[str]) -> None:
        """Note topics that plans which are under way have seen in a state that the log will not
        show before their events.
        """
        self._undone.add(set(topics))

    def forget_before(self, count: int) -> None:
        """Forget such topics that no request under way can have seen: the oldest began at this
        count.
        """
        self._undone.forget_before(count)

    def reloaded(self, image: Image) -> None:
        """Record an image that was read again. Its differences from the log so far were written by
        other processes.
        """
        known = self._image
        if known is None:
            self._image = image
        else:
            self.observed(image)
        self._snapshot(image, "elected" if known is None else "reread")

    def observed(self, image: Image) -> None:
        """Record the differences of an image from the log so far, which others have made."""
        call = _call()
        known, self._image = self._image or NO_IMAGE, image
        different = sorted(
            name
            for name in {*known.topics, *image.topics}
            if records.differs(known.topics.get(name), image.topics.get(name))
        )
        self._undone.add(different)
        for name in different:
            self._observe(name, known.topics.get(name), image.topics.get(name), call)

    def completed(self, before: Image, after: Image, elements: Sequence[Element]) -> None:
        """Record completed elements in this order. Each was applied or refused, or is a decision
        that writes nothing.
        """
        call = _call()
        names = [element.topic for element in elements if element.topic is not None]
        is_plain = len(set(names)) == len(names)
        self._image = before
        for element in elements:
            if element.is_decision_only and self._joins_denials(element, call):
                continue
            self._record_denials(call)
            name = element.topic
            old = new = None
            if name is not None:
                old = call.topics[name] if name in call.topics else before.topics.get(name)
                if element.refusal is not None:
                    new = old
                else:
                    new = after.topics.get(name) if is_plain else element.delta.evolve(old)
            self._record(element, _effect(element), old, new, call)
        self._record_denials(call)
        self._image = after

    def resolved(self, image: Image | None, element: Element) -> None:
        """Record an element whose commit was in doubt, by the image that was read afterwards.
        Without an image its effect is unknown.
        """
        call = _call()
        name = element.topic
        old = new = None if name is None else self._standing(name, call)
        effect = Effect.UNKNOWN
        if image is not None and element.refusal is None:
            effect = Effect.APPLIED
            new = None if name is None else image.topics.get(name)
        self._record(element, effect, old, new, call)
        if self._image is not None and name is not None and new is not old:
            self._image = self._image.with_topics((new,) if new else (), () if new else (name,))

    def _record(
        self, element: Element, effect: Effect, old: Topic | None, new: Topic | None, call: ObserverCall
    ) -> None:
        """Record an element, with its topic before (`old`) and after it (`new`)."""
        request = element.request
        held = None if request is None else request.take(element)
        if request is not None and held is not None:
            further = request.take_further(element)
            self._record_decision(element, (request, *held), effect, (old, new), call, further_denials=len(further))
            for outcome in further:
                request.placed(outcome, request.ordinal, held[1].sequence)
        elif element.topic is not None and effect is Effect.APPLIED and records.differs(old, new):
            if new is None:
                self._append(call, self._removal, element.topic, old)
                self.created.pop(element.topic, None)
            else:
                self._observe(element.topic, old, new, call)
        if element.topic is not None:
            call.topics[element.topic] = new

    # ------------------------------------------------------------------ denials

    def _joins_denials(self, element: Element, call: ObserverCall) -> bool:
        """Return whether an element shares an event with other elements that were denied, which is
        recorded later.
        """
        request = element.request
        if request is None or not request.has_next_denial(element):
            return False
        request.denials += 1
        if request.denials <= MOST_DENIALS:
            return False
        if call.denials and call.denials[0].request is not request:
            self._record_denials(call)
        call.denials.append(element)
        return True

    def _record_denials(self, call: ObserverCall) -> None:
        """Record the elements that share an event, if there are any."""
        if not call.denials:
            return
        (first, *others), call.denials = call.denials, []
        request = first.request
        held = None if request is None else request.take(first)
        assert request is not None and held is not None
        outcomes = list(request.take_further(first))
        for each in others:
            taken = request.take(each)
            outcomes += [*([] if taken is None else [taken[1]]), *request.take_further(each)]
        self._record_decision(first, (request, *held), Effect.NONE, (None, None), call, further_denials=len(outcomes))
        for outcome in outcomes:
            request.placed(outcome, request.ordinal, held[1].sequence)

    # ------------------------------------------------------------------ events

    def _record_decision(
        self,
        element: Element,
        held: tuple[AuditedRequest, int, Outcome],
        effect: Effect,
        topic: tuple[Topic | None, Topic | None],
        call: ObserverCall,
        *,
        further_denials: int = 0,
    ) -> None:
        (request, index, outcome), (old, new) = held, topic
        if outcome.change.kind != "topic":
            old = new = None
        elif element.topic is None:
            old = new = self._standing(outcome.change.resource, call)
        moment = self._next(call)
        try:
            before = after = self._state_if_any(old)
            if new is None:
                after = None
            elif new is not old:
                if old is None or old.topic_id != new.topic_id:
                    self.created[new.name] = call.time_ms
                after = self._state(new)
            event: AuditEvent = records.decision(
                moment,
                request,
                index,
                outcome,
                effect=effect,
                refusal=outcome.refusal or element.refusal,
                before=before,
                after=after,
                assumed=self._assumed(request, outcome, call),
                latency_us=int((call.seconds - request.context.arrived) * 1e6),
                further_denials=further_denials,
            )
        except Exception as error:  # noqa: BLE001 - `records.made` would handle it, but costs too much here
            event = records.not_made(moment, error)
        request.placed(
            outcome, self.log.append(moment.origin.epoch, moment.sequence, encode_line(event)), moment.sequence
        )

    def _standing(self, name: str, call: ObserverCall) -> Topic | None:
        """Return a topic as it is at this point of the log."""
        if name in call.topics:
            return call.topics[name]
        return None if self._image is None else self._image.topics.get(name)

    def _assumed(self, request: AuditedRequest, outcome: Outcome, call: ObserverCall) -> tuple[NamedState, ...]:
        """Return the topics that a decision saw in a state that the log does not show, because
        earlier plans were undone.
        """
        if outcome.judgement is None or request.undone_count == self._undone.count:
            return ()
        seen = outcome.judgement.image
        return tuple(
            NamedState(topic=name, state=self._state_if_any(seen.topics.get(name)))
            for name in self._undone.since(request.undone_count)
            if records.differs(seen.topics.get(name), self._standing(name, call))
        )

    def _observe(self, name: str, before: Topic | None, after: Topic | None, call: ObserverCall) -> None:
        self._append(call, self._observed, name, before, after)
        if after is None:
            self.created.pop(name, None)

    def _removal(self, moment: Moment, name: str, before: Topic | None) -> AuditEvent:
        return records.removal(moment, name, self._state_if_any(before))

    def _observed(self, moment: Moment, name: str, before: Topic | None, after: Topic | None) -> AuditEvent:
        return records.observed(
            moment,
            name,
            self._state_if_any(before),
            self._state_if_any(after),
            records.continues_reassignment(before, after),
        )

    def _state(self, topic: Topic) -> RecordedState:
        return records.state(topic, self.created.get(topic.name))

    def _state_if_any(self, topic: Topic | None) -> RecordedState | None:
        return None if topic is None else self._state(topic)

    def _snapshot(self, image: Image, reason: str) -> None:
        """Record all topics. The log's thread makes the events, so that many topics do not stop the
        event loop.
        """
        call = _call()
        self._append(call, records.snapshot_begin, reason, image)
        for chunk in _chunks(image):
            topics = [(topic, self.created.get(topic.name)) for topic in chunk]
            moment = self._next(call)
            later = partial(records.made, records.snapshot_topics, moment, topics)
            self.log.append(moment.origin.epoch, moment.sequence, later)
        self._append(call, records.snapshot_end, len(image.topics))

    def _recovered(self) -> None:
        """Record that events were lost, and then all topics, so that a replay can begin there."""
        losses = [loss for loss in self.log.take_losses() if loss.epoch == self._origin.epoch]
        with self.log.unbounded():  # otherwise these events could be lost, too
            for loss in losses:
                self._append(_call(), records.dropped, loss.first_sequence, loss.last_sequence, loss.reason)
            if losses and self._image is not None:
                self._snapshot(self._image, "recovered")

    def _append(self, call: ObserverCall, make: Callable[..., AuditEvent], *values: Any) -> None:
        moment = self._next(call)
        self.log.append(moment.origin.epoch, moment.sequence, encode_line(records.made(make, moment, *values)))

    def _next(self, call: ObserverCall) -> Moment:
        self._sequence += 1
        return Moment(self._origin, self._sequence, call.time_ms)
