"""The node's own entry in `/brokers/ids`: born and filled in one transaction, and again in every new session, or when it is taken away.

Rule: a watch is waited for no longer than the session in which it was set.
"""

import contextlib
import logging
import math
from collections.abc import Callable

import trio

from ..errors import ConfigurationError
from ..store import layout, registrations
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
from ..store.sessions import wait_connected, while_it_lasts
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
        self._moved = Bell()
        """Something has happened to the entry."""

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
                    is_registered = await self._register(session_id)
            except (StoreUnavailable, SessionExpired) as error:
                log.debug("not registered yet: %s", error)
                await trio.lowlevel.checkpoint()
                continue
            if scope.cancelled_caught:
                raise ConfigurationError(
                    f"Broker id {self._broker.broker_id} is registered by another process that lives: "
                    "give this node another broker.id."
                )
            if not is_registered:
                continue
            if not started:
                task_status.started()
                started = True
            await while_it_lasts(self._store, session_id, self._moved.wait)

    async def _register(self, session_id: int) -> bool:
        """False if the session ended before."""
        path, data = (
            layout.broker_path(self._broker.broker_id),
            registrations.encode_broker(self._broker, self._clock_ms()),
        )
        while self._store.session_id == session_id:
            with contextlib.suppress(NodeExists):
                await self._store.commit([Create(path, None, ephemeral=True), SetData(path, data, 0)])
            entry = await self._store.get(path, self._moved.ring)
            if entry is None:
                continue
            if entry.stat.ephemeral_owner == session_id:
                self._on_registered(entry.stat.czxid)
                return True
            if entry.stat.ephemeral_owner in self._own_sessions:
                with contextlib.suppress(NodeMissing, VersionConflict):  # its session was faster
                    await self._store.commit([Delete(path, entry.stat.version)])
                continue
            log.warning("Broker id %d is registered by another process: waiting for it to end.", self._broker.broker_id)
            await while_it_lasts(self._store, session_id, self._moved.wait)
        return False
