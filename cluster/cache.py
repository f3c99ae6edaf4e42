"""A node's own view of the cluster, which the active controller keeps up to date.

Rule: only UpdateMetadata changes the cache (a node in the active controller's process gets the same
content by call), and all reads are answered from it. Tasks that wait for a change of the cluster
wait here and are woken by `apply`; nothing polls.

The active controller numbers its updates, starting at `first_update_number` of its epoch. The
response to a forwarded change carries the number of the newest update, and reads at this node wait
until the image holds that update (K4-6), for EXPECTED_UPDATE_SECONDS at most: the controller may be
lost, or cut off from this node.
"""

from collections.abc import Callable, Collection, Iterable

import msgspec
import trio

from ..store.signal import Signal
from .completion import Waiters
from .entities import Broker, Topic
from .image import Image

EXPECTED_UPDATE_SECONDS = 3.0
"""How long reads wait for an update that the controller has acknowledged to a client. It is sent
at about the same time as the response; if the controller is lost, the node may be behind until
another one is elected.
"""


def first_update_number(controller_epoch: int) -> int:
    """Return the number of the first update in a controller epoch. It is larger than those of all
    earlier epochs, and a node that has it holds everything that earlier controllers acknowledged.
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
        self._updated_to = self._expected = -1
        """Update numbers: the newest that the image holds, and the newest that a response of the
        controller to a client of this node has carried.
        """
        self._timed_out_at: int | None = None
        """The number the image had been updated to when reads last waited too long: until it is
        updated further, no read waits again.
        """
        self._updates = trio.lowlevel.ParkingLot()

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
            self._timed_out_at = None
        if image.controller_epoch < before.controller_epoch:  # the count of epochs was set back
            self._updated_to = self._expected = -1
            self._updates.unpark_all()
        for listener in self._listeners:
            listener(before, image, changed)

    def updated_to(self, number: int) -> None:
        """Note that the image holds all updates up to this number."""
        if number > self._updated_to:
            self._updated_to = number
            self._updates.unpark_all()

    def expect_update(self, number: int) -> None:
        """Note that a client of this node is sent a response which rests on this update."""
        self._expected = max(number, self._expected)

    @property
    def is_behind(self) -> bool:
        """Whether a client of this node has seen a newer update than the image holds, and reads
        should wait for it.
        """
        return self._expected > self._updated_to != self._timed_out_at

    async def wait_expected_update(self) -> None:
        """Wait until the image holds the newest update that clients of this node have seen so far,
        for EXPECTED_UPDATE_SECONDS at most.
        """
        expected = self._expected
        with trio.move_on_after(EXPECTED_UPDATE_SECONDS):
            while self.is_behind and self._updated_to < expected:
                await self._updates.park()
            return
        self._timed_out_at = self._updated_to
        self._updates.unpark_all()

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
