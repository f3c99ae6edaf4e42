"""A node's own view of the cluster: what the controller last told it.

Rule: the cache is fed by UpdateMetadata alone (on the controller's own node by the same content
without the wire), and reads answer from it alone. Whoever waits for a change of the cluster waits
here: `apply` wakes them, nobody polls. What a client of this node was told is done no reader is
answered without: until the controller's word of it comes, reads wait (K4-6). A controller that is
lost, or cut off from this node, holds them up once and not for long.

Changes have numbers, which a controller counts from its epoch on (`first_number`): those of its
successors are larger.
"""

from collections.abc import Callable, Collection, Iterable

import msgspec
import trio

from ..store.signal import Signal
from .completion import Waiters
from .image import Broker, Image, Topic

EXPECTED_SECONDS = 3.0
"""How long readers wait for the controller's word of what it has acknowledged. It is on its way
when the answer is; if the controller is lost, a node may be behind until there is another one.
"""


def first_number(controller_epoch: int) -> int:
    """Return the number of a controller's first change. Whoever follows it has heard of all that
    its predecessors have acknowledged.
    """
    return controller_epoch << 32


class MetadataCache:
    """The current `Image` of a node, and the waiters for the next ones."""

    def __init__(self) -> None:
        self.image = Image()
        self.waiters = Waiters()
        self.epoch_doubted = Signal()
        """Sent when the controller epoch changes, or a request arrives with an older one."""
        self._listeners: list[Callable[[Image, Image, Collection[Topic]], None]] = []
        self._heard = self._expected = -1
        """Numbers of changes: the newest that the image holds, and the newest that a client knows
        of by an answer of the controller.
        """
        self._in_vain: int | None = None
        """What was heard when readers had waited in vain: until more is, none of them waits again.
        """
        self._hearing = trio.lowlevel.ParkingLot()

    def on_change(self, listener: Callable[[Image, Image, Collection[Topic]], None]) -> None:
        """Call `listener(before, after, changed_topics)` after each change, in the event loop's
        thread.
        """
        self._listeners.append(listener)

    def apply(
        self,
        *,
        controller_id: int,
        controller_epoch: int,
        brokers: Iterable[Broker] | None,
        changed: Iterable[Topic] = (),
        removed: Iterable[str] = (),
    ) -> None:
        """Move the image on. `brokers` replaces all of them (None: no change); topics are merged by
        name.
        """
        before = self.image
        changed, removed = list(changed), list(removed)
        if len(changed) == 1 and not removed:
            image = before.with_topic(changed[0])
        else:
            image = before.with_topics(changed, removed) if changed or removed else before
        if brokers is not None:
            image = image.with_brokers(brokers)
        if (image.controller_id, image.controller_epoch) != (controller_id, controller_epoch):
            image = msgspec.structs.replace(image, controller_id=controller_id, controller_epoch=controller_epoch)
        self.become(image, changed, removed)

    def become(self, image: Image, changed: Collection[Topic], removed: Iterable[str]) -> None:
        """Take over an image that another cache made of the same change: these topics differ from
        what is here, and those are gone.
        """
        before, self.image = self.image, image
        self.waiters.wake(topic.name for topic in changed)
        self.waiters.wake(removed)
        if image.controller_epoch != before.controller_epoch or image.brokers is not before.brokers:
            self.waiters.wake_cluster()
        if image.controller_epoch != before.controller_epoch:
            self._in_vain = None
        if image.controller_epoch < before.controller_epoch:  # the count of epochs was set back
            self._heard = self._expected = -1
            self._hearing.unpark_all()
        for listener in self._listeners:
            listener(before, image, changed)

    def heard(self, number: int) -> None:
        """Note that the image holds all changes up to this one."""
        if number > self._heard:
            self._heard = number
            self._hearing.unpark_all()

    def expect(self, number: int) -> None:
        """Note that a client of this node is told what this change has brought about."""
        self._expected = max(number, self._expected)

    @property
    def is_behind(self) -> bool:
        """Whether a client of this node knows more than the image holds."""
        return self._expected > self._heard != self._in_vain

    async def wait_heard(self) -> None:
        """Wait until the image holds what clients of this node know of now, or EXPECTED_SECONDS are
        over.
        """
        expected = self._expected
        with trio.move_on_after(EXPECTED_SECONDS):
            while self.is_behind and self._heard < expected:
                await self._hearing.park()
            return
        self._in_vain = self._heard
        self._hearing.unpark_all()

    async def wait_topic(self, name: str, reached: Callable[[Image], bool]) -> None:
        """Wait until `reached` holds; it is asked now and whenever the topic changes. The caller
        sets the deadline.
        """
        while not reached(self.image):
            await self.waiters.wait(name)

    async def wait_cluster(self, reached: Callable[[Image], bool]) -> None:
        """Wait until `reached` holds; it is asked now and whenever the brokers or the controller
        change.
        """
        while not reached(self.image):
            await self.waiters.wait_cluster()
