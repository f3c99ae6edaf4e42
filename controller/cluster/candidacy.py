"""Standing for controller: who creates `/controller` rules, and whoever rules is fenced by `/controller_epoch`.

As Kafka does it (KafkaZkClient.registerControllerAndIncrementControllerEpoch): one multi creates the ephemeral `/controller` and raises
the epoch from the value and version that were read, so of two candidates one wins and the other sees why. The version of the epoch
znode is the fencing token of everything the winner writes.
"""

import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from ..store import layout
from ..store.base import (
    Check,
    Create,
    Delete,
    Entry,
    NodeExists,
    NodeMissing,
    SessionExpired,
    SetData,
    StoreError,
    StoreUnavailable,
    VersionConflict,
)
from ..store.sessions import wait_connected, wait_expired
from .active_controller import ActiveController
from .bell import Bell
from .propagation import LinkFactory

if TYPE_CHECKING:
    from ..node import Node

log = logging.getLogger("minicontroller.controller")


class Candidacy:
    """Stands for election whenever there is no controller, and rules when elected."""

    def __init__(self, node: "Node", link: LinkFactory, clock_ms: Callable[[], int]) -> None:
        self._node = node
        self._link = link
        self._clock_ms = clock_ms
        self._moved = Bell()
        self._withdrawn = trio.Event()
        self._reigning: ActiveController | None = None
        self._vacated = trio.Event()

    async def run(self) -> None:
        """Until `withdraw`, or until cancelled."""
        store = self._node.store
        while not self._withdrawn.is_set():
            await wait_connected(store)
            session_id = store.session_id
            try:
                entry = await store.get(layout.CONTROLLER, self._moved.ring)
                if entry is not None and entry.stat.ephemeral_owner == session_id:
                    await self._give_up_what_was_won_unheard(entry)
                    continue
                fence_and_epoch = await self._elect() if entry is None else None
            except (StoreUnavailable, SessionExpired) as error:
                log.debug("no election now: %s", error)
                await trio.lowlevel.checkpoint()
                continue
            if fence_and_epoch is not None:
                await self._reign(*fence_and_epoch, session_id)
            elif entry is not None:
                await self._wait_for_vacancy(session_id)

    async def _give_up_what_was_won_unheard(self, entry: Entry) -> None:
        """Our own claim, of which we do not know how it came about, or which could not be taken back: stand anew, in a new epoch."""
        with contextlib.suppress(NodeMissing, VersionConflict):
            await self._node.store.commit([Delete(layout.CONTROLLER, entry.stat.version)])

    async def withdraw(self) -> None:
        """Stand no more; a reign ends in good order. Returns when the place is another one's to take."""
        self._withdrawn.set()
        self._moved.ring()
        if self._reigning is not None:
            self._reigning.step_down()
            await self._vacated.wait()

    async def _wait_for_vacancy(self, session_id: int) -> None:
        """Until `/controller` changes or the session, and with it the watch, is over."""
        async with trio.open_nursery() as nursery:

            async def end_with_session() -> None:
                await wait_expired(self._node.store, session_id)
                nursery.cancel_scope.cancel()

            nursery.start_soon(end_with_session)
            await self._moved.wait()
            nursery.cancel_scope.cancel()

    async def _elect(self) -> tuple[Check, int] | None:
        """Try once. The fence and the epoch, or None if another one won."""
        store, broker_id = self._node.store, self._node.broker_id
        entry = await store.get(layout.CONTROLLER_EPOCH)
        if entry is None:
            with contextlib.suppress(NodeExists):
                await store.commit([Create(layout.CONTROLLER_EPOCH, layout.encode_controller_epoch(0))])
            entry = await store.get(layout.CONTROLLER_EPOCH)
        assert entry is not None
        epoch, version = layout.decode_controller_epoch(entry.data) + 1, entry.stat.version
        claim = layout.encode_controller(broker_id, self._clock_ms())
        try:
            await store.commit(
                [
                    Create(layout.CONTROLLER, claim, ephemeral=True),
                    SetData(layout.CONTROLLER_EPOCH, layout.encode_controller_epoch(epoch), version),
                ]
            )
        except (NodeExists, NodeMissing, VersionConflict):
            return None
        except StoreUnavailable:
            # The multi may have been carried out, and only its answer lost.
            await wait_connected(store)
            claimed, now = (
                await store.get(layout.CONTROLLER, self._moved.ring),
                await store.get(layout.CONTROLLER_EPOCH),
            )
            ours = claimed is not None and claimed.data == claim and claimed.stat.ephemeral_owner == store.session_id
            if not ours or now is None or now.stat.version != version + 1:
                return None
        return Check(layout.CONTROLLER_EPOCH, version + 1), epoch

    async def _reign(self, fence: Check, epoch: int, session_id: int) -> None:
        self._node.metrics.elections_won += 1
        controller = self._reigning = ActiveController(self._node, epoch, fence, self._link)
        if self._withdrawn.is_set():
            controller.resign()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch_place, controller, session_id)
                await controller.run()
                nursery.cancel_scope.cancel()
        finally:
            self._reigning = None
            with trio.move_on_after(1, shield=True):
                await self._vacate(fence)
            self._vacated.set()

    async def _watch_place(self, controller: ActiveController, session_id: int) -> None:
        """Resign when the session is over or `/controller` is no longer ours."""
        store = self._node.store
        async with trio.open_nursery() as nursery:

            async def follow_session() -> None:
                await wait_expired(store, session_id)
                controller.resign()

            nursery.start_soon(follow_session)
            while True:
                try:
                    entry = await store.get(layout.CONTROLLER, self._moved.ring)
                except StoreUnavailable:
                    await wait_connected(store)
                    continue
                except SessionExpired:
                    controller.resign()
                    return
                if entry is None or entry.stat.ephemeral_owner != session_id:
                    controller.resign()
                await self._moved.wait()

    async def _vacate(self, fence: Check) -> None:
        """Leave the place to another one at once, unless it is his already."""
        try:
            await self._node.store.commit([fence, Delete(layout.CONTROLLER)])
        except (NodeMissing, VersionConflict):
            pass
        except StoreError as error:
            log.info("the controller's place could not be vacated, it ends with the session: %s", error)
