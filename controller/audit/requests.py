"""Requests on their way into the audit log: a record of each element, from its planning until the
writer gives it its place.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from ...protocol.error_codes import ErrorCode
from ..errors import Refusal
from ..metadata.image import Image
from ..requests.changes import Change, Judgement
from ..requests.context import RequestContext
from ..store.base import SessionExpired, StoreUnavailable

if TYPE_CHECKING:
    from ..active.jobs import Draft
    from ..handlers.changes import PlannedChange

    Plan = Callable[[Draft], Awaitable[Sequence[PlannedChange]]]


class AuditedRequest(msgspec.Struct):
    """One request, until each of its records has a place in the log."""

    number: int
    context: RequestContext
    validate_only: bool
    first: int = 0
    """Which of its elements is the first here: a long request is planned in parts, and each has its
    own of these.
    """
    elements: int = 0
    """How many the request has."""
    recorded: int = 0
    """How many are here."""
    open_records: int = 0
    """How many of these have no place yet."""
    ordinal: int = 0
    """The last of their places, as the log counts."""
    placed: trio.Event | None = None
    is_refused: bool = False
    """As a whole: its plan failed."""

    def planned(self, plan: "Plan", refused: "Callable[[Refusal], Sequence[PlannedChange]]") -> "Plan":
        """Wrap a plan so that it leaves a record of each element for the writer, all of them
        `refused` if it fails as a whole.
        """
        return partial(self._plan_and_record, plan, refused)

    async def _plan_and_record(
        self, plan: "Plan", refused: "Callable[[Refusal], Sequence[PlannedChange]]", draft: "Draft"
    ) -> "Sequence[PlannedChange]":
        self.is_refused = False
        try:
            changes = await plan(draft)
        except (StoreUnavailable, SessionExpired):
            raise  # it will be planned again, or was never this controller's to decide
        except Exception as error:
            refusal = error if isinstance(error, Refusal) else Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
            changes = refused(refusal)[self.first :]
            for change in changes:
                change.element = draft.decide(change.refusal)
            self._record(changes, draft)
            self.is_refused = True
            raise
        self._record(changes, draft)
        return changes

    def _record(self, changes: "Sequence[PlannedChange]", draft: "Draft") -> None:
        if len(changes) > 1:
            changes = list({id(change): change for change in changes}.values())  # K4-D1
        self.recorded = self.open_records = len(changes)
        self.elements = self.first + self.recorded + draft.elements_left
        for index, change in enumerate(changes):
            judgement = change.judgement
            image = draft.image if judgement is None else judgement.image
            assert change.element is not None
            change.element.record = Record(self, self.first + index, change, judgement, image, draft.disturbances)

    def next_part(self) -> "AuditedRequest":
        """Begin the records of the next part of a long request."""
        return AuditedRequest(self.number, self.context, self.validate_only, first=self.first + self.recorded)

    async def wait_placed(self) -> None:
        """Wait until each record of this request has its place in the log: a decision that writes
        nothing may follow others.
        """
        if self.open_records > 0:
            self.placed = trio.Event()
            await self.placed.wait()


class Record(msgspec.Struct):
    """One planned element, and what its decision was based on."""

    request: AuditedRequest
    index: int
    change: Change | None
    """None once it has its place: the change leads back to here, and whatever refers to itself
    waits for the garbage collector.
    """
    judgement: Judgement | None
    image: Image
    """What the policy saw, or would have seen."""
    disturbances: int
    """The journal's, when it was planned."""

    def placed(self, ordinal: int, sequence: int) -> None:
        """Note the place of this record in the log, which is behind all that were placed before."""
        request, change, self.change = self.request, self.change, None
        assert change is not None
        change.sequence = sequence
        request.ordinal = ordinal
        request.open_records -= 1
        if request.open_records == 0 and request.placed is not None:
            request.placed.set()
