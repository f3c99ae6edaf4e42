"""What the writer settles, as events in the order in which it settles them: one ledger for each
reign of a controller.

Rule: the sequence is given where the order is decided, so that the log can be replayed: an event
comes after all events whose effects its decision saw, and what its decision saw besides is written
into it. Nothing here waits. A decision is made into its line at once, while all that it is made of
is at hand: to keep it for a thread, which needs the interpreter as well, cost more than twice as
much.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from ...audit.event import AuditEvent, Effect, NamedState, State
from ...audit.lines import encode_line
from ...protocol.error_codes import ErrorCode
from ..active.jobs import Element
from ..clock import now_ms
from ..errors import Refusal
from ..metadata.image import Image, Topic
from . import records
from .log import AuditLog
from .records import Moment, Origin
from .requests import AuditedRequest, Record

if TYPE_CHECKING:
    from ..requests.context import RequestContext

TOPICS_IN_A_CHUNK = 200
BYTES_IN_A_CHUNK = 1 << 20
"""About as many, and one topic at least: lines have their limit."""
BYTES_OF_A_REPLICA = 12
BYTES_OF_A_CHARACTER = 6
"""At most, in JSON."""


class Turn(msgspec.Struct, gc=False):
    """One call of the writer: all events that it tells of carry one time."""

    time_ms: int
    """Since 1970."""
    seconds: float
    """By trio's clock."""
    topics: dict[str, Topic | None] = {}
    """As the events of this turn leave them, where that is not as in the image."""


def _effect(element: Element) -> Effect:
    """Return what an element has changed. One that writes nothing may still be done, by the node
    that received the request.
    """
    record = element.record
    if element.is_decision_only and not (record is not None and record.change is not None and record.change.is_done):
        return Effect.NONE
    return Effect.APPLIED if element.refusal is None else Effect.NONE


def _chunks(image: Image) -> Iterator[list[Topic]]:
    """Divide the topics of an image, sorted by name, into lists that fit into a line each."""
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
    """Estimate the bytes of a topic in a snapshot's event."""
    configs = sum(len(key) + len(value) for key, value in topic.configs.items()) if topic.configs else 0
    return len(topic.partitions) * topic.replication_factor * BYTES_OF_A_REPLICA + configs * BYTES_OF_A_CHARACTER


def _turn() -> Turn:
    return Turn(now_ms(), trio.current_time())


