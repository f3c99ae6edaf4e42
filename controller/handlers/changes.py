"""Carries out the changes of a request: plan, commit, wait. Each API brings its plan, and says when
a change is complete.

A change is answered with success only when its commit is in the store and the nodes that
`metadata.completion` names show it. A change that is still not planned when its timeout ends or its
client disconnects is dropped. With a timeout of 0 or less every valid change is carried out and
answered REQUEST_TIMED_OUT, as in Kafka.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import trio

from ...admin.changes import Outcome
from ...admin.recording.requests import DENIALS, AuditedRequest
from ...admin.requested_changes import requested_changes
from ...cluster.errors import Refusal
from ...network.serving.context import RequestContext
from ...process import steps
from ...process.steps import Steps
from ...protocol.error_codes import ErrorCode
from ...store.base import SessionExpired, StoreUnavailable
from ..active.active_controller import ActiveController
from ..active.jobs import ControllerMoved, Draft, StagedElement, WriterJob, decision
from ..active.writer import Writer
from .controller_port import ControllerPort
from .parts import Parts

NOT_BEGUN = "The change was not begun in time and will not be made."
ELEMENTS_OF_DENIALS = 10
"""So many denied changes of one request have an element each."""
IN_DOUBT = "The outcome was not known in time: the change may still be made."


async def carry_out(
    port: ControllerPort,
    context: RequestContext,
    request: Any,
    parts: Parts[Any],
    *,
    timeout_ms: int,
    validate_only: bool = False,
) -> Sequence[Outcome]:
    """Plan and commit the changes of a request, and wait for `timeout_ms` at most until they are
    complete. Raises REQUEST_TIMED_OUT if the time is over before the
    outcome of any change is known, and NOT_CONTROLLER if another controller was elected.
    """
    controller = port.controller.serving()
    audited: list[AuditedRequest] = []
    if controller.recorder is not None:
        audited.append(controller.recorder.request(context, validate_only=validate_only))
    patience_ms = timeout_ms if timeout_ms > 0 else port.request_timeout_ms
    deadline = context.arrived + patience_ms / 1000
    is_carried_out = False
    completed: set[int] = set()
    try:
        with trio.move_on_at(deadline):
            refused, spent = partial(refused_whole, context, request), partial(_spend, port, context)
            async with port.writes.turn(context.requester.principal):
                under_way = _PartsUnderWay(controller.writer, parts, audited, refused, spent)
                await under_way.carry_out(in_any_case=timeout_ms <= 0)
            is_carried_out = True
            if timeout_ms > 0 and not validate_only:
                await _wait_until_complete(port, context, controller, parts.outcomes, completed)
    except Exception as error:
        if audited and audited[-1].is_refused:
            await _wait_recorded(controller, audited, deadline)
        if not (parts.outcomes and isinstance(error, Refusal) and error.code == ErrorCode.NOT_CONTROLLER):
            raise  # a part was carried out, so no other controller may be asked for it again
    outcomes = parts.outcomes
    if not is_carried_out:
        reason = IN_DOUBT if parts.is_planned else NOT_BEGUN
        refusal = Refusal(ErrorCode.REQUEST_TIMED_OUT, reason=reason)
        if not outcomes:
            raise refusal
        completed.update(_complete_by_now(port, controller, outcomes))
        outcomes = parts.all_outcomes(refusal)
    await _wait_recorded(controller, audited, deadline)
    late = [outcome for index, outcome in enumerate(outcomes) if outcome.is_carried_out and index not in completed]
    for outcome in late:
        outcome.is_late = timeout_ms > 0
    port.decisions.record(context, outcomes, validate_only=validate_only)
    for outcome in late:
        outcome.refusal = Refusal(ErrorCode.REQUEST_TIMED_OUT)
    if completed and context.forwarded and not _was_waited_for(port, controller, context.origin.received_node):
        context.notes.update_number = controller.expect_update(context.origin.received_node)
    return outcomes


def _spend(port: ControllerPort, context: RequestContext, count: int) -> None:
    """Count bytes that a part of a request writes to the store."""
    wait_ms = port.writes.take(context.requester.principal, count) if count else 0
    context.notes.throttle_ms = max(wait_ms, context.notes.throttle_ms)


def _was_waited_for(port: ControllerPort, controller: ActiveController, broker_id: int) -> bool:
    """Return whether the wait for completion included this broker. A node that is not registered
    still forwards requests, but no change waits for it.
    """
    return port.completion_is_cluster_wide and controller.image.is_live(broker_id)


class _PartsUnderWay:
    """The parts of one request that are in the writer's queue or being committed; `audited` gets an
    entry for each part where there is an audit log. If the parts overlap, each is put into the
    queue when the one before it is planned, and otherwise when that is carried out.
    """

    def __init__(
        self,
        writer: Writer,
        parts: Parts[Any],
        audited: list[AuditedRequest],
        refused: Callable[[Refusal], Sequence[Outcome]],
        spent: Callable[[int], None] = lambda _count: None,
    ) -> None:
        self._spent = spent
        self._writer = writer
        self._parts = parts
        self._audited = audited
        self._refused = refused
        self._jobs: deque[WriterJob] = deque()
        """The jobs of these parts, which refer to this object and leave it when they are done."""
        self._begun = 0
        """The number of parts so far."""

    async def carry_out(self, *, in_any_case: bool) -> None:
        """Plan and commit one part after the other. Raises NOT_CONTROLLER."""
        try:
            while True:
                if not self._jobs:
                    with _not_controller():
                        self._begin()
                outcomes = await committed(self._writer, self._jobs[0], in_any_case=in_any_case)
                self._jobs.popleft()
                if self._parts.carried_out(outcomes):
                    return
        finally:
            for job in self._jobs:
                self._writer.queue.leave(job, in_any_case=in_any_case)
            self._jobs.clear()

    def _begin(self) -> None:
        """Put the next part into the queue. Raises ControllerMoved."""
        if self._audited and self._begun:
            self._audited.append(self._audited[-1].next_part())
        part = self._audited[-1] if self._audited else None
        self._jobs.append(self._writer.submit(partial(self._planned, self._begun, part), request=part))
        self._begun += 1

    async def _planned(self, number: int, part: AuditedRequest | None, draft: Draft) -> Sequence[Outcome]:
        outcomes = await _decided(self._parts, number, part, self._refused, draft)
        self._spent(sum(element.weight for element in draft.elements))
        if self._parts.overlap and self._parts.elements_left and self._begun == number + 1:
            with suppress(ControllerMoved):  # which is raised where the part is waited for
                self._begin()
        return outcomes


@contextmanager
def _not_controller() -> Iterator[None]:
    """Raise NOT_CONTROLLER where the writer says that another controller was elected."""
    try:
        yield
    except ControllerMoved:
        raise Refusal(
            ErrorCode.NOT_CONTROLLER, reason="Another controller was elected before the change was carried out."
        ) from None


async def committed(writer: Writer, job: WriterJob, *, in_any_case: bool) -> Sequence[Outcome]:
    """Return the changes of a job once the store has accepted or refused them. Raises
    NOT_CONTROLLER.
    """
    with _not_controller():
        await writer.wait_done(job, in_any_case=in_any_case)
    outcomes: Sequence[Outcome] = job.result
    for outcome in outcomes:
        if outcome.element is not None and outcome.element.refusal is not None:
            outcome.refusal = outcome.element.refusal
    return outcomes


async def _wait_recorded(controller: ActiveController, audited: Sequence[AuditedRequest], deadline: float) -> None:
    """Wait until a request is durable in the audit log, if answers wait for that. Raises
    REQUEST_TIMED_OUT at the deadline.
    """
    recorder = controller.recorder
    if recorder is None or not recorder.answers_wait:
        return
    with trio.move_on_at(deadline) as patience:
        for part in audited:
            await recorder.wait_durable(part)
    if patience.cancelled_caught:
        raise Refusal(
            ErrorCode.REQUEST_TIMED_OUT, reason="The change was decided, but was not in the audit log in time."
        )


async def _decided(
    parts: Parts[Any],
    number: int,
    audited: AuditedRequest | None,
    refused: Callable[[Refusal], Sequence[Outcome]],
    draft: Draft,
) -> Sequence[Outcome]:
    """Plan the part of this number, and return its changes, each with its element and the judgement
    of the policy.

    If the plan fails as a whole and there is an audit log, every change gets an element that
    refuses it, so that the log records it.
    """
    if audited is not None:
        audited.is_refused = False
    try:
        outcomes = await parts.plan(draft, number)
    except (StoreUnavailable, SessionExpired):
        raise  # the part is planned again, or another controller plans it
    except Exception as error:
        if audited is not None:
            refusal = error if isinstance(error, Refusal) else Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
            whole = [(draft.decide(outcome.refusal), outcome) for outcome in refused(refusal)[audited.first :]]
            audited.planned(whole, draft.image, elements_left=0)
            audited.is_refused = True
        raise
    elements = _elements(draft, outcomes)
    if audited is not None:
        audited.planned(elements, draft.image, elements_left=parts.elements_left)
    if not elements:
        draft.decide()  # that nothing is to be done, too, only the controller can know
    return outcomes


def _elements(draft: Draft, outcomes: Sequence[Outcome]) -> list[tuple[StagedElement, Outcome]]:
    """Give each change its element and its judgement, put the elements into the draft in the order
    of the changes, and return the changes with their elements. Of those that are denied, the first
    have an element each, because the audit log shows them one by one, and those behind them share
    one.
    """
    elements: list[tuple[StagedElement, Outcome]] = []
    once: dict[StagedElement, None] = {}
    denied = 0
    shared: dict[tuple[ErrorCode, str | None], StagedElement] = {}
    for outcome in outcomes:
        if outcome.judgement is None:  # the policy judges only the first of two elements about one topic
            outcome.judgement = draft.judgements.pop((outcome.change.kind, outcome.change.resource), None)
        if _is_denied(outcome):
            denied += 1
            error = outcome.code, outcome.message
            element = shared.get(error) or decision(outcome.refusal)
            shared = {error: element} if denied > ELEMENTS_OF_DENIALS else {}
        else:
            shared = {}
            staged = outcome.element or decision(outcome.refusal)
            assert isinstance(staged, StagedElement)
            element = staged
            if element in once:
                continue  # a topic that the request names twice
        outcome.element = element
        once[element] = None
        elements.append((element, outcome))
    assert all(element in once for element in draft.elements), "an element of no change"
    draft.elements = list(once)
    return elements


def _is_denied(outcome: Outcome) -> bool:
    """Whether a change was refused for lack of a permission, and has no element yet."""
    return outcome.element is None and outcome.judgement is None and outcome.code in DENIALS


def refused_whole(context: RequestContext, request: Any, refusal: Refusal) -> list[Outcome]:
    """Return a refused change for each element of a request."""
    return [Outcome(requested, refusal=refusal) for requested in requested_changes(context.spec, request)]


def refused_one_by_one(context: RequestContext, request: Any, refusal: Refusal) -> Steps[list[Outcome]]:
    """Return the changes that `refused_whole` returns, in steps."""
    changes = context.spec.changes
    named = yield from steps.one_by_one(() if changes is None else changes.requested(request))
    once = {(each.kind, each.resource): each for each in named}
    return (yield from steps.one_by_one(Outcome(requested, refusal=refusal) for requested in once.values()))


async def record_refused(
    port: ControllerPort, context: RequestContext, outcomes: Sequence[Outcome], *, validate_only: bool = False
) -> None:
    """Record the changes of a request that is refused as a whole, where there is an audit log, by a
    job that writes nothing, so that they get a place in the sequence. Raises NOT_CONTROLLER.
    """
    controller = port.controller.serving()
    if controller.recorder is not None:
        audited = controller.recorder.request(context, validate_only=validate_only)
        parts = Parts(outcomes, lambda outcome: outcome.change, partial(_as_refused, outcomes))
        under_way = _PartsUnderWay(controller.writer, parts, [audited], lambda _refusal: outcomes)
        await under_way.carry_out(in_any_case=True)
        await controller.recorder.wait_durable(audited)


async def _as_refused(outcomes: Sequence[Outcome], _draft: Draft, _first: int) -> Sequence[Outcome]:
    for outcome in outcomes:
        outcome.element = None  # if they are planned again
    return outcomes


async def _is_known(
    port: ControllerPort, context: RequestContext, controller: ActiveController, outcomes: Sequence[Outcome]
) -> bool:
    """Wait until the nodes that must show the changes do: every node, or the one that forwarded the
    request, unless it gets them anyway before it answers a read. Return False if the controller
    ends first.
    """
    changes_configs = any(outcome.delta.is_read_from_store for outcome in outcomes)
    if port.completion_is_cluster_wide:
        return await controller.propagation.wait_acknowledged(configs=changes_configs)
    if context.forwarded and (changes_configs or not controller.propagation.reaches(context.origin.received_node)):
        return await controller.propagation.wait_acknowledged(context.origin.received_node, configs=changes_configs)
    return True


def _complete_by_now(port: ControllerPort, controller: ActiveController, outcomes: Sequence[Outcome]) -> list[int]:
    if port.completion_is_cluster_wide and controller.propagation.behind:
        return []
    return [
        index
        for index, outcome in enumerate(outcomes)
        if outcome.is_carried_out
        and not (outcome.delta.is_read_from_store and port.completion_is_cluster_wide)
        and outcome.is_complete(port.cache.image, controller.image)
    ]


async def _wait_until_complete(
    port: ControllerPort,
    context: RequestContext,
    controller: ActiveController,
    outcomes: Sequence[Outcome],
    completed: set[int],
) -> None:
    """Add the index of each change to `completed` as soon as it is complete. A change that never
    completes does not hold up the others (K4-C7).
    """
    ready: list[int] = []
    late: list[tuple[int, Outcome]] = []
    for index, outcome in enumerate(outcomes):
        if not outcome.is_carried_out:
            continue
        if outcome.is_complete(port.cache.image, controller.image):
            ready.append(index)
        else:
            late.append((index, outcome))

    async def complete(indexes: Sequence[int]) -> None:
        if indexes and await _is_known(port, context, controller, [outcomes[index] for index in indexes]):
            completed.update(indexes)

    async def complete_later(index: int, outcome: Outcome) -> None:
        await port.cache.wait_topic(
            outcome.change.resource, lambda _image: outcome.is_complete(port.cache.image, controller.image)
        )
        await complete([index])

    if not late:
        await complete(ready)
        return
    async with trio.open_nursery() as nursery:
        nursery.start_soon(complete, ready)
        for index, outcome in late:
            nursery.start_soon(complete_later, index, outcome)
