"""Plans a request of many elements in parts, so that other requests are planned in between.

Each part is a job of its own, queued behind the jobs that wait by then. It sees everything that was
accepted before it, by its own request and by others, so concurrent requests cannot exceed a limit
together. A slow policy delays others by one part at most. If no other job waits, there is one part,
unless the request fills more than one commit.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from ...admin.changes import Outcome
from ...cluster.delta import Delta
from ..active.jobs import Draft

W = TypeVar("W")

PlanFrom = Callable[[Draft, int], Awaitable[Sequence[Outcome]]]
"""Plans the elements of a request from an index on, until `Draft.is_over`."""


async def each(
    draft: Draft, elements: Sequence[W], plan_one: Callable[[Draft, W], Awaitable[Outcome]]
) -> list[Outcome]:
    """Plan elements one after the other until `draft.is_over`, at least one of them."""
    outcomes: list[Outcome] = []
    for element in elements:
        if outcomes and draft.is_over:
            break
        await draft.time_slice.pause()
        outcomes.append(await plan_one(draft, element))
    return outcomes


class Parts:
    """A request that is carried out in parts: its changes so far, and the plan of the next part."""

    def __init__(self, plan: PlanFrom, count: int, *, overlap: bool = False) -> None:
        self.outcomes: list[Outcome] = []
        """The changes of the parts that were carried out."""
        self.overlap = overlap
        """Whether a part is planned while the commit of the one before it is under way. The plan
        must not depend on what it returned for earlier parts.
        """
        self._lengths: list[int] = []
        """The number of changes of each part, as it was last planned."""
        self._carried_out = 0
        """The number of parts that were carried out."""
        self.elements_left = 0
        """The number of elements that the last plan left for later parts."""
        self._plan = plan
        self.count = count
        """The number of changes of the whole request, which a plan may correct."""
        self._suppositions: list[Delta] = []
        """The changes that the earlier parts of a dry run make to the image of its later parts."""
        self._newly_supposed: Sequence[Delta] = ()

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


class PartsOfElements(Parts, Generic[W]):
    """A request of which each element has one change or several, as a topic has when some of its
    partitions are refused: their number is known only when all elements are planned.
    """

    def __init__(self, elements: Sequence[W], plan_one: Callable[[Draft, W], Awaitable[Sequence[Outcome]]]) -> None:
        super().__init__(self._plan_part, len(elements))
        self._elements = elements
        self._plan_one = plan_one
        self._begins = {0: 0}
        """The index of the element with which a part begins, by the number of changes before it."""

    @property
    def unbegun(self) -> Sequence[W]:
        """The elements that no part has carried out."""
        return self._elements[self._begins[len(self.outcomes)] :]

    async def _plan_part(self, draft: Draft, first: int) -> Sequence[Outcome]:
        outcomes: list[Outcome] = []
        index = self._begins[first]
        while index < len(self._elements) and not (outcomes and draft.is_over):
            await draft.time_slice.pause()
            outcomes += await self._plan_one(draft, self._elements[index])
            index += 1
        planned = first + len(outcomes)
        self._begins[planned] = index
        self.count = planned + len(self._elements) - index
        return outcomes
