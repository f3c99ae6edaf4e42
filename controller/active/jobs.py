"""The writer's jobs, which plan elements on a draft.

A plan changes nothing but its draft, so a job can be planned again as long as none of its elements
took effect. Every decision is an element: elements that write, that only validate, and that are
refused are completed in the order in which they were planned.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import trio

from ...admin.changes import Judgement
from ...cluster.entities import EntityConfigs, Topic
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...process.time_slices import TimeSlice
from ...protocol.error_codes import ErrorCode
from ...store.base import Operation, weight
from .entity_reading import Entity, entity_of, with_changes

NO_ENTITIES: Mapping[str, Entity | None] = {}
NOTHING_BELOW: Mapping[str, Sequence[str]] = {}
PART_SECONDS = 0.1
"""The time for which a request of many elements is planned before waiting jobs are planned."""


class ControllerMoved(Exception):  # noqa: N818 - Kafka's name (ControllerMovedException)
    """Another controller was elected, so this one writes nothing more."""


class InDoubt(Exception):  # noqa: N818
    """The connection broke while commits were in flight, and only the store knows which of them
    took effect.
    """


class Element:
    """One element of a job: the operations that it writes, if any, and what they change in the
    image.
    """

    __slots__ = (
        "begun",
        "completed",
        "entities",
        "evolve",
        "evolve_image",
        "holds",
        "is_decision_only",
        "job",
        "key",
        "operations",
        "refusal",
        "topic",
        "weight",
    )

    def __init__(
        self,
        topic: str | None,
        operations: Sequence[Operation],
        evolve: Callable[[Topic | None], Topic | None],
        holds: Callable[[Image], bool],
    ) -> None:
        self.topic = topic
        self.key = topic if topic is not None or not operations else operations[0].path
        """The name of the topic or the path that the element changes, or None if it changes
        nothing. Elements with the same key build upon each other.
        """
        self.operations = operations
        self.weight = sum(map(weight, operations))
        self.evolve = evolve
        """Returns the topic after this element, given the topic before it; None stands for no
        topic.
        """
        self.evolve_image: Callable[[Image], Image] | None = None
        """Returns the image after this element, given the image before it. It is None if the
        element changes a topic or nothing.
        """
        self.entities: Mapping[str, Entity | None] = NO_ENTITIES
        """The entities that every node follows as the element leaves them, by path."""
        self.holds = holds
        """Returns whether a freshly loaded image shows that the element took effect."""
        self.is_decision_only = False
        """Whether the element was refused or only validated, so that it writes nothing."""
        self.refusal: Refusal | None = None
        """The reason why its plan or the store refused the element, if one did."""
        self.begun = 0
        """The number of commits with its operations that were sent and not refused. Above 0, the
        element may have taken effect.
        """
        self.completed = False
        """Whether its commit is in the store, or its doubtful outcome is resolved."""
        self.job: WriterJob | None = None
        """None once the element is completed, and for changes by other processes."""

    @property
    def request(self) -> Any:
        """The request to which its job belongs, as the writer's observer knows it."""
        return None if self.job is None else self.job.request

    @property
    def can_be_planned_again(self) -> bool:
        """Whether its job can be planned again, because none of its elements took effect, or may
        have.
        """
        return self.job is not None and self.job.nothing_of_it_stands

    def apply(self, image: Image) -> Image:
        if self.refusal is not None:
            return image
        if self.topic is not None:
            after = self.evolve(image.topics.get(self.topic))
            return image.with_topic(after) if after is not None else image.with_topics((), (self.topic,))
        return image if self.evolve_image is None else self.evolve_image(image)

    def refuse(self, refusal: Refusal) -> None:
        """Refuse the element, which then writes nothing and keeps its place."""
        self.refusal = refusal
        self.operations, self.weight = (), 0


