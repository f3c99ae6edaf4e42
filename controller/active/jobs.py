"""The writer's jobs, which plan elements on a draft.

A plan changes nothing but its draft, so a job can be planned again as long as none of its elements
took effect. Every decision is an element: elements that write, that only validate, and that are
refused are completed in the order in which they were planned.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import trio

from ...admin.changes import Element, Judgement
from ...cluster.delta import NO_CHANGE, Delta
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...process.steps import Steps
from ...process.time_slices import TimeSlice, carried_out
from ...protocol.error_codes import ErrorCode
from ...store.base import Operation, weight

T = TypeVar("T")

NOTHING_BELOW: Mapping[str, Sequence[str]] = {}
PART_SECONDS = 0.1
"""The time for which a request of many elements is planned before waiting jobs are planned."""


class ControllerMoved(Exception):  # noqa: N818 - Kafka's name (ControllerMovedException)
    """Another controller was elected, so this one writes nothing more."""


class InDoubt(Exception):  # noqa: N818
    """The connection broke while commits were in flight, and only the store knows which of them
    took effect.
    """


class StagedElement(Element):
    """An element of a job, with the operations that write it, if any."""

    __slots__ = ("begun", "completed", "job", "key", "operations", "weight")

    def __init__(self, delta: Delta, operations: Sequence[Operation] = (), *, key: str | None = None) -> None:
        super().__init__(delta)
        self.key = key or self.topic or (operations[0].path if operations else None)
        """The name of the topic or the path that the element changes, or None if it changes
        nothing. Elements with the same key build upon each other.
        """
        self.operations = operations
        self.weight = sum(map(weight, operations))
        self.begun = 0
        """The number of commits with its operations that were sent and not refused. Above 0, the
        element may have taken effect.
        """
        self.completed = False
        """Whether its commit is in the store, or its doubtful outcome is resolved."""
        self.job: WriterJob | None = None
        """None once the element is completed, and for changes by other processes."""

    @property
    def rests_on_another(self) -> bool:
        """Whether another element, of this job or of one before it, writes what it changes."""
        return not (self.operations or self.is_decision_only or self.refusal)

    @property
    def can_be_planned_again(self) -> bool:
        """Whether its job can be planned again, because none of its elements took effect, or may
        have.
        """
        return self.job is not None and self.job.nothing_of_it_stands

    def apply(self, image: Image) -> Image:
        return image if self.refusal is not None else self.delta.apply(image)

    def refuse(self, refusal: Refusal) -> None:
        """Refuse the element, which then writes nothing and keeps its place."""
        self.refusal = refusal
        self.operations, self.weight = (), 0


def decision(refusal: Refusal | None) -> StagedElement:
    """Make an element that writes nothing: a refusal, or the outcome of a dry run."""
    element = StagedElement(NO_CHANGE)
    element.is_decision_only = True
    if refusal is not None:  # the traceback of the refusal refers to the draft, and so to this element
        element.refusal = refusal.with_traceback(None)
    return element


class Draft:
    """The image on which a job plans its elements. All earlier elements are in effect in it,
    including the job's own.
    """

    def __init__(
        self,
        image: Image,
        max_bytes: int,
        time_slice: TimeSlice,
        *,
        barred: Mapping[str | None, Refusal] | None = None,
        below: Mapping[str, Sequence[str]] = NOTHING_BELOW,
        others_wait: Callable[[], bool] = lambda: False,
    ) -> None:
        self.image = image
        self.time_slice = time_slice
        """The time slice of the plan, which pauses between its elements."""
        self.elements: list[StagedElement] = []
        self.judgements: dict[tuple[str, str], Judgement] = {}
        """The requests to the policy with its verdicts, by kind and name of the resource."""
        self.is_supposed = False
        """Whether the image shows more than the elements write, as in a dry run."""
        self.suppositions: list[Delta] = []
        """The deltas that show in the image and that nobody writes."""
        self.below = below
        """The paths of foreign znodes below znodes that an earlier plan of the job could not
        delete, by the paths of the latter; each path comes before those below it.
        """
        self._max_bytes = max_bytes
        self._bytes = 0
        """The size of the staged operations in bytes."""
        self._heaviest = 0
        """The size of the largest staged element in bytes."""
        self._barred = barred or {}
        self._ends = trio.current_time() + PART_SECONDS
        self._others_wait = others_wait

    @property
    def is_over(self) -> bool:
        """Whether the plan must end before its next element: one more like the staged ones would
        not fit into the commit, or other jobs wait and PART_SECONDS are over.

        A job takes effect as a whole, and can be planned again as a whole, so it does not outgrow a
        commit. A little of it in a second commit would take a second write of the store's log.
        """
        return self.is_full or (trio.current_time() >= self._ends and self._others_wait())

    @property
    def is_full(self) -> bool:
        """Whether one more element like the largest one would not fit into the commit."""
        return self._bytes + self._heaviest > self._max_bytes

    async def take(self, steps: Steps[T]) -> T:
        """Take all steps of a part of the plan, in its time slice, and return the result."""
        return await carried_out(steps, self.time_slice)

    def stage(self, delta: Delta, operations: Sequence[Operation] = (), *, key: str | None = None) -> StagedElement:
        """Add an element, which later elements of the plan see in effect. One without operations
        is for what other processes have written. Raises Refusal if the store cannot take one of
        its operations, because that would leave all commits in flight in doubt.
        """
        return self.add(StagedElement(delta, operations, key=key))

    def rehearse(self, stage: "Callable[[Draft], StagedElement]") -> None:
        """Stage an element for the rest of a dry run, which writes nothing. Raises Refusal."""
        element = stage(self)
        self.elements.remove(element)
        self._bytes -= element.weight
        if element.refusal is None:
            self.suppositions.append(element.delta)
        self.is_supposed = True

    def decide(self, refusal: Refusal | None = None) -> StagedElement:
        """Add an element that writes nothing. It is completed when all elements before it are."""
        element = decision(refusal)
        self.elements.append(element)
        return element

    def suppose(self, delta: Delta) -> None:
        """Change the image for the rest of the request, and for no other job."""
        self.suppositions.append(delta)
        self.image = delta.apply(self.image)
        self.is_supposed = True

    def add(self, element: StagedElement) -> StagedElement:
        """Add an element, as `stage` does. Raises Refusal."""
        if element.weight > self._max_bytes and (heaviest := max(map(weight, element.operations))) > self._max_bytes:
            text = f"The change needs {heaviest} bytes in one znode; {self._max_bytes} are allowed."
            raise Refusal(ErrorCode.INVALID_REQUEST, text)
        refusal = self._barred.get(element.key) if self._barred else None
        if refusal is not None:
            element.refuse(refusal)
        self.elements.append(element)
        self._bytes += element.weight
        self._heaviest = max(self._heaviest, element.weight)
        self.image = element.apply(self.image)
        return element


class WriterJob:
    """A request for changes, from its planning to the last of its commits."""

    __slots__ = (
        "barred",
        "below",
        "conflicts",
        "done",
        "elements",
        "error",
        "fills_a_commit",
        "is_given_up",
        "open_elements",
        "plan",
        "request",
        "result",
        "unexplained",
    )

    def __init__(self, plan: Callable[[Draft], Any], request: Any = None) -> None:
        self.plan = plan
        self.request = request
        """The request as the writer's observer knows it; None for changes by the controller itself.
        """
        self.result: Any = None
        self.error: BaseException | None = None
        self.elements: list[StagedElement] = []
        self.open_elements = 0
        self.fills_a_commit = False
        """Whether its plan ended because the commit was full."""
        self.is_given_up = False
        """Whether its caller no longer waits. Such a job is not planned, and a plan under way is
        dropped.
        """
        self.conflicts = 0
        """The number of its conflicts with other processes' writes."""
        self.unexplained = 0
        """The number of its conflicts that the present state of the store does not explain: the
        other write was taken back, or the plan is wrong.
        """
        self.barred: dict[str | None, Refusal] = {}
        """The refusals of elements that the store refuses again and again, by key."""
        self.below: dict[str, Sequence[str]] = {}
        """As in its drafts."""
        self.done = trio.Event()

    def fail(self, error: BaseException) -> None:
        if not self.done.is_set():
            self.error = error
            self.done.set()

    @property
    def nothing_of_it_stands(self) -> bool:
        """Whether no element took effect, or may have. Then the job can be planned again, here or
        by another controller.
        """
        return not any(element.begun or element.completed for element in self.elements)
