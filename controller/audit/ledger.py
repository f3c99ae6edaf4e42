"""What the writer settles, as events in the order in which it settles them: one ledger for each reign of a controller.

Rule: the sequence is given where the order is decided, so that the log can be replayed: an event comes after all events whose effects its
decision saw, and what its decision saw besides is written into it. Nothing here waits; events are made elsewhere, of frozen values.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import trio

from ...policies.audit_event import Effect
from ...protocol.error_codes import ErrorCode
from ..cluster.image import Image, Topic
from ..cluster.jobs import Draft, Element
from ..errors import Refusal
from ..store.base import SessionExpired, StoreUnavailable
from . import records
from .log import AuditLog
from .records import NOTHING, Asked, Dated, Moment, Origin, Ruling

if TYPE_CHECKING:
    from ..context import RequestContext
    from ..handlers.changes import Change

Plan = Callable[[Draft], Awaitable[Sequence["Change"]]]

TOPICS_IN_A_CHUNK = 200


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class AuditedRequest:
    """One request on its way: its records, until all of them have their place in the log."""

    def __init__(self, ledger: "Ledger", number: int, context: "RequestContext", *, validate_only: bool) -> None:
        self.number = number
        self.context = context
        self.validate_only = validate_only
        self.waits = ledger.log.settings.always
        """Whether the answer waits for the disk."""
        self._open_records = 0
        self._ordinal = 0
        self._placed = trio.Event() if self.waits else None
        self._ledger = ledger

    def planned(self, plan: Plan, refused: Callable[[Refusal], Sequence["Change"]]) -> Plan:
        """The same plan, which leaves a record of each element where the writer finds it; all `refused` where it fails as a whole."""

        async def plan_and_record(draft: Draft) -> Sequence["Change"]:
            try:
                changes = await plan(draft)
            except (StoreUnavailable, SessionExpired):
                raise  # it will be planned again, or was never this controller's to decide
            except Exception as error:
                refusal = error if isinstance(error, Refusal) else Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
                self._record(draft, refused(refusal))
                raise
            self._record(draft, changes)
            return changes

        return plan_and_record

    def _record(self, draft: Draft, changes: Sequence["Change"]) -> None:
        once = changes if len(changes) == 1 else list({id(change): change for change in changes}.values())  # K4-D1
        asked = Asked(self.number, self.context, len(once), self.validate_only)
        self._open_records = len(once)
        unstaged: list[Record] = []
        last: Element | None = None
        for index, change in enumerate(once):
            record = Record(self, asked, index, change, draft)
            if change.element is not None:
                change.element.record = record
                change.element.records_before, unstaged = unstaged, []
                last = change.element
            else:
                unstaged.append(record)
        if last is not None:
            last.records_after = unstaged
        else:
            draft.notes = unstaged
        if not once and self._placed is not None:
            self._placed.set()

    def place(self, ordinal: int) -> None:
        self._ordinal = max(self._ordinal, ordinal)
        self._open_records -= 1
        if self._open_records == 0 and self._placed is not None:
            self._placed.set()

    async def wait_durable(self) -> None:
        """Where answers wait for the disk (`audit.flush=always`): until every decision of this request is safe."""
        if self._placed is not None:
            await self._placed.wait()
            await self._ledger.log.wait_durable(self._ordinal)


class Record:
    """One element that was planned, and what its decision was based on."""

    __slots__ = ("asked", "change", "disturbances", "image", "index", "judgement", "name", "request")

    def __init__(
        self,
        request: AuditedRequest,
        asked: Asked,
        index: int,
        change: "Change",
        draft: Draft,
    ) -> None:
        judgement = change.judgement
        self.request = request
        self.asked = asked
        self.index = index
        self.change = change
        self.judgement = judgement
        self.disturbances = draft.disturbances
        self.image: Image = draft.image if judgement is None or judgement.image is None else judgement.image
        """What the policy saw, or would have seen."""


class Ledger:
    """The writer's journal. Every method is called in the order of what happens."""

    def __init__(self, log: AuditLog, origin: Origin) -> None:
        self.log = log
        self.disturbances = 0
        self.created: dict[str, int] = {}
        """When topics were created, by the store: whoever loads topics leaves it here."""
        self._origin = origin
        self._sequence = 0
        self._requests = 0
        self._image: Image | None = None
        """The state after the last event; None before the first."""
        log.on_recovered = self._recovered

    def request(self, context: "RequestContext", *, validate_only: bool) -> AuditedRequest:
        """Raises Refusal while the log must not be decided past."""
        refusal = self.log.refusal
        if refusal is not None:
            self.log.refused_requests += 1
            raise Refusal(ErrorCode.POLICY_VIOLATION, refusal)
        self._requests += 1
        return AuditedRequest(self, self._requests, context, validate_only=validate_only)

    # ------------------------------------------------------------------ the writer's journal

    def restarted(self, image: Image) -> None:
        """Everything has been read anew. What is otherwise than told so far, others have written."""
        known, self._image = self._image, image
        if known is not None:
            for name in sorted({*known.topics, *image.topics}):
                if records.differs(before := known.topics.get(name), after := image.topics.get(name)):
                    self._observe(name, before, after, now_ms())
        self._snapshot(image, "elected" if known is None else "reread")

    def committed(self, before: Image, after: Image, elements: Sequence[Element]) -> None:
        """These took effect, in this order."""
        time_ms = now_ms()
        topics: dict[str, Topic | None] = {}
        names = [element.topic for element in elements if element.topic is not None]
        is_plain = len(set(names)) == len(names)
        self._image = before
        for element in elements:
            name = element.topic
            old = new = None
            if name is not None:
                old = topics[name] if name in topics else before.topics.get(name)
                new = after.topics.get(name) if is_plain else element.evolve(old)
            self._settle(element, (old, new), Effect.APPLIED, time_ms, topics)
        self._image = after

    def refused(self, element: Element) -> None:
        """The store refused it."""
        self._settle(element, self._unchanged(element), Effect.NONE, now_ms(), {})

    def doubted(self, image: Image | None, element: Element) -> None:
        """Whether it took effect was in doubt, and was settled by what is in the store; None if it cannot be known here."""
        old = new = self._unchanged(element)[0]
        effect = Effect.UNKNOWN
        if image is not None and element.refusal is None:
            effect = Effect.APPLIED
            new = None if element.topic is None else image.topics.get(element.topic)
        self._settle(element, (old, new), effect, now_ms(), {})
        if self._image is not None and element.topic is not None and new is not old:
            self._image = self._image.with_topics((new,) if new else (), () if new else (element.topic,))

    def noted(self, notes: Iterable[Any]) -> None:
        """Decisions without an effect of their own whose place is here."""
        time_ms = now_ms()
        for record in notes:
            self._place(record, Effect.NONE, time_ms, {})

    def _unchanged(self, element: Element) -> tuple[Topic | None, Topic | None]:
        return (None, None) if element.topic is None else self._standing(element.topic, {})

    def _settle(
        self,
        element: Element,
        states: tuple[Topic | None, Topic | None],
        effect: Effect,
        time_ms: int,
        topics: dict[str, Topic | None],
    ) -> None:
        old, new = states
        for record in element.records_before:
            self._place(record, Effect.NONE, time_ms, topics)
        if element.record is not None:
            self._place(element.record, effect, time_ms, topics, states)
        elif element.topic is not None and effect is Effect.APPLIED and records.differs(old, new):
            if new is None:
                self._append(time_ms, records.removal, element.topic, self._dated(element.topic, old))
                self.created.pop(element.topic, None)
            else:
                self._observe(element.topic, old, new, time_ms)
        if element.topic is not None:
            topics[element.topic] = new
        for record in (*element.records_after, *element.notes):
            self._place(record, Effect.NONE, time_ms, topics)

    # ------------------------------------------------------------------ events

    def _place(
        self,
        record: Record,
        effect: Effect,
        time_ms: int,
        topics: dict[str, Topic | None],
        states: tuple[Topic | None, Topic | None] | None = None,
    ) -> None:
        change, request = record.change, record.request
        old, new = states if states is not None else self._standing(change.topic, topics)
        if change.kind != "topic":
            old = new = None
        elif change.element is not None and change.element.topic is None:
            old, new = self._standing(change.topic, topics)
        refusal = change.refusal or (None if change.element is None else change.element.refusal)
        before = self._dated(change.topic, old)
        if new is not None and (old is None or old.topic_id != new.topic_id):
            self.created[change.topic] = time_ms
        ruling = Ruling(
            record.asked,
            record.index,
            change.kind,
            change.topic,
            record.judgement,
            change.operations,
            len(record.image.brokers),
            effect if change.element is not None else Effect.APPLIED if change.is_done else Effect.NONE,
            ErrorCode.NONE if refusal is None else refusal.code,
            None if refusal is None else refusal.message,
            int((trio.current_time() - request.context.arrived) * 1e6),
            self._assumed(record, topics) if record.judgement and record.disturbances != self.disturbances else (),
        )
        if record.judgement is not None:
            record.judgement.image = None  # else the log would keep every image until it is written
        request.place(self._append(time_ms, records.decision, ruling, before, self._dated(change.topic, new)))
        change.sequence = self._sequence

    def _standing(self, name: str, topics: dict[str, Topic | None]) -> tuple[Topic | None, Topic | None]:
        """The topic as it is at this point of the log, twice: nothing changes it."""
        known = self._image.topics if self._image is not None else {}
        topic = topics[name] if name in topics else known.get(name)
        return topic, topic

    def _assumed(self, record: Record, topics: dict[str, Topic | None]) -> tuple[tuple[str, Dated], ...]:
        """What was planned did not all come to be, or not in its order: where the decision saw what the log does not tell."""
        seen = record.image.topics
        names = {*seen, *(self._image.topics if self._image is not None else ()), *topics}
        return tuple(
            (name, self._dated(name, seen.get(name)))
            for name in sorted(names)
            if records.differs(seen.get(name), self._standing(name, topics)[0])
        )

    def _observe(self, name: str, before: Topic | None, after: Topic | None, time_ms: int) -> None:
        old = NOTHING if before is None else self._dated(name, before)
        self._append(time_ms, records.observed, name, old, self._dated(name, after))
        if after is None:
            self.created.pop(name, None)

    def _dated(self, name: str, topic: Topic | None) -> Dated:
        return NOTHING if topic is None else Dated(topic, self.created.get(name))

    def _snapshot(self, image: Image, reason: str) -> None:
        time_ms, names = now_ms(), sorted(image.topics)
        self._append(time_ms, records.snapshot_begin, reason, image)
        for first in range(0, len(names), TOPICS_IN_A_CHUNK):
            chunk = [(name, self._dated(name, image.topics[name])) for name in names[first : first + TOPICS_IN_A_CHUNK]]
            self._append(time_ms, records.snapshot_topics, chunk)
        self._append(time_ms, records.snapshot_end, len(names))

    def _recovered(self) -> None:
        """Events were lost: said so, and the state told whole, so that a replay can begin anew."""
        losses = [loss for loss in self.log.take_losses() if loss.epoch == self._origin.epoch]
        for loss in losses:
            self._append(now_ms(), records.dropped, loss.first_sequence, loss.last_sequence, loss.reason)
        if losses and self._image is not None:
            self._snapshot(self._image, "recovered")

    def _append(self, time_ms: int, make: Callable[..., Any], *arguments: Any) -> int:
        self._sequence += 1
        moment = Moment(self._origin, self._sequence, time_ms)
        return self.log.append(self._origin.epoch, self._sequence, make, moment, *arguments)