def decision(refusal: Refusal | None) -> Element:
    """Make an element that writes nothing: a refusal, or the outcome of a dry run."""
    element = Element(None, (), _same, _shows)
    element.is_decision_only = True
    if refusal is not None:  # the traceback of the refusal refers to the draft, and so to this element
        element.refusal = refusal.with_traceback(None)
    return element


def observation(evolve_image: Callable[[Image], Image]) -> Element:
    """Make an element that writes nothing, for other processes' changes that concern no topic."""
    element = Element(None, (), _same, _shows)
    element.evolve_image = evolve_image
    return element


def observed_topic(topic: Topic | None, name: str) -> Element:
    """Make an element that writes nothing, for a topic that other processes have written, or
    deleted (None).
    """
    return Element(name, (), lambda _before: topic, _shows)


def observed_entities(found: Mapping[str, Entity | None]) -> Element:
    """Make an element that writes nothing, for entities that other processes have written, by the
    paths of their znodes.
    """
    element = observation(lambda image: with_changes(image, found))
    element.entities = found
    return element


def _same(topic: Topic | None) -> Topic | None:
    return topic


def _shows(_image: Image) -> bool:
    return True


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
        self.elements: list[Element] = []
        self.judgements: dict[tuple[str, str], Judgement] = {}
        """The requests to the policy with its verdicts, by kind and name of the resource."""
        self.is_supposed = False
        """Whether the image shows more than the elements write, as in a dry run."""
        self.suppositions: list[Callable[[Image], Image]] = []
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

    def stage(
        self,
        topic: str | None,
        operations: Sequence[Operation],
        *,
        evolve: Callable[[Topic | None], Topic | None] = _same,
        holds: Callable[[Image], bool] = _shows,
    ) -> Element:
        """Add an element, which later elements of the plan see in effect. Raises Refusal if the
        store cannot take one of its operations, because that would leave all commits in flight in
        doubt.
        """
        return self._add(Element(topic, operations, evolve, holds))

    def stage_configs(self, entity: str, operations: Sequence[Operation], configs: EntityConfigs) -> Element:
        """Add an element that writes the configs of a broker, or of all brokers. `entity` is their
        path below `/config`. Raises Refusal.
        """
        element = Element(None, operations, _same, lambda image: image.configs.get(entity) == configs)
        element.evolve_image = lambda image: image.with_configs(entity, configs)
        return self._add(element)

    def stage_entities(self, path: str, operations: Sequence[Operation], after: Mapping[str, Entity | None]) -> Element:
        """Add an element that changes the entity at this path, and leaves these entities. Raises
        Refusal.
        """
        element = Element(
            None, operations, _same, lambda image: all(entity_of(image, each) == after[each] for each in after)
        )
        element.key, element.entities = path, after
        element.evolve_image = lambda image: with_changes(image, after)
        return self._add(element)

    def stage_with(self, written: Element) -> Element:
        """Add an element for another change that this staged element writes, too."""
        element = Element(None, (), _same, written.holds)
        element.key = written.key
        return self._add(element)

    def rehearse(self, stage: "Callable[[Draft], Element]") -> None:
        """Stage an element for the rest of a dry run, which writes nothing. Raises Refusal."""
        element = stage(self)
        self.elements.remove(element)
        self._bytes -= element.weight
        self.suppositions.append(element.apply)
        self.is_supposed = True

    def observe(self, element: Element) -> None:
        """Add an element that writes nothing, for what other processes have written."""
        self._add(element)

    def decide(self, refusal: Refusal | None = None) -> Element:
        """Add an element that writes nothing. It is completed when all elements before it are."""
        element = decision(refusal)
        self.elements.append(element)
        return element

    def suppose(self, evolve_image: Callable[[Image], Image]) -> None:
        """Change the image for the rest of the request, and for no other job."""
        self.suppositions.append(evolve_image)
        self.image = evolve_image(self.image)
        self.is_supposed = True

    def _add(self, element: Element) -> Element:
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
        self.elements: list[Element] = []
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
