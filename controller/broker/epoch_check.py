"""What a node was told of who rules, held against the store.

Rule: a node believes the newest controller that it hears of, so that an election is known as fast
as it is told; and then looks whether the store has elected one in that epoch. If it has not, the
node takes for the controller whom the store names: whatever told it otherwise has deposed nobody,
and has not made it deaf either. While the store cannot be read what was told holds.
"""

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

import trio

from ..metadata.image import NO_CONTROLLER, Image, Topic
from ..store.base import SessionExpired, StoreUnavailable
from ..store.sessions import wait_connected
from ..znodes import layout

if TYPE_CHECKING:
    from ..handlers.node import Node

log = logging.getLogger("minicontroller.node")

PAUSE_SECONDS = 1.0
"""Between two looks, however often a reason for one is given."""


class RuleCheck:
    """Checks for a node who rules, whenever the epoch changes or a request came that is older than
    it.
    """

    def __init__(self, node: "Node") -> None:
        self._node = node
        node.cache.on_change(self._look)

    def _look(self, before: Image, after: Image, _changed: Collection[Topic]) -> None:
        if after.controller_epoch != before.controller_epoch:
            self._node.cache.epoch_doubted.send()

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            await self._node.cache.epoch_doubted.wait()
            await wait_connected(self._node.store)
            try:
                await self._compare()
            except (StoreUnavailable, SessionExpired):
                self._node.cache.epoch_doubted.send()
            await trio.sleep(PAUSE_SECONDS)

    async def _compare(self) -> None:
        cache, store = self._node.cache, self._node.store
        told = cache.image.controller_epoch
        await store.sync()
        epoch_entry, controller_entry = await store.get_many([layout.CONTROLLER_EPOCH, layout.CONTROLLER])
        try:
            epoch = 0 if epoch_entry is None else layout.decode_controller_epoch(epoch_entry.data)
            ruling = (
                NO_CONTROLLER if controller_entry is None else layout.decode_controller(controller_entry.data).broker_id
            )
        except layout.LayoutError as error:
            log.warning("whether the controller that this node was told of was elected cannot be read: %s", error)
            return
        if told > epoch and cache.image.controller_epoch == told:
            log.error(
                "this node was told of a controller of epoch %d, and the newest that was elected has %d", told, epoch
            )
            cache.apply(controller_id=ruling, controller_epoch=epoch, brokers=None)
