"""The election of the active controller: the node that creates `/controller` is elected.

As in Kafka (KafkaZkClient.registerControllerAndIncrementControllerEpoch), one multi creates the
ephemeral `/controller` and raises `/controller_epoch` from the value and version that were read, so
one of two candidates wins. Every later commit of the winner checks the new version of the epoch
znode.

Rule: a broker stands for election only while it is registered, and in the session of its
registration, because clients are sent only to registered brokers. A process that is no broker may
stand as well. An unexpected error ends the controller and not the process, which then waits before
it stands again, longer each time.
"""

import contextlib
import logging
from collections.abc import Callable

import trio

from ...clock import now_ms
from ...cluster.errors import first_of
from ...cluster.znodes import layout
from ...cluster.znodes.cluster import decode_controller_epoch, encode_controller, encode_controller_epoch
from ...cluster.znodes.content import MalformedZnodeError
from ...store.base import (
    AccessDenied,
    Check,
    Create,
    Delete,
    Entry,
    NodeExists,
    NodeMissing,
    SessionExpired,
    SetData,
    Store,
    StoreError,
    StoreUnavailable,
    VersionConflict,
)
from ...store.sessions import wait_connected, wait_expired, wait_within_session
from ...store.signal import Signal
from .active_controller import ActiveController, WonElection

log = logging.getLogger("minicontroller.controller")

PAUSE_SECONDS = 1.0
"""The pause before a node stands again after an unexpected error; each further error doubles it."""
MAX_PAUSE_SECONDS = 60.0
MAX_EPOCH = 2**31 - 1


MakeController = Callable[[WonElection, Callable[[], None]], ActiveController]
"""Makes the controller of an epoch. The function that it is given is to be called when a broker
answers that it follows another controller.
"""