class Ledger:
    """The writer's journal for the audit log. Its methods are called in the order of
    what happens.
    """

    def __init__(self, log: AuditLog, origin: Origin) -> None:
        self.log = log
        self.answers_wait = log.settings.always
        """Until what they tell is safe."""
        self.disturbances = 0
        self.created: dict[str, int] = {}
        """When topics were created, by the store: whoever loads topics leaves it here."""
        self._origin = origin
        self._sequence = 0
        self._requests = 0
        self._image: Image | None = None
        """The state after the last event; None before the first."""
        self._disturbed: dict[str, int] = {}
        """Topics of which something that was planned did not come to be, with the number of the
        last disturbance.
        """
        log.on_recovered = self._recovered

    def request(self, context: "RequestContext", *, validate_only: bool) -> AuditedRequest:
        """Begin to record a request. Raises Refusal while the audit log does not allow changes."""
        refusal = self.log.refusal
        if refusal is not None:
            self.log.refused_requests += 1
            raise Refusal(ErrorCode.POLICY_VIOLATION, refusal)
        self._requests += 1
        return AuditedRequest(self._requests, context, validate_only)

    async def wait_durable(self, request: AuditedRequest) -> None:
        """Wait until each decision of the request is on the disk or dropped
        (`audit.on.failure=drop`), if answers wait for that.
        """
        if self.answers_wait:
            await request.wait_placed()
            await self.log.wait_durable(request.ordinal)

    # ------------------------------------------------------------------ the writer's journal

    def disturbed(self, topics: Collection[str]) -> None:
        """Note that plans for these topics did not come true; a decision that rested on one tells
        what it had assumed.
        """
        self.disturbances += 1
        self._disturbed.update(dict.fromkeys(topics, self.disturbances))

    def restarted(self, image: Image) -> None:
        """Record an image that was read anew: what differs from the log so far was written by
        others.
        """
        turn = _turn()
        known, self._image = self._image, image
        if known is not None:
            different = sorted(
                name
                for name in {*known.topics, *image.topics}
                if records.differs(known.topics.get(name), image.topics.get(name))
            )
            self.disturbed(different)
            for name in different:
                self._observe(name, known.topics.get(name), image.topics.get(name), turn)
        self._snapshot(image, "elected" if known is None else "reread")

    def committed(self, before: Image, after: Image, elements: Sequence[Element]) -> None:
        """Record the settled elements in this order: applied, refused, or decisions that write
        nothing.
        """
        turn = _turn()
        names = [element.topic for element in elements if element.topic is not None]
        is_plain = len(set(names)) == len(names)
        self._image = before
        for element in elements:
            name = element.topic
            old = new = None
            if name is not None:
                old = turn.topics[name] if name in turn.topics else before.topics.get(name)
                if element.refusal is not None:
                    new = old
                else:
                    new = after.topics.get(name) if is_plain else element.evolve(old)
            self._settle(element, _effect(element), old, new, turn)
        self._image = after

    def doubted(self, image: Image | None, element: Element) -> None:
        """Record an element whose commit was in doubt, by the image that was read afterwards; with
        None its effect is unknown.
        """
        turn = _turn()
        old = new = self._unchanged(element, turn)
        effect = Effect.UNKNOWN
        if image is not None and element.refusal is None:
            effect = Effect.APPLIED
            new = None if element.topic is None else image.topics.get(element.topic)
        self._settle(element, effect, old, new, turn)
        if self._image is not None and element.topic is not None and new is not old:
            self._image = self._image.with_topics((new,) if new else (), () if new else (element.topic,))

    def _unchanged(self, element: Element, turn: Turn) -> Topic | None:
        return None if element.topic is None else self._standing(element.topic, turn)

    def _settle(self, element: Element, effect: Effect, old: Topic | None, new: Topic | None, turn: Turn) -> None:
        if element.record is not None:
            self._place(element, effect, old, new, turn)
        elif element.topic is not None and effect is Effect.APPLIED and records.differs(old, new):
            if new is None:
                self._append(turn, self._removal, element.topic, old)
                self.created.pop(element.topic, None)
            else:
                self._observe(element.topic, old, new, turn)
        if element.topic is not None:
            turn.topics[element.topic] = new

    # ------------------------------------------------------------------ events

    def _place(self, element: Element, effect: Effect, old: Topic | None, new: Topic | None, turn: Turn) -> None:
        """Record a decision, with its topic as it was (`old`) and is (`new`)."""
        record: Record = element.record
        change, judgement = record.change, record.judgement
        assert change is not None
        if change.kind != "topic":
            old = new = None
        elif element.topic is None:
            old = new = self._standing(change.resource, turn)
        moment = self._next(turn)
        try:
            before = after = self._state_if_any(old)
            if new is None:
                after = None
            elif new is not old:
                if old is None or old.topic_id != new.topic_id:
                    self.created[new.name] = turn.time_ms
                after = self._state(new)
            event: AuditEvent = records.decision(
                moment,
                record,
                change,
                effect=effect,
                refusal=change.refusal or element.refusal,
                before=before,
                after=after,
                assumed=self._assumed(record.image, record.disturbances, turn)
                if judgement is not None and record.disturbances != self.disturbances
                else (),
                latency_us=int((turn.seconds - record.request.context.arrived) * 1e6),
            )
        except Exception as error:  # noqa: BLE001 - see `records.told`, which costs too much here
            event = records.untold(moment, error)
        record.placed(self.log.append(moment.origin.epoch, moment.sequence, encode_line(event)), moment.sequence)

    def _standing(self, name: str, turn: Turn) -> Topic | None:
        """Return the topic as it is at this point of the log."""
        if name in turn.topics:
            return turn.topics[name]
        return None if self._image is None else self._image.topics.get(name)

    def _assumed(self, seen: Image, since: int, turn: Turn) -> tuple[NamedState, ...]:
        """Return the topics that a decision saw otherwise than the log tells, because earlier plans
        did not come true.
        """
        return tuple(
            NamedState(topic=name, state=self._state_if_any(seen.topics.get(name)))
            for name in sorted(name for name, number in self._disturbed.items() if number > since)
            if records.differs(seen.topics.get(name), self._standing(name, turn))
        )

    def _observe(self, name: str, before: Topic | None, after: Topic | None, turn: Turn) -> None:
        self._append(turn, self._observed, name, before, after)
        if after is None:
            self.created.pop(name, None)

    def _removal(self, moment: Moment, name: str, before: Topic | None) -> AuditEvent:
        return records.removal(moment, name, self._state_if_any(before))

    def _observed(self, moment: Moment, name: str, before: Topic | None, after: Topic | None) -> AuditEvent:
        return records.observed(moment, name, self._state_if_any(before), self._state_if_any(after))

    def _state(self, topic: Topic) -> State:
        return records.state(topic, self.created.get(topic.name))

    def _state_if_any(self, topic: Topic | None) -> State | None:
        return None if topic is None else self._state(topic)

    def _snapshot(self, image: Image, reason: str) -> None:
        """Record all topics. The log's thread makes the events, so that many topics do not stop the
        event loop.
        """
        turn = _turn()
        self._append(turn, records.snapshot_begin, reason, image)
        for chunk in _chunks(image):
            topics = [(topic, self.created.get(topic.name)) for topic in chunk]
            moment = self._next(turn)
            later = partial(records.told, records.snapshot_topics, moment, topics)
            self.log.append(moment.origin.epoch, moment.sequence, later)
        self._append(turn, records.snapshot_end, len(image.topics))

    def _recovered(self) -> None:
        """Record that events were lost, and all topics, so that a replay can begin there."""
        losses = [loss for loss in self.log.take_losses() if loss.epoch == self._origin.epoch]
        with self.log.unbounded():  # else what is lost would grow by what is told of it
            for loss in losses:
                self._append(_turn(), records.dropped, loss.first_sequence, loss.last_sequence, loss.reason)
            if losses and self._image is not None:
                self._snapshot(self._image, "recovered")

    def _append(self, turn: Turn, make: Callable[..., AuditEvent], *values: Any) -> None:
        moment = self._next(turn)
        self.log.append(moment.origin.epoch, moment.sequence, encode_line(records.told(make, moment, *values)))

    def _next(self, turn: Turn) -> Moment:
        self._sequence += 1
        return Moment(self._origin, self._sequence, turn.time_ms)
