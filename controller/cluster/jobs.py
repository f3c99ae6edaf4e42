"""What the writer is given to do: jobs, which plan elements on a draft; and who is told what becomes of them.

Rule: a plan changes nothing but its draft, so a job can be planned again for as long as nothing of it stands. Every decision is an
element: one that writes, one that only validates and one that is refused go the same way, in the order in which they were planned.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import trio

from ...protocol.error_codes import ErrorCode
from ..errors import Refusal
from ..store.base import Operation, weight
from ..turns import Turn
from .image import EntityConfigs, Image, Topic

PART_SECONDS = 0.1
"""Of the planning of a request of many elements, if others wait."""


class ControllerMoved(Exception):  # noqa: N818 - Kafka's name (ControllerMovedException)
    """Another controller was elected: this one writes nothing more."""


class InDoubt(Exception):  # noqa: N818
    """The connection broke while commits were in flight: only the store knows which of them took effect."""


class Element:
    """One element of a job: what it writes, if anything, and what that means for the image."""

    __slots__ = (
        "begun",
        "evolve",
        "evolve_image",
        "holds",
        "is_decision_only",
        "job",
        "key",
        "operations",
        "record",
        "refusal",
        "settled",
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
        """Names what it changes: elements with the same key build upon each other. None: it changes nothing."""
        self.operations = operations
        self.weight = sum(map(weight, operations))
        self.evolve = evolve
        """The topic before this element to the topic after it, None for no topic."""
        self.evolve_image: Callable[[Image], Image] | None = None
        """The image before to the image after, of an element that changes anything else than a topic."""
        self.holds = holds
        """Whether an image, freshly loaded, shows that the element took effect."""
        self.is_decision_only = False
        """It was refused or only validated: there is nothing to carry out."""
        self.refusal: Refusal | None = None
        """Set when it was refused, by its plan or by the store."""
        self.begun = 0
        """How many commits with operations of it were sent and not refused: while there is one, it may have taken effect."""
        self.settled = False
        self.job: Job
        self.record: Any = None
        """The journal's, of the decision that this element carries out."""

    def apply(self, image: Image) -> Image:
        if self.refusal is not None:
            return image
        if self.topic is not None:
            after = self.evolve(image.topics.get(self.topic))
            return image.with_topic(after) if after is not None else image.with_topics((), (self.topic,))
        return image if self.evolve_image is None else self.evolve_image(image)

    def refuse(self, refusal: Refusal) -> None:
        """It writes nothing any more, and keeps its place."""
        self.refusal = refusal
        self.operations, self.weight = (), 0


def decision(refusal: Refusal | None) -> Element:
    """An element that writes nothing: a refusal, or the outcome of a dry run."""
    element = Element(None, (), _same, _shows)
    element.is_decision_only = True
    if refusal is not None:  # its traceback leads to the draft, and from there back to here
        element.refusal = refusal.with_traceback(None)
    return element


def observation(evolve_image: Callable[[Image], Image]) -> Element:
    """An element that writes nothing: what others have written, and is no topic."""
    element = Element(None, (), _same, _shows)
    element.evolve_image = evolve_image
    return element


def observed_topic(topic: Topic | None, name: str) -> Element:
    """The same of a topic, None where there is none any more."""
    return Element(name, (), lambda _before: topic, _shows)


def _same(topic: Topic | None) -> Topic | None:
    return topic


def _shows(_image: Image) -> bool:
    return True


