"""A node's own image of the cluster, and who is called when it changes.

Rule: topics and brokers come from the active controller alone, by UpdateMetadata or, within its
process, by call. Entities (configs, ACLs, tokens, groups) come from the store, which each node
reads itself; within its process the controller gives them with the rest, so that its nodes share
one image. All reads are answered from the image. What is derived from it is kept by listeners.
Tasks that wait for a change of the cluster wait here; nothing polls.

The active controller numbers its updates, starting at `first_update_number` of its epoch. The
response to a forwarded change carries the number of the newest update, and reads at this node wait
until the image holds that update (K4-6), for EXPECTED_UPDATE_SECONDS at most: the controller may be
lost, or cut off from this node.
"""

import logging
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec
import trio
from immutables import Map

from ..store.signal import Signal
from .entities import Broker, Topic
from .entity_paths import Entity, differences, entity_of, with_changes
from .image import Image

log = logging.getLogger("minicontroller.node")

EXPECTED_UPDATE_SECONDS = 3.0
"""How long reads wait for an update that the controller has acknowledged to a client. It is sent
at about the same time as the response; if the controller is lost, the node may be behind until
another one is elected.
"""

_CLUSTER = ""
"""The key of waiters for brokers and controllers; no topic has this name."""


class Waiters:
    """Waiting tasks by the name of their topic. A cancelled one leaves nothing behind."""

    def __init__(self) -> None:
        self._lots: dict[str, trio.lowlevel.ParkingLot] = {}

    def __len__(self) -> int:
        return sum(len(lot) for lot in self._lots.values())

    async def wait(self, name: str) -> None:
        """Wait until the topic is named in `wake`. Cancellable."""
        lot = self._lots.get(name)
        if lot is None:
            lot = self._lots[name] = trio.lowlevel.ParkingLot()
        try:
            await lot.park()
        finally:
            if not lot and self._lots.get(name) is lot:
                del self._lots[name]

    def wake(self, names: Iterable[str]) -> None:
        """Wake all tasks that wait for one of these topics."""
        if not self._lots:
            return
        for name in names:
            lot = self._lots.get(name)
            if lot is not None:
                lot.unpark_all()

    async def wait_cluster(self) -> None:
        """Wait until `wake_cluster`. Cancellable."""
        await self.wait(_CLUSTER)

    def wake_cluster(self) -> None:
        self.wake((_CLUSTER,))


def first_update_number(controller_epoch: int) -> int:
    """Return the number of the first update in a controller epoch. It is larger than those of all
    earlier epochs, and a node that has it holds everything that earlier controllers acknowledged.
    """
    return controller_epoch << 32


class ImageChanges(msgspec.Struct, frozen=True):
    """The differences of an image from the one before it."""

    topics: Sequence[Topic] = ()
    removed: Collection[str] = ()
    """The names of topics that are gone."""
    entities: Mapping[str, Entity | None] = Map()
    """The entities that were written, by path, whether or not this node knew them so already."""


Listener = Callable[[Image, Image, ImageChanges], None]
"""Called with the image before, the image after, and what has changed."""


class MetadataCache:
    """The current `Image` of a node, and the waiters for the next ones."""

    def __init__(self) -> None:
        self.image = Image()
        self.shared: Image | None = None
        """The image that the controller of this process gave to this node, as it was given; None if
        another controller has changed the node's image since.
        """
        self.replacements = 0
        """How often the controller of this process has replaced the whole image."""
        self._ahead: dict[str, Entity | None] = {}
        """The entities that this node has read from the store and the shared image has not."""
        self.waiters = Waiters()
        self.epoch_doubted = Signal()
        """Sent when the controller epoch changes, or a request arrives with an older one."""
        self._listeners: list[Listener] = []
        self._updated_to = self._expected = -1
        """Update numbers: the newest that the image holds, and the newest that a response of the
        controller to a client of this node has carried.
        """
        self._timed_out_at: int | None = None
        """The number the image had been updated to when reads last waited too long: until it is
        updated further, no read waits again.
        """
        self._updates = trio.lowlevel.ParkingLot()

    def on_change(self, listener: Listener) -> None:
        """Call `listener` after each change, in the event loop's thread and in the time slice in
        which the image changes, in the order of these calls.
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
        entities: Mapping[str, Entity | None] = Map(),
    ) -> None:
        """Move this node's own image on. `brokers` replaces all of them (None: no change); topics
        are merged by name, entities by path.
        """
        self.shared = None
        self._ahead.clear()
        before = self.image
        changes = ImageChanges(list(changed), list(removed), entities)
        image = with_changes(before.with_changed_topics(changes.topics, changes.removed), entities)
        if brokers is not None:
            image = image.with_brokers(brokers)
        if (image.controller_id, image.controller_epoch) != (controller_id, controller_epoch):
            image = msgspec.structs.replace(image, controller_id=controller_id, controller_epoch=controller_epoch)
        self._become(image, changes)

    def share(self, image: Image, changes: ImageChanges) -> None:
        """Take over the next image that the controller of this process gives to all of its nodes,
        with what this node alone has read of other entities.
        """
        self.shared = image
        self._ahead = {
            path: entity
            for path, entity in self._ahead.items()
            if path not in changes.entities and entity_of(image, path) != entity
        }
        self._become(with_changes(image, self._ahead) if self._ahead else image, changes)

    def replace(self, image: Image) -> None:
        """Take over the image of the controller of this process in place of all that is known."""
        self.replacements += 1
        self._ahead.clear()
        removed = [name for name in self.image.topics if name not in image.topics]
        self.share(image, ImageChanges(list(image.topics.values()), removed, differences(self.image, image)))

    def read(self, found: Mapping[str, Entity | None]) -> None:
        """Take over entities as this node has read them from the store."""
        changed = {path: entity for path, entity in found.items() if entity_of(self.image, path) != entity}
        if changed:
            if self.shared is not None:
                self._ahead.update(changed)
            self._become(with_changes(self.image, changed), ImageChanges(entities=changed))

    def _become(self, image: Image, changes: ImageChanges) -> None:
        before, self.image = self.image, image
        self.waiters.wake(topic.name for topic in changes.topics)
        self.waiters.wake(changes.removed)
        if image.controller_epoch != before.controller_epoch or image.brokers is not before.brokers:
            self.waiters.wake_cluster()
        if image.controller_epoch != before.controller_epoch:
            self._timed_out_at = None
        if image.controller_epoch < before.controller_epoch:  # the count of epochs was set back
            self._updated_to = self._expected = -1
            self._updates.unpark_all()
        for listener in self._listeners:
            _call(listener, before, image, changes)

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


def _call(listener: Listener, before: Image, after: Image, changes: ImageChanges) -> None:
    """Call a listener. If a defect of it raises, that is logged and the node goes on following; the
    text of the exception is left out, since it may quote a secret.
    """
    try:
        listener(before, after, changes)
    except Exception as error:  # noqa: BLE001 - what others write must not stop a node
        place = traceback.extract_tb(error.__traceback__)[-1]
        what = type(error).__name__
        log.error("a change is not in force: %s at %s:%d", what, place.filename, place.lineno or 0)  # noqa: TRY400 - the reason is above
