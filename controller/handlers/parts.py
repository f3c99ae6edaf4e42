"""A request of many elements is planned in parts, so that others have their turns in between.

Rule: each part is a job of its own, behind those that wait by then, and sees all that was accepted
before it, of its own request and of others: who judges slowly holds up nobody for longer than a
part, and no limit can be passed by asking beside a long request. Where nobody waits there is one
part, unless it takes more than one commit.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ..active.jobs import Draft
from ..metadata.image import Image
from .planning import PlannedChange

W = TypeVar("W")

PlanFrom = Callable[[Draft, int], Awaitable[Sequence[PlannedChange]]]
"""Plans the elements from that one on, as far as its draft's time goes."""


async def each(
    draft: Draft, wishes: Sequence[W], plan_one: Callable[[Draft, W], Awaitable[PlannedChange]]
) -> list[PlannedChange]:
    """Plan the wishes one after the other, at least one of them, until the draft is over."""
    changes: list[PlannedChange] = []
    for wish in wishes:
        if changes and draft.is_over:
            break
        await draft.time_slice.pause()
        changes.append(await plan_one(draft, wish))
    return changes


class Parts:
    """A long request, carried out in parts: what is done of it, and the plan of what comes next."""

    def __init__(self, plan: PlanFrom, count: int) -> None:
        self.changes: list[PlannedChange] = []
        """Of the parts that were carried out."""
        self.is_planned = False
        """The part that is under way was, so it may be carried out whoever waits for it."""
        self.elements_left = 0
        """How many elements are left for later parts, as the last plan knew."""
        self._plan = plan
        self._count = count
        self._suppositions: list[Callable[[Image], Image]] = []
        """Of dry runs: what their later parts see of their earlier ones."""
        self._newly_supposed: Sequence[Callable[[Image], Image]] = ()

    async def plan(self, draft: Draft) -> Sequence[PlannedChange]:
        """Plan the next part. A part that is planned anew begins where it began."""
        for evolve_image in self._suppositions:
            draft.image = evolve_image(draft.image)
        draft.is_supposed = bool(self._suppositions)
        changes = await self._plan(draft, len(self.changes))
        self._newly_supposed = draft.suppositions
        self.elements_left = max(0, self._count - len(self.changes) - len(changes))
        self.is_planned = True
        return changes

    def carried_out(self, changes: Sequence[PlannedChange]) -> bool:
        """Note that a part was carried out, and return whether it was the last."""
        self.changes += changes
        self._suppositions += self._newly_supposed
        self.is_planned = False
        return len(self.changes) >= self._count