class Election:
    """Stands for election whenever there is no active controller, and runs it when elected."""

    def __init__(
        self,
        store: Store,
        broker_id: int,
        make_controller: MakeController,
        *,
        registration: str | None = None,
        followed_epoch: Callable[[], int] = lambda: 0,
    ) -> None:
        """Prepare to stand with this id. `registration` is the path of the broker's registration,
        or None for a process that is no broker. `followed_epoch` returns the highest epoch that the
        process knows from others.
        """
        self.controller: ActiveController | None = None
        """The active controller while it runs in this process, else None."""
        self._store = store
        self._broker_id = broker_id
        self._make_controller = make_controller
        self._registration = registration
        self._followed_epoch = followed_epoch
        self._changed = Signal()
        self._withdrawn = trio.Event()
        self._vacated = trio.Event()
        """Set when the controller of this process has ended and `/controller` is free."""
        self._pause = PAUSE_SECONDS

    async def run(self) -> None:
        store = self._store
        while not self._withdrawn.is_set():
            await wait_connected(store)
            try:
                await self._stand(store.session_id)
            except (StoreUnavailable, SessionExpired) as error:
                log.debug("the election waits for the store: %s", error)
                await trio.lowlevel.checkpoint()
            except (MalformedZnodeError, StoreError) as error:
                log.warning("this node cannot take part in the election: %s", error)
                await self._recover()

    async def _stand(self, session_id: int) -> None:
        """Stand once, or wait for a change if this node cannot win now."""
        store = self._store
        if not await self._is_registered(session_id):
            await wait_within_session(store, session_id, self._changed.wait)
            return
        entry = await store.get(layout.CONTROLLER, self._changed.send)
        if entry is None:
            won = await self._elect()
            if won is not None:
                await self._run_controller(won, session_id)
        elif entry.stat.ephemeral_owner == session_id:
            await self._give_up_unconfirmed_claim(entry)
        else:
            await wait_within_session(store, session_id, self._changed.wait)

    async def _is_registered(self, session_id: int) -> bool:
        """Return whether the store has this broker's registration, and watch it, because another
        process may register under the same id. A process that is no broker needs none.
        """
        if self._registration is None:
            return True
        entry = await self._store.get(self._registration, self._changed.send)
        return entry is not None and entry.stat.ephemeral_owner == session_id

    async def _recover(self) -> None:
        with trio.move_on_after(self._pause):
            await self._withdrawn.wait()
        self._pause = min(self._pause * 2, MAX_PAUSE_SECONDS)

    async def _give_up_unconfirmed_claim(self, entry: Entry) -> None:
        """Delete a `/controller` of this session whose creation was never confirmed, or that could
        not be deleted, to stand again in a new epoch.
        """
        with contextlib.suppress(NodeMissing, VersionConflict):
            await self._store.commit([Delete(layout.CONTROLLER, entry.stat.version)])

    async def withdraw(self) -> None:
        """Stand for election no more, and have a running controller step down. When this method
        returns, another node can be elected.
        """
        self._withdrawn.set()
        self._changed.send()
        if self.controller is not None:
            self.controller.step_down()
            await self._vacated.wait()

    async def _elect(self) -> WonElection | None:
        """Try once to win the election. Return None if another process won."""
        store, broker_id = self._store, self._broker_id
        entry = await store.get(layout.CONTROLLER_EPOCH)
        if entry is None:
            with contextlib.suppress(NodeExists):
                await store.commit([Create(layout.CONTROLLER_EPOCH, encode_controller_epoch(0))])
            entry = await store.get(layout.CONTROLLER_EPOCH)
        if entry is None:
            return None  # another process has removed it again
        epoch, version = self._next_epoch(decode_controller_epoch(entry.data)), entry.stat.version
        claim = encode_controller(broker_id, now_ms())
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
            # The multi may have taken effect although its answer was lost.
            await wait_connected(store)
            claimed, now = (
                await store.get(layout.CONTROLLER, self._changed.send),
                await store.get(layout.CONTROLLER_EPOCH),
            )
            ours = claimed is not None and claimed.data == claim and claimed.stat.ephemeral_owner == store.session_id
            if not ours or now is None or now.stat.version != version + 1:
                return None
        return WonElection(broker_id, epoch, Check(layout.CONTROLLER_EPOCH, version + 1))

    def _next_epoch(self, stored: int) -> int:
        """Return an epoch above the one in the store and above the one that nodes follow, because
        nodes would ignore a lower one if the store's epoch had been set back.
        """
        followed = self._followed_epoch()
        if stored < followed < MAX_EPOCH:
            log.warning("%s was set back to %d, while nodes follow epoch %d", layout.CONTROLLER_EPOCH, stored, followed)
            return followed + 1
        return stored + 1

    async def _run_controller(self, won: WonElection, session_id: int) -> None:
        controller = self.controller = self._make_controller(won, self._changed.send)
        self._vacated, began, failed = trio.Event(), trio.current_time(), False
        if self._withdrawn.is_set():
            controller.resign()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch_claim, controller, session_id)
                await controller.run()
                nursery.cancel_scope.cancel()
        except Exception as error:
            if isinstance(denied := first_of(error), AccessDenied):
                log.error("this controller's epoch %d ended: %s", won.epoch, denied)  # noqa: TRY400 - it is no defect
            else:
                log.exception("an unexpected error ended this controller's epoch %d", won.epoch)
            failed = True
        finally:
            self.controller = None
            with trio.move_on_after(1, shield=True):
                await self._vacate(won.fence)
            self._vacated.set()
        if trio.current_time() - began > MAX_PAUSE_SECONDS:
            self._pause = PAUSE_SECONDS
        if failed:
            await self._recover()

    async def _watch_claim(self, controller: ActiveController, session_id: int) -> None:
        """Have the controller resign when the session ends, or when `/controller` or the
        registration no longer belongs to this session.
        """
        store = self._store
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
        """Delete `/controller`, so that another node can be elected at once, unless one already
        was.
        """
        try:
            await self._store.commit([fence, Delete(layout.CONTROLLER)])
        except (NodeMissing, VersionConflict):
            pass
        except StoreError as error:
            log.info("/controller could not be deleted; it disappears with this node's session: %s", error)
