"""Checks the controller epoch that a node was sent against the one in the store.

Rule: a node follows the highest controller epoch that it is sent, so that it learns of an election
as soon as possible, and then reads `/controller_epoch`. If the store has a lower epoch, no such
controller was elected, and the node follows the controller that `/controller` names. While the
store cannot be read, the node keeps following the epoch it was sent.
"""

import logging

import trio

from ...cluster.cache import ImageChanges, MetadataCache
from ...cluster.image import NO_CONTROLLER, Image
from ...cluster.znodes import layout
from ...cluster.znodes.cluster import decode_controller, decode_controller_epoch
from ...cluster.znodes.content import MalformedZnodeError
from ...store.base import SessionExpired, Store, StoreUnavailable
from ...store.sessions import wait_connected

log = logging.getLogger("minicontroller.node")

PAUSE_SECONDS = 1.0
"""The pause between two checks, however often the epoch is doubted."""


class EpochCheck:
    """Checks a node's controller epoch when it changes, and when an older one arrives."""

    def __init__(self, cache: MetadataCache, store: Store) -> None:
        self._cache = cache
        self._store = store
        cache.on_change(self._image_changed)

    def _image_changed(self, before: Image, after: Image, _changes: ImageChanges) -> None:
        if after.controller_epoch != before.controller_epoch:
            self._cache.epoch_doubted.send()

    async def run(self) -> None:
        while True:
            await self._cache.epoch_doubted.wait()
            await wait_connected(self._store)
            try:
                await self._compare()
            except (StoreUnavailable, SessionExpired):
                self._cache.epoch_doubted.send()
            await trio.sleep(PAUSE_SECONDS)

    async def _compare(self) -> None:
        cache, store = self._cache, self._store
        followed = cache.image.controller_epoch
        await store.sync()
        epoch_entry, controller_entry = await store.get_many([layout.CONTROLLER_EPOCH, layout.CONTROLLER])
        try:
            epoch = 0 if epoch_entry is None else decode_controller_epoch(epoch_entry.data)
            controller_id = (
                NO_CONTROLLER if controller_entry is None else decode_controller(controller_entry.data).broker_id
            )
        except MalformedZnodeError as error:
            log.warning("whether the controller that this node was told of was elected cannot be read: %s", error)
            return
        if followed > epoch and cache.image.controller_epoch == followed:
            log.error(
                "this node was told of a controller of epoch %d, and the newest that was elected has %d",
                followed,
                epoch,
            )
            cache.apply(controller_id=controller_id, controller_epoch=epoch, brokers=None)
