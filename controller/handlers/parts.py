"""Plans a request of many elements in parts, so that other requests are planned in between.

Each part is a job of its own, queued behind the jobs that wait by then. It sees everything that was
accepted before it, by its own request and by others, so concurrent requests cannot exceed a limit
together. A slow policy delays others by one part at most. If no other job waits, there is one part,
unless the request fills more than one commit.
"""

from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Generic, TypeVar

from ...admin.changes import Change, Outcome
from ...cluster.delta import Delta
from ...cluster.errors import Refusal
from ..active.jobs import Draft, StagedElement

W = TypeVar("W")

PlanFrom = Callable[[Draft, int], Awaitable[Sequence[Outcome]]]
"""Plans the elements of a request from an index on, until `Draft.is_over`."""


def one_by_one(elements: Sequence[W], plan_one: Callable[[Draft, W], Awaitable[Outcome]]) -> PlanFrom:
    """Return the plan of a request of which each element is planned by itself. It ends when
    `draft.is_over`, but plans at least one element.
    """

    async def plan(draft: Draft, first: int) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for element in islice(elements, first, None):
            if outcomes and draft.is_over:
                break
            await draft.time_slice.pause()
            outcomes.append(await plan_one(draft, element))
        return outcomes

    return plan


async def outcome_of(change: Change, planned: Awaitable[StagedElement | None]) -> Outcome:
    """Return the outcome of a change, whose plan raises Refusal, or returns the element that
    carries it out, or None if it is only validated.
    """
    try:
        return Outcome(change, element=await planned)
    except Refusal as refusal:
        return Outcome(change, refusal=refusal.with_traceback(None))  # whose frames refer to the whole plan


class Parts(Generic[W]):
    """A request that is carried out in parts: the outcomes so far, and the plan of what is left."""

    def __init__(
        self, elements: Sequence[W], change_of: Callable[[W], Change], plan: PlanFrom, *, overlap: bool = False
    ) -> None:
        """Prepare to carry out these elements, which `plan` plans in this order; `change_of`
        returns the change that one asks for. With `overlap` a part is planned while the commit of
        the one before it is under way; the plan must not depend then on what it returned for
        earlier parts.
        """
        self.outcomes: list[Outcome] = []
        """The outcomes of the parts that were carried out."""
        self.overlap = overlap
        self.count = len(elements)
        """The number of outcomes of the whole request, which a plan may correct."""
        self.elements_left = 0
        """The number of elements that the last plan left for later parts."""
        self._elements = elements
        self._change_of = change_of
        self._plan = plan
        self._lengths: list[int] = []
        """The number of outcomes of each part, as it was last planned."""
        self._carried_out = 0
        """The number of parts that were carried out."""
        self._suppositions: list[Delta] = []
        """The changes that the earlier parts of a dry run make to the image of its later parts."""
        self._newly_supposed: Sequence[Delta] = ()

    @property
    def _unbegun(self) -> Sequence[W]:
        """The elements that no part has carried out."""
        return self._elements[len(self.outcomes) :]

    def all_outcomes(self, refusal: Refusal) -> list[Outcome]:
        """Return the outcomes so far, and this refusal for every other change."""
        return [*self.outcomes, *(Outcome(self._change_of(each), refusal=refusal) for each in self._unbegun)]

    @property
    def is_planned(self) -> bool:
        """Whether a part was planned that is not known to be carried out, but may be."""
        return len(self._lengths) > self._carried_out

    async def plan(self, draft: Draft, number: int) -> Sequence[Outcome]:
        """Plan the part of this number. If it is planned again, so are all behind it."""
        first = sum(self._lengths[:number])
        for delta in self._suppositions:
            draft.image = delta.apply(draft.image)
        draft.is_supposed = bool(self._suppositions)
        outcomes = await self._plan(draft, first)
        self._newly_supposed = draft.suppositions
        self._lengths[number:] = [len(outcomes), *self._lengths[number + 1 :]]
        self.elements_left = max(0, self.count - first - len(outcomes))
        return outcomes

    def carried_out(self, outcomes: Sequence[Outcome]) -> bool:
        """Note that a part was carried out, and return whether it was the last."""
        self.outcomes += outcomes
        self._suppositions += self._newly_supposed
        self._carried_out += 1
        return len(self.outcomes) >= self.count


class PartsOfTopics(Parts[Change]):
    """A request of which each topic has one outcome or several, as it has when some of its
    partitions are refused: their number is known only when all topics are planned.
    """

    def __init__(
        self, changes: Sequence[Change], plan_topic: Callable[[Draft, Change], Awaitable[Sequence[Outcome]]]
    ) -> None:
        super().__init__(changes, lambda change: change, self._plan_part)
        self._plan_topic = plan_topic
        self._begins = {0: 0}
        """The index of the topic with which a part begins, by the number of outcomes before it."""

    @property
    def _unbegun(self) -> Sequence[Change]:
        return self._elements[self._begins[len(self.outcomes)] :]

    async def _plan_part(self, draft: Draft, first: int) -> Sequence[Outcome]:
        outcomes: list[Outcome] = []
        index = self._begins[first]
        while index < len(self._elements) and not (outcomes and draft.is_over):
            await draft.time_slice.pause()
            outcomes += await self._plan_topic(draft, self._elements[index])
            index += 1
        planned = first + len(outcomes)
        self._begins[planned] = index
        self.count = planned + len(self._elements) - index
        return outcomes
