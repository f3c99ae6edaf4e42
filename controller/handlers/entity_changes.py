"""Carries out changes of ACLs, of the configs of users, clients and addresses, of delegation
tokens, and of groups. What each change makes of its entity is a function of the API in `admin/`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import trio

from ...admin.changes import Change, Outcome
from ...cluster.entity_paths import Value, value_of
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...network.serving.context import RequestContext
from ...process.time_slices import carried_out
from ...protocol.error_codes import ErrorCode
from ..active.entity_writing import stage_confirmation, stage_value
from ..active.jobs import Draft, StagedElement
from .changes import carry_out, record_refused, refused_one_by_one
from .controller_port import ControllerPort
from .parts import Parts, one_by_one
from .planning import judge_admin, judges_api

W = TypeVar("W")
Planned = tuple[str, Value]
"""The path of an entity, and what it is to say."""


async def change_entities(
    port: ControllerPort,
    context: RequestContext,
    request: Any,
    elements: Sequence[W],
    *,
    change_of: Callable[[W], Change],
    plan: Callable[[Image, W], Planned],
    validate_only: bool = False,
    is_done: bool = False,
) -> Sequence[Outcome]:
    """Carry out the elements of a request at the active controller, each in the state that those
    before it leave. `plan` raises Refusal for one that is refused, and `change_of` returns the
    change that an element asks for, once it was planned. With `is_done` the node that asks carries
    out what is allowed, and not the store. Returns an outcome for each element, which
    was refused, or is in force as `metadata.completion` demands. Raises Refusal.
    """

    async def plan_one(draft: Draft, element: W) -> Outcome:
        try:
            path, value = plan(draft.image, element)
        except Refusal as refusal:
            return Outcome(change_of(element), refusal=refusal)
        outcome = Outcome(change_of(element), is_done=is_done)
        try:
            if judges_api(port, context):
                await judge_admin(port, context, draft, outcome, validate_only=validate_only)
            outcome.element = _staged(draft, path, value, validate_only=validate_only)
        except Refusal as refusal:
            outcome.refusal = refusal
        return outcome

    return await carry_out(
        port,
        context,
        request,
        Parts(elements, change_of, one_by_one(elements, plan_one)),
        timeout_ms=port.request_timeout_ms,
        validate_only=validate_only,
    )


async def change_entity(
    port: ControllerPort, context: RequestContext, request: Any, change: Change, plan: Callable[[Image], Planned]
) -> Outcome:
    """Carry out the only change of a request, as `change_entities` does. Raises Refusal."""
    (outcome,) = await change_entities(
        port, context, request, [change], change_of=lambda each: each, plan=lambda image, _change: plan(image)
    )
    return outcome


def refusing(refusal: Refusal) -> Callable[..., Planned]:
    """Return the plan of changes that are refused before the state of their entities counts."""

    def plan(*_state: object) -> Planned:
        raise refusal

    return plan


async def refuse_request(port: ControllerPort, context: RequestContext, request: Any, refusal: Refusal) -> NoReturn:
    """Raise the refusal of a whole request, once it is in the audit log for each of its changes."""
    port.controller.serving()
    if port.audit is not None:
        outcomes = await carried_out(refused_one_by_one(context, request, refusal))
        with trio.move_on_at(context.arrived + port.request_timeout_ms / 1000) as patience:
            await record_refused(port, context, outcomes)
        if patience.cancelled_caught:
            raise Refusal(ErrorCode.REQUEST_TIMED_OUT, reason="The refusal was not in the audit log in time.")
    raise refusal


def _staged(draft: Draft, path: str, value: Value, *, validate_only: bool) -> StagedElement | None:
    """Stage what an entity is to say; None for what writes nothing. Raises Refusal."""
    before, version = value_of(draft.image, path)
    if value == before:
        return None if validate_only or version < 0 else stage_confirmation(draft, path)
    if validate_only:
        draft.rehearse(lambda draft: stage_value(draft, path, value))
        return None
    return stage_value(draft, path, value)
