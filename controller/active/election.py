"""Standing for controller: who creates `/controller` rules, and whoever rules is fenced by
`/controller_epoch`.

As Kafka does it (KafkaZkClient.registerControllerAndIncrementControllerEpoch): one multi creates
the ephemeral `/controller` and raises the epoch from the value and version that were read, so of
two candidates one wins and the other sees why. The version of the epoch znode is the fencing token
of everything the winner writes.

Rule: only who is registered stands, in the session of its registration: a controller that no broker
can be told of rules nobody. An accident ends the reign and not the node, which then leaves others
the first turn, the longer the more often it happens.
"""

import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

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
from ..store.sessions import wait_connected, wait_expired, while_it_lasts
from ..store.signal import Signal
from ..znodes import layout
from ..znodes.cluster import decode_controller_epoch, encode_controller, encode_controller_epoch
from ..znodes.content import MalformedZnodeError
from .active_controller import ActiveController
from .channel import LinkFactory

if TYPE_CHECKING:
    from ..handlers.node import Node

log = logging.getLogger("minicontroller.controller")

PAUSE_SECONDS = 1.0
"""After an accident, before standing again; doubled by each further one."""
MAX_EPOCH = 2**31 - 1
MAX_PAUSE_SECONDS = 60.0


class Election:
    """Stands for election whenever there is no controller, and rules when elected."""

    def __init__(self, node: "Node", link: LinkFactory, clock_ms: Callable[[], int]) -> None:
        self._node = node
        self._link = link
        self._clock_ms = clock_ms
        self._changed = Signal()
        self._withdrawn = trio.Event()
        self._reigning: ActiveController | None = None
        self._vacated = trio.Event()
        self._pause = PAUSE_SECONDS

    async def run(self) -> None:
        """Stand for election until `withdraw`, or until cancelled."""
        store = self._node.store
        while not self._withdrawn.is_set():
            await wait_connected(store)
            try:
                await self._stand(store.session_id)
            except (StoreUnavailable, SessionExpired) as error:
                log.debug("no election now: %s", error)
                await trio.lowlevel.checkpoint()
            except (MalformedZnodeError, StoreError) as error:
                log.warning("this node cannot stand for controller: %s", error)
                await self._recover()

    async def _stand(self, session_id: int) -> None:
        """Stand once; whoever cannot win waits for what could change that."""
        store = self._node.store
        if not await self._is_registered(session_id):
            await while_it_lasts(store, session_id, self._changed.wait)
            return
        entry = await store.get(layout.CONTROLLER, self._changed.send)
        if entry is None:
            fence_and_epoch = await self._elect()
            if fence_and_epoch is not None:
                await self._reign(*fence_and_epoch, session_id)
        elif entry.stat.ephemeral_owner == session_id:
            await self._give_up_what_was_won_unheard(entry)
        else:
            await while_it_lasts(store, session_id, self._changed.wait)

    async def _is_registered(self, session_id: int) -> bool:
        """Whether the store shows this node registered, with a watch on that: another process may
        have registered under the same id.
        """
        entry = await self._node.store.get(layout.broker_path(self._node.broker_id), self._changed.send)
        return entry is not None and entry.stat.ephemeral_owner == session_id

    async def _recover(self) -> None:
        with trio.move_on_after(self._pause):
            await self._withdrawn.wait()
        self._pause = min(self._pause * 2, MAX_PAUSE_SECONDS)

    async def _give_up_what_was_won_unheard(self, entry: Entry) -> None:
        """Give up a claim of ours that came about unheard, or could not be taken back, to stand
        anew in a new epoch.
        """
        with contextlib.suppress(NodeMissing, VersionConflict):
            await self._node.store.commit([Delete(layout.CONTROLLER, entry.stat.version)])

    async def withdraw(self) -> None:
        """Stand no more, and end a reign in good order. When this returns the place is another
        one's to take.
        """
        self._withdrawn.set()
        self._changed.send()
        if self._reigning is not None:
            self._reigning.step_down()
            await self._vacated.wait()

    async def _elect(self) -> tuple[Check, int] | None:
        """Try once to win the election, and return the fence and the epoch, or None if another one
        won.
        """
        store, broker_id = self._node.store, self._node.broker_id
        entry = await store.get(layout.CONTROLLER_EPOCH)
        if entry is None:
            with contextlib.suppress(NodeExists):
                await store.commit([Create(layout.CONTROLLER_EPOCH, encode_controller_epoch(0))])
            entry = await store.get(layout.CONTROLLER_EPOCH)
        if entry is None:
            return None  # somebody has taken it away again
        epoch, version = self._next_epoch(decode_controller_epoch(entry.data)), entry.stat.version
        claim = encode_controller(broker_id, self._clock_ms())
        try:
            await store.commit(
                [
                    Create(layout.CONTROLLER, claim, ephemeral=True),
                    SetData(layout.CONTROLLER_EPOCH, encode_controller_epoch(epoch), version),
                ]
            )
        except (NodeExists, NodeMissing, VersionConflict):
            return None
        except StoreUnavailable:
            # The multi may have been carried out, and only its answer lost.
            await wait_connected(store)
            claimed, now = (
                await store.get(layout.CONTROLLER, self._changed.send),
                await store.get(layout.CONTROLLER_EPOCH),
            )
            ours = claimed is not None and claimed.data == claim and claimed.stat.ephemeral_owner == store.session_id
            if not ours or now is None or now.stat.version != version + 1:
                return None
        return Check(layout.CONTROLLER_EPOCH, version + 1), epoch

    def _next_epoch(self, stored: int) -> int:
        """Return an epoch after that of the store, and after the one that nodes follow, who would
        believe no lower one if somebody had set the store's back.
        """
        followed = self._node.cache.image.controller_epoch
        if stored < followed < MAX_EPOCH:
            log.warning("%s was set back to %d, and nodes follow epoch %d", layout.CONTROLLER_EPOCH, stored, followed)
            return followed + 1
        return stored + 1

    async def _reign(self, fence: Check, epoch: int, session_id: int) -> None:
        self._node.metrics.elections_won += 1
        controller = self._reigning = ActiveController(self._node, epoch, fence, self._link, self._changed.send)
        self._vacated, began, accident = trio.Event(), trio.current_time(), False
        if self._withdrawn.is_set():
            controller.resign()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch_place, controller, session_id)
                await controller.run()
                nursery.cancel_scope.cancel()
        except Exception:
            log.exception("an accident ended the reign of epoch %d", epoch)
            accident = True
        finally:
            self._reigning = None
            with trio.move_on_after(1, shield=True):
                await self._vacate(fence)
            self._vacated.set()
        if trio.current_time() - began > MAX_PAUSE_SECONDS:
            self._pause = PAUSE_SECONDS
        if accident:
            await self._recover()

    async def _watch_place(self, controller: ActiveController, session_id: int) -> None:
        """Resign when the session is over, or `/controller` or the registration is no
        longer ours.
        """
        store = self._node.store
        async with trio.open_nursery() as nursery:

            async def follow_session() -> None:
                await wait_expired(store, session_id)
                controller.resign()

            nursery.start_soon(follow_session)
            while True:
                try:
                    entry = await store.get(layout.CONTROLLER, self._changed.send)
                    is_registered = await self._is_registered(session_id)
                except StoreUnavailable:
                    await wait_connected(store)
                    continue
                except SessionExpired:
                    controller.resign()
                    return
                if entry is None or entry.stat.ephemeral_owner != session_id or not is_registered:
                    controller.resign()
                await self._changed.wait()

    async def _vacate(self, fence: Check) -> None:
        """Leave the place to another node at once, unless one has it already."""
        try:
            await self._node.store.commit([fence, Delete(layout.CONTROLLER)])
        except (NodeMissing, VersionConflict):
            pass
        except StoreError as error:
            log.info("the controller's place could not be vacated, it ends with the session: %s", error)
