"""Plans a request of many elements in parts, so that other requests are planned in between.

Each part is a job of its own, queued behind the jobs that wait by then. It sees everything that was
accepted before it, by its own request and by others, so concurrent requests cannot exceed a limit
together. A slow policy delays others by one part at most. If no other job waits, there is one part,
unless the request fills more than one commit.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from ...cluster.delta import Delta
from ..active.jobs import Draft
from .planning import PlannedChange

W = TypeVar("W")

PlanFrom = Callable[[Draft, int], Awaitable[Sequence[PlannedChange]]]
"""Plans the elements of a request from an index on, until `Draft.is_over`."""


async def each(
    draft: Draft, elements: Sequence[W], plan_one: Callable[[Draft, W], Awaitable[PlannedChange]]
) -> list[PlannedChange]:
    """Plan elements one after the other until `draft.is_over`, at least one of them."""
    changes: list[PlannedChange] = []
    for element in elements:
        if changes and draft.is_over:
            break
        await draft.time_slice.pause()
        changes.append(await plan_one(draft, element))
    return changes


class Parts:
    """A request that is carried out in parts: its changes so far, and the plan of the next part."""

    def __init__(self, plan: PlanFrom, count: int, *, overlap: bool = False) -> None:
        self.changes: list[PlannedChange] = []
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

    async def plan(self, draft: Draft, number: int) -> Sequence[PlannedChange]:
        """Plan the part of this number. If it is planned again, so are all behind it."""
        first = sum(self._lengths[:number])
        for delta in self._suppositions:
            draft.image = delta.apply(draft.image)
        draft.is_supposed = bool(self._suppositions)
        changes = await self._plan(draft, first)
        self._newly_supposed = draft.suppositions
        self._lengths[number:] = [len(changes), *self._lengths[number + 1 :]]
        self.elements_left = max(0, self.count - first - len(changes))
        return changes

    def carried_out(self, changes: Sequence[PlannedChange]) -> bool:
        """Note that a part was carried out, and return whether it was the last."""
        self.changes += changes
        self._suppositions += self._newly_supposed
        self._carried_out += 1
        return len(self.changes) >= self.count


class PartsOfElements(Parts, Generic[W]):
    """A request of which each element has one change or several, as a topic has when some of its
    partitions are refused: their number is known only when all elements are planned.
    """

    def __init__(
        self, elements: Sequence[W], plan_one: Callable[[Draft, W], Awaitable[Sequence[PlannedChange]]]
    ) -> None:
        super().__init__(self._plan_part, len(elements))
        self._elements = elements
        self._plan_one = plan_one
        self._begins = {0: 0}
        """The index of the element with which a part begins, by the number of changes before it."""

    @property
    def unbegun(self) -> Sequence[W]:
        """The elements that no part has carried out."""
        return self._elements[self._begins[len(self.changes)] :]

    async def _plan_part(self, draft: Draft, first: int) -> Sequence[PlannedChange]:
        changes: list[PlannedChange] = []
        index = self._begins[first]
        while index < len(self._elements) and not (changes and draft.is_over):
            await draft.time_slice.pause()
            changes += await self._plan_one(draft, self._elements[index])
            index += 1
        planned = first + len(changes)
        self._begins[planned] = index
        self.count = planned + len(self._elements) - index
        return changes
