"""Carries out changes of ACLs, of the configs of users, clients and addresses, of delegation
tokens, and of groups. Each API makes edits of its request; what they share is here.

Rule: edits of one entity in one request become one write, so that a request with a thousand ACLs of
one topic writes them once. Each edit keeps its own answer and its own place in the audit log.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any, NoReturn

import msgspec
import trio

from ...admin.changes import Change, Outcome
from ...admin.recording.requests import DENIALS
from ...cluster.entities import refuse_unreadable
from ...cluster.entity_paths import value_of
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...network.serving.context import RequestContext
from ...process.time_slices import carried_out
from ...protocol.error_codes import ErrorCode
from ..active.entity_writing import stage_confirmation, stage_value
from ..active.jobs import Draft
from .changes import carry_out, record_refused, refused_one_by_one
from .controller_port import ControllerPort
from .parts import Parts
from .planning import judge_admin, judges_api


class EntityEdit(msgspec.Struct, frozen=True):
    """One requested change of one entity."""

    change: Change
    """The requested change, as the audit log shows it."""
    path: str
    """The path of the entity's znode; empty if there can be none, so that `edit` refuses None."""
    edit: Callable[[Any], Any]
    """Returns the entity's value after the change, given the one before: the frozenset of the ACLs
    of a resource pattern, the dictionary of all configs, or the token, None if there is none. An
    edit does not change the value that it is given. Raises Refusal.
    """
    check: Callable[[Image, Any], None] = lambda _image, _after: None
    """Raises Refusal if the cluster, as the image shows it, has no room for the value after."""


async def change_entities(
    port: ControllerPort,
    context: RequestContext,
    request: Any,
    edits: Sequence[EntityEdit],
    *,
    validate_only: bool = False,
) -> list[Outcome]:
    """Carry out the edits of a request at the active controller. Returns their changes in the same
    order; each was refused, or is in force as `metadata.completion` demands. Raises Refusal.
    """
    planner = _Planner(port, context, edits, validate_only=validate_only)
    outcomes = await carry_out(
        port,
        context,
        request,
        Parts(planner.edits, lambda edit: edit.change, planner.plan),
        timeout_ms=port.request_timeout_ms,
        validate_only=validate_only,
    )
    return [outcome for _, outcome in sorted(zip(planner.order, outcomes, strict=True), key=lambda pair: pair[0])]


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


class _Planner:
    """Plans the edits of one request, entity by entity, in the order in which it names them."""

    def __init__(
        self, port: ControllerPort, context: RequestContext, edits: Sequence[EntityEdit], *, validate_only: bool
    ) -> None:
        self._port = port
        self._context = context
        first: dict[str, int] = {}
        for edit in edits:
            first.setdefault(edit.path, len(first))
        self.order = sorted(range(len(edits)), key=lambda index: first[edits[index].path])
        """The indexes of the edits in the order in which they are planned."""
        self.edits = [edits[index] for index in self.order]
        self._validate_only = validate_only

    async def plan(self, draft: Draft, begin: int) -> list[Outcome]:
        outcomes: list[Outcome] = []
        is_judged = judges_api(self._port, self._context)
        for group in self._groups(begin):
            if outcomes and draft.is_over:
                break
            await draft.time_slice.pause()
            planned = await self._planned(draft, group, is_judged=is_judged)
            outcomes += planned
            if len(planned) < len(group):
                break
        return outcomes

    def _groups(self, begin: int) -> Iterator[list[EntityEdit]]:
        """Yield the edits from this index on, those of one entity together."""
        while begin < len(self.edits):
            path = self.edits[begin].path
            group = list(takewhile(lambda edit: edit.path == path, self.edits[begin:]))  # noqa: B023 - used at once
            yield group
            begin += len(group)

    async def _planned(self, draft: Draft, group: Sequence[EntityEdit], *, is_judged: bool) -> list[Outcome]:
        """Plan the edits of one entity. The policy is asked about each valid edit, if it judges the
        API; a slow policy leaves the rest of them for the next part.
        """
        path = group[0].path
        before, version = value_of(draft.image, path) if path else (None, -1)
        value: Any = before
        outcomes: list[Outcome] = []
        for edit in group:
            if is_judged and outcomes and draft.is_over:
                break
            try:
                refuse_unreadable(path, version)
                after = edit.edit(value)
                edit.check(draft.image, after)
            except Refusal as refusal:
                outcomes.append(Outcome(edit.change, refusal=refusal, is_denied=refusal.code in DENIALS))
                continue
            outcome = Outcome(edit.change, changes_configs=True)
            outcomes.append(outcome)
            try:
                if is_judged:
                    await judge_admin(self._port, self._context, draft, outcome, validate_only=self._validate_only)
                value = after
            except Refusal as refusal:
                outcome.refusal = refusal
        accepted = [outcome for outcome in outcomes if outcome.refusal is None]
        if accepted and (value != before or version >= 0):
            try:
                self._stage(draft, path, value, accepted, is_changed=value != before)
            except Refusal as refusal:
                for outcome in accepted:
                    outcome.refusal = refusal
        return outcomes

    def _stage(self, draft: Draft, path: str, value: Any, accepted: Sequence[Outcome], *, is_changed: bool) -> None:
        if self._validate_only:
            if is_changed:
                draft.rehearse(lambda draft: stage_value(draft, path, value))
            return
        first, *others = accepted
        first.element = stage_value(draft, path, value) if is_changed else stage_confirmation(draft, path)
        for outcome in others:
            outcome.element = draft.stage_with(first.element)