class Draft:
    """What a job sees while it plans: the image with everything before it, its own earlier elements included."""

    def __init__(
        self,
        image: Image,
        max_bytes: int,
        turn: Turn,
        *,
        barred: Mapping[str | None, Refusal] | None = None,
        others_wait: Callable[[], bool] = lambda: False,
    ) -> None:
        self.image = image
        self.turn = turn
        """A plan pauses between its elements."""
        self.elements: list[Element] = []
        self.judgements: dict[tuple[str, str], Any] = {}
        """What the policy was asked, by kind and name."""
        self.disturbances = 0
        """The journal's, when it was planned."""
        self.is_supposed = False
        """The image shows more than the elements: what a dry run would have made."""
        self.suppositions: list[Callable[[Image], Image]] = []
        self.elements_left = 0
        """How many of the request's elements are for a later job."""
        self._max_bytes = max_bytes
        self._bytes = 0
        """Of what is staged."""
        self._barred = barred or {}
        self._ends = trio.current_time() + PART_SECONDS
        self._others_wait = others_wait

    @property
    def is_over(self) -> bool:
        """Between two elements the plan ends, and another job goes on: what it has staged fills a commit, so that a job takes effect whole
        and can be planned again whole; or somebody else waits, and this plan has had its time.
        """
        return self._bytes >= self._max_bytes or (trio.current_time() >= self._ends and self._others_wait())

    def stage(
        self,
        topic: str | None,
        operations: Sequence[Operation],
        *,
        evolve: Callable[[Topic | None], Topic | None] = _same,
        holds: Callable[[Image], bool] = _shows,
    ) -> Element:
        """Add an element; the next one planned sees its effect. Raises Refusal if the store cannot take one of its operations:
        sent, it would leave everything in doubt that is on its way.
        """
        return self._add(Element(topic, operations, evolve, holds))

    def stage_configs(self, entity: str, operations: Sequence[Operation], configs: EntityConfigs) -> Element:
        """The same for the configs of a broker, or of all of them; `entity` is their path below `/config`."""
        element = Element(None, operations, _same, lambda image: image.configs.get(entity) == configs)
        element.evolve_image = lambda image: image.with_configs(entity, configs)
        return self._add(element)

    def observe_configs(self, entity: str, configs: EntityConfigs) -> None:
        """Others have written the configs of a broker, or of all of them."""
        self._add(observation(lambda image: image.with_configs(entity, configs)))

    def decide(self, refusal: Refusal | None = None) -> Element:
        """Add an element that writes nothing: it is settled when all that it was decided upon is."""
        element = decision(refusal)
        self.elements.append(element)
        return element

    def suppose(self, evolve_image: Callable[[Image], Image]) -> None:
        """The rest of the request sees the image so changed; nobody else does."""
        self.suppositions.append(evolve_image)
        self.image = evolve_image(self.image)
        self.is_supposed = True

    def _add(self, element: Element) -> Element:
        if element.weight > self._max_bytes and (heaviest := max(map(weight, element.operations))) > self._max_bytes:
            text = f"This takes {heaviest} bytes in one place of the store, which takes {self._max_bytes}."
            raise Refusal(ErrorCode.INVALID_REQUEST, text)
        refusal = self._barred.get(element.key) if self._barred else None
        if refusal is not None:
            element.refuse(refusal)
        self.elements.append(element)
        self._bytes += element.weight
        self.image = element.apply(self.image)
        return element


class Job:
    """A request for changes, from its planning to the last of its commits."""

    __slots__ = (
        "barred",
        "conflicts",
        "done",
        "elements",
        "error",
        "is_given_up",
        "open_elements",
        "plan",
        "result",
        "unexplained",
    )

    def __init__(self, plan: Callable[[Draft], Any]) -> None:
        self.plan = plan
        self.result: Any = None
        self.error: BaseException | None = None
        self.elements: list[Element] = []
        self.open_elements = 0
        self.is_given_up = False
        """Nobody waits for it any more: as long as nothing of it is on its way, nothing will be."""
        self.conflicts = 0
        """How often others wrote what it was about to write."""
        self.unexplained = 0
        """How often of these nothing was found that the image did not show: others had taken it back meanwhile, or the plan is wrong."""
        self.barred: dict[str | None, Refusal] = {}
        """By key: what the store refuses again and again, and why."""
        self.done = trio.Event()

    def fail(self, error: BaseException) -> None:
        if not self.done.is_set():
            self.error = error
            self.done.set()

    @property
    def nothing_of_it_stands(self) -> bool:
        """No element took effect, or may have: it can be done anew, here or by another controller."""
        return not any(element.begun or element.settled for element in self.elements)


class Journal(Protocol):
    """Who is told what becomes of decisions, in the order in which they take effect."""

    disturbances: int
    """How often what was planned did not come to be as it was planned, so that later plans saw what never was."""

    def disturbed(self, topics: Collection[str]) -> None:
        """What was planned for these topics will not be as plans saw it."""

    def restarted(self, image: Image) -> None: ...

    def committed(self, before: Image, after: Image, elements: Sequence[Element]) -> None:
        """These are settled, in this order: they took effect, or are refused, or were never to have one."""

    def doubted(self, image: Image | None, element: Element) -> None: ...
