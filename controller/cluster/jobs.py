"""What the writer is given to do: jobs, which plan elements on a draft; and who is told what becomes of them.

Rule: a plan changes nothing but its draft, so a job can be planned again for as long as nothing of it was sent.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import trio

from ...protocol.error_codes import ErrorCode
from ..errors import Refusal
from ..store.base import Operation, weight
from ..turns import Turn
from .image import Image, Topic


class ControllerMoved(Exception):  # noqa: N818 - Kafka's name (ControllerMovedException)
    """Another controller was elected: this one writes nothing more."""


class InDoubt(Exception):  # noqa: N818
    """The connection broke while commits were in flight: only the store knows which of them took effect."""


class Element:
    """One element of a job: what it writes, and what that means for the image."""

    __slots__ = (
        "begun",
        "evolve",
        "holds",
        "job",
        "notes",
        "operations",
        "record",
        "records_after",
        "records_before",
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
        self.operations = operations
        self.weight = sum(map(weight, operations))
        self.evolve = evolve
        """The topic before this element to the topic after it, None for no topic. Asked again whenever the order changes."""
        self.holds = holds
        """Whether an image, freshly loaded, shows that the element took effect."""
        self.refusal: Refusal | None = None
        """Set when the store refused it."""
        self.begun = 0
        """How many commits with operations of it were sent and not refused: while there is one, it may have taken effect."""
        self.settled = False
        self.job: Job
        self.record: Any = None
        """The journal's, of the decision that this element carries out."""
        self.records_before: Sequence[Any] = ()
        """Of decisions of the same job that write nothing, and were made before this one."""
        self.records_after: Sequence[Any] = ()
        self.notes: list[Any] = []
        """Of decisions of later jobs that write nothing at all."""

    def apply(self, image: Image) -> Image:
        if self.topic is None:
            return image
        after = self.evolve(image.topics.get(self.topic))
        return image.with_topic(after) if after is not None else image.with_topics((), (self.topic,))


class Draft:
    """What a job sees while it plans: the image with everything before it, its own earlier elements included."""

    def __init__(self, image: Image, max_bytes: int, turn: Turn) -> None:
        self.image = image
        self.turn = turn
        """A plan pauses between its elements."""
        self.elements: list[Element] = []
        self.judgements: dict[tuple[str, str], Any] = {}
        """What the policy was asked, by kind and name."""
        self.notes: Sequence[Any] = ()
        """The journal's records of a job that writes nothing."""
        self.disturbances = 0
        """The journal's, when it was planned."""
        self._max_bytes = max_bytes

    def stage(
        self,
        topic: str | None,
        operations: Sequence[Operation],
        *,
        evolve: Callable[[Topic | None], Topic | None] = lambda topic: topic,
        holds: Callable[[Image], bool] = lambda _image: True,
    ) -> Element:
        """Add an element; the next one planned sees its effect. Raises Refusal if the store cannot take one of its operations:
        sent, it would leave everything in doubt that is on its way.
        """
        element = Element(topic, operations, evolve, holds)
        if element.weight > self._max_bytes and (heaviest := max(map(weight, operations))) > self._max_bytes:
            text = f"This takes {heaviest} bytes in one place of the store, which takes {self._max_bytes}."
            raise Refusal(ErrorCode.INVALID_REQUEST, text)
        self.elements.append(element)
        self.image = element.apply(self.image)
        return element


class Job:
    """A request for changes, from its planning to the last of its commits."""

    __slots__ = ("done", "elements", "error", "is_given_up", "open_elements", "plan", "result")

    def __init__(self, plan: Callable[[Draft], Any]) -> None:
        self.plan = plan
        self.result: Any = None
        self.error: BaseException | None = None
        self.elements: list[Element] = []
        self.open_elements = 0
        self.is_given_up = False
        """Nobody waits for it any more: as long as nothing of it is on its way, nothing will be."""
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

    def restarted(self, image: Image) -> None: ...

    def committed(self, before: Image, after: Image, elements: Sequence[Element]) -> None: ...

    def refused(self, element: Element) -> None: ...

    def doubted(self, image: Image | None, element: Element) -> None: ...

    def noted(self, notes: Sequence[Any]) -> None: ...
