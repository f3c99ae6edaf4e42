"""Requests on their way into the audit log.

An audited request holds the planned changes of one request, by the elements that decide them, from
their planning until the writer completes the elements and the recorder gives each its place in the
log. A request that is planned in parts has one of these for each part.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Final, Protocol

import msgspec
import trio

from ..errors import Refusal
from ..metadata.entities import Topic
from ..metadata.image import Image
from ..requests.changes import Change
from ..requests.context import RequestContext

NO_IMAGE: Final = Image()


class CompletedElement(Protocol):
    """An element of the writer, as far as the audit log reads it."""

    @property
    def topic(self) -> str | None:
        """The topic that it changes, if it changes one."""

    @property
    def evolve(self) -> Callable[[Topic | None], Topic | None]:
        """Makes of the topic before this element the topic after it."""

    @property
    def refusal(self) -> Refusal | None: ...

    @property
    def is_decision_only(self) -> bool:
        """Whether it was refused or only validated by its plan."""

    @property
    def request(self) -> "AuditedRequest | None":
        """None for what the controller changes by itself, and for what others wrote."""


class UndonePlans(msgspec.Struct):
    """Topics that plans saw as they never became, because elements did not take effect."""

    count: int = 0
    """How often elements did not take effect as they were planned."""
    topics: dict[str, int] = {}
    """The topics that these elements would have changed, with the last count at which they did."""

    def add(self, topics: Collection[str]) -> None:
        self.count += 1
        self.topics.update(dict.fromkeys(topics, self.count))

    def since(self, count: int) -> list[str]:
        """Return the topics of the elements after this count, sorted."""
        return sorted(name for name, last in self.topics.items() if last > count)


class AuditedRequest(msgspec.Struct):
    """A part of a request, until each of its changes has a place in the log."""

    number: int
    context: RequestContext
    validate_only: bool
    undone: UndonePlans = msgspec.field(default_factory=UndonePlans)
    """The recorder's."""
    first: int = 0
    """The index in the request of the first element of this part."""
    elements: int = 0
    """How many elements the request has."""
    recorded: int = 0
    """How many elements this part has."""
    image: Image = NO_IMAGE
    """The image with everything in effect that was planned before the changes of this part."""
    undone_count: int = 0
    """How many plans were undone by the time that this part was planned."""
    is_refused: bool = False
    """Whether the plan failed as a whole."""
    ordinal: int = 0
    """The last place of its changes, as the log counts them."""
    _open: dict[CompletedElement, tuple[int, Change]] = {}
    _placed: trio.Event | None = None

    def planned(self, changes: Iterable[tuple[CompletedElement, Change]], image: Image, *, elements_left: int) -> None:
        """Hold the changes of a plan with their elements, instead of those of any earlier plan;
        `elements_left` elements of the request are for later parts.
        """
        self._open = {element: (index, change) for index, (element, change) in enumerate(changes, self.first)}
        self.recorded = len(self._open)
        self.elements = self.first + self.recorded + elements_left
        self.image = image
        self.undone_count = self.undone.count

    def is_done(self, element: CompletedElement) -> bool:
        """Whether the node that received the request has carried out the change of an element."""
        held = self._open.get(element)
        return held is not None and held[1].is_done

    def take(self, element: CompletedElement) -> tuple[int, Change] | None:
        """Remove an element, and return its index in the request and its change."""
        return self._open.pop(element, None)

    def placed(self, change: Change, ordinal: int, sequence: int) -> None:
        """Note the place in the log of a change that was taken; places come in order."""
        change.sequence = sequence
        self.ordinal = ordinal
        if self._placed is not None and not self._open:
            self._placed.set()

    def next_part(self) -> "AuditedRequest":
        """Begin the next part of the request."""
        return AuditedRequest(
            self.number, self.context, self.validate_only, self.undone, first=self.first + self.recorded
        )

    async def wait_placed(self) -> None:
        """Wait until each change has its place in the log: a change that writes nothing may follow
        others.
        """
        if self._open:
            self._placed = trio.Event()
            await self._placed.wait()
