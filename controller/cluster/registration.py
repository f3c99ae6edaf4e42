"""The node's own entry in `/brokers/ids`: born and filled in one transaction, and again in every new session."""

import contextlib
import logging
import math
from collections.abc import Callable

import trio

from ..errors import ConfigurationError
from ..store import layout
from ..store.base import (
    Create,
    Delete,
    NodeExists,
    NodeMissing,
    SessionExpired,
    SetData,
    Store,
    StoreUnavailable,
    VersionConflict,
)
from ..store.sessions import wait_connected, wait_expired
from .bell import Bell
from .image import Broker

log = logging.getLogger("minicontroller.node")


class Registration:
    """Keeps `broker` registered; `on_registered` learns the broker epoch (the czxid) of each registration."""

    def __init__(
        self,
        store: Store,
        broker: Broker,
        clock_ms: Callable[[], int],
        on_registered: Callable[[int], None],
        takeover_seconds: float = math.inf,
    ) -> None:
        """`takeover_seconds`: whoever has this node's id for longer, when it starts, lives."""
        self._store = store
        self._broker = broker
        self._clock_ms = clock_ms
        self._on_registered = on_registered
        self._takeover_seconds = takeover_seconds
        self._own_sessions: set[int] = set()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Started once the node is registered for the first time. Raises ConfigurationError if its id is another one's."""
        started = False
        patience = trio.current_time() + self._takeover_seconds
        while True:
            await wait_connected(self._store)
            session_id = self._store.session_id
            self._own_sessions.add(session_id)
            try:
                with trio.move_on_at(math.inf if started else patience) as scope:
                    await self._register()
            except (StoreUnavailable, SessionExpired) as error:
                log.debug("not registered yet: %s", error)
                await trio.lowlevel.checkpoint()
                continue
            if scope.cancelled_caught:
                raise ConfigurationError(
                    f"Broker id {self._broker.broker_id} is registered by another process that lives: "
                    "give this node another broker.id."
                )
            if not started:
                task_status.started()
                started = True
            await wait_expired(self._store, session_id)

    async def _register(self) -> None:
        path, data = layout.broker_path(self._broker.broker_id), layout.encode_broker(self._broker, self._clock_ms())
        gone = Bell()
        while True:
            with contextlib.suppress(NodeExists):
                await self._store.commit([Create(path, None, ephemeral=True), SetData(path, data, 0)])
            entry = await self._store.get(path, gone.ring)
            if entry is None:
                continue
            if entry.stat.ephemeral_owner == self._store.session_id:
                self._on_registered(entry.stat.czxid)
                return
            if entry.stat.ephemeral_owner in self._own_sessions:
                with contextlib.suppress(NodeMissing, VersionConflict):  # its session was faster
                    await self._store.commit([Delete(path, entry.stat.version)])
                continue
            log.warning("Broker id %d is registered by another process: waiting for it to end.", self._broker.broker_id)
            await gone.wait()
