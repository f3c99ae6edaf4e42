"""Requests whose decisions are on their way into the audit log.

An audited request holds the planned changes of one request by element, from their planning until
the recorder gives each completed element its place in the log. A request that is planned in parts
has one audited request for each part.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec
import trio

from ...cluster.image import Image
from ...protocol.error_codes import ErrorCode
from ..changes import Element, Outcome
from ..description import RequestDescription

NO_IMAGE: Final = Image()
DENIALS: Final = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)
"""The codes of refusals for lack of a permission."""


MOST_REMEMBERED = 1_000
"""How many undone topics are remembered before those that nobody needs are forgotten."""


class UndonePlans(msgspec.Struct):
    """The topics that plans saw in a state that never came to be, because elements did not take
    effect.
    """

    count: int = 0
    """The number of calls of `add`."""
    topics: dict[str, int] = {}
    """The topics that these elements would have changed, each with the `count` at which it was last
    added.
    """

    def add(self, topics: Collection[str]) -> None:
        self.count += 1
        self.topics.update(dict.fromkeys(topics, self.count))

    def forget_before(self, count: int) -> None:
        """Forget topics that were added up to this count, if there are many."""
        if len(self.topics) > MOST_REMEMBERED:
            self.topics = {name: last for name, last in self.topics.items() if last > count}

    def since(self, count: int) -> list[str]:
        """Return the topics that were added after this count, sorted by name."""
        return sorted(name for name, last in self.topics.items() if last > count)


class AuditedRequest(msgspec.Struct):
    """A part of a request, until each of its changes has its place in the log."""

    number: int
    context: RequestDescription
    validate_only: bool
    undone: UndonePlans = msgspec.field(default_factory=UndonePlans)
    """The undone plans of this controller epoch, shared with the recorder."""
    first: int = 0
    """The index within the request of the first element of this part."""
    elements: int = 0
    recorded: int = 0
    """The number of elements of this part."""
    image: Image = NO_IMAGE
    """The image with all elements in effect that were planned before this part."""
    undone_count: int = 0
    """The count of undone plans when this part was planned."""
    is_refused: bool = False
    """Whether the plan failed as a whole."""
    denials: int = 0
    """The number of its elements so far that were refused for lack of a permission."""
    ordinal: int = 0
    """The ordinal in the log of the last of its events."""
    _before: "AuditedRequest | None" = None
    """The part before this one, which may be planned again with another number of changes."""
    _open: dict[Element, tuple[int, Outcome]] = {}
    _further: dict[Element, list[Outcome]] = {}
    """The changes that share an element with the one before them, because all were denied."""
    _placed: trio.Event | None = None

    def planned(self, outcomes: Iterable[tuple[Element, Outcome]], image: Image, *, elements_left: int) -> None:
        """Hold the changes of a plan with their elements, instead of those of an earlier plan.
        `elements_left` elements of the request are left for later parts.
        """
        if self._before is not None:
            self.first = self._before.first + self._before.recorded
        self._open, self._further, self.recorded = {}, {}, 0
        for index, (element, outcome) in enumerate(outcomes, self.first):
            if element in self._open:
                self._further.setdefault(element, []).append(outcome)
            else:
                self._open[element] = (index, outcome)
            self.recorded += 1
        self.elements = self.first + self.recorded + elements_left
        self.image = image
        self.undone_count = self.undone.count

    def is_done(self, element: Element) -> bool:
        """Return whether the node that received the request has carried out the change of an
        element.
        """
        held = self._open.get(element)
        return held is not None and held[1].is_done

    def has_next_denial(self, element: Element) -> bool:
        """Return whether an element belongs to this part and was refused for lack of a permission,
        before the policy was asked about it.
        """
        held = self._open.get(element)
        if held is None or held[1].judgement is not None:
            return False
        refusal = held[1].refusal or element.refusal
        return refusal is not None and refusal.code in DENIALS

    def take(self, element: Element) -> tuple[int, Outcome] | None:
        """Remove an element, and return its index in the request and its change."""
        return self._open.pop(element, None)

    def take_further(self, element: Element) -> Sequence[Outcome]:
        """Remove the changes that share an element with the one that `take` returns, and return
        them.
        """
        return self._further.pop(element, ()) if self._further else ()

    def placed(self, outcome: Outcome, ordinal: int, sequence: int) -> None:
        """Note the place in the log of a change that was taken. Places are given in order."""
        outcome.sequence = sequence
        self.ordinal = ordinal
        if self._placed is not None and not self._open:
            self._placed.set()

    def next_part(self) -> "AuditedRequest":
        return AuditedRequest(
            self.number,
            self.context,
            self.validate_only,
            self.undone,
            first=self.first + self.recorded,
            denials=self.denials,
            _before=self,
        )

    async def wait_placed(self) -> None:
        """Wait until each change has its place in the log. Changes that write nothing may come
        later than the others.
        """
        if self._open:
            self._placed = trio.Event()
            await self._placed.wait()
