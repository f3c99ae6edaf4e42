"""Keeps the node registered in `/brokers/ids`, in every session and whenever the entry is removed.

Rule: no two brokers are registered with one address, since requests to one would reach the other. A
node that starts waits for a broker that has its id or one of its addresses; a node that runs is not
disturbed. A watch is waited for only during the session in which it was set.
"""

import contextlib
import logging
import math
from collections.abc import Awaitable, Callable

import trio

from ...clock import now_ms
from ...cluster.entities import Broker
from ...cluster.errors import ConfigurationError
from ...cluster.znodes import layout, registrations
from ...store.base import (
    AccessDenied,
    Create,
    Delete,
    NodeExists,
    NodeMissing,
    SessionExpired,
    SessionState,
    SetData,
    Store,
    StoreUnavailable,
    VersionConflict,
    Watch,
)
from ...store.sessions import wait_connected, wait_within_session
from ...store.signal import Signal
from ..active.loading import load_brokers

log = logging.getLogger("minicontroller.node")
RETRY_SECONDS = 0.05
"""The pause before another attempt, while another program removes what the entry needs."""


async def nothing_is_kept(_watch: Watch) -> None:
    """Stand for a caller that keeps the cluster's paths itself."""


class BrokerEpoch:
    """The newest registration of a node in `/brokers/ids`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._session = -1
        """The store's session to which that registration belongs."""
        self.current = -1
        """Its broker epoch (czxid); -1 before the first one."""

    @property
    def is_registered(self) -> bool:
        """Whether the node is registered in the present session of the store."""
        return self._session == self._store.session_id and self._store.session is not SessionState.EXPIRED

    def registered(self, epoch: int) -> None:
        """Note the broker epoch of a registration in the present session."""
        self.current, self._session = epoch, self._store.session_id


class Registration:
    """Keeps `broker` registered; `on_registered` learns the broker epoch (the czxid) of each
    registration.
    """

    def __init__(
        self,
        store: Store,
        broker: Broker,
        on_registered: Callable[[int], None],
        load_configs: Callable[[Store], Awaitable[None]],
        *,
        takeover_seconds: float = math.inf,
        keep_cluster: Callable[[Watch], Awaitable[None]] = nothing_is_kept,
    ) -> None:
        """Prepare a registration. `load_configs` is awaited before each one: changes of configs
        wait for registered nodes only, so a node knows at its registration what changed before.
        Another broker that has this node's id or address for `takeover_seconds` when it starts is
        taken to live. `keep_cluster` makes the parents of the entry again if they are gone, before
        each registration, and sets a watch on what else it needs.
        """
        self._keep_cluster = keep_cluster
        self._store = store
        self._broker = broker
        self._on_registered = on_registered
        self._load_configs = load_configs
        self._takeover_seconds = takeover_seconds
        self._own_sessions: set[int] = set()
        self._started = False
        self._is_outdated = False
        """Whether the entry has endpoints that are no longer this node's."""
        self._data: bytes | None = None
        """The data that this node wrote into its entry; None before it has an entry."""
        self._patience = math.inf
        """The time until which a node that starts waits for a broker in its way."""
        self._entry_changed = Signal()
        """Sent when the entry of this node was changed or removed."""
        self._others_changed = Signal()

    @property
    def broker(self) -> Broker:
        return self._broker

    def readvertise(self, broker: Broker) -> None:
        """Register other endpoints, in the present session if there is one."""
        if broker != self._broker:
            self._broker, self._is_outdated = broker, True
            self._entry_changed.send()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the broker registered; reported as started after the first registration. Raises
        ConfigurationError if another live broker has its id or address.
        """
        self._be_patient()
        self._store.on_session(lambda _session: self._be_patient())
        while True:
            await wait_connected(self._store)
            session_id = self._store.session_id
            self._own_sessions.add(session_id)
            try:
                await self._keep_cluster(self._entry_changed.send)
                with contextlib.suppress(AccessDenied):  # what holds at such a node is what it read last
                    await self._load_configs(self._store)
                is_registered = await self._register(session_id)
            except (StoreUnavailable, SessionExpired, NodeMissing) as error:
                log.debug("not registered yet: %s", error)
                await trio.sleep(RETRY_SECONDS)
                continue
            if not is_registered:
                continue
            if not self._started:
                task_status.started()
                self._started = True
            await wait_within_session(self._store, session_id, self._entry_changed.wait)

    async def _register(self, session_id: int) -> bool:
        """Register the broker; False if the session ended before."""
        path = layout.broker_path(self._broker.broker_id)
        while self._store.session_id == session_id:
            if not self._started and (rival := await self._rival()) is not None:
                log.warning("Broker %d is registered at this node's address: waiting for it to end.", rival.broker_id)
                common = ", ".join(_addresses(rival) & _addresses(self._broker))
                await self._wait_for_another(
                    self._others_changed,
                    f"Broker {rival.broker_id}, which lives, is registered with an address of this node, {common}: "
                    "give this node its own in listeners and advertised.listeners.",
                )
                continue
            data = registrations.encode_broker(self._broker, now_ms())
            with contextlib.suppress(NodeExists):
                await self._store.commit([Create(path, None, ephemeral=True), SetData(path, data, 0)])
                self._data, self._is_outdated = data, False
            entry = await self._store.get(path, self._entry_changed.send)
            if entry is None:
                continue
            is_ours = entry.stat.ephemeral_owner == session_id
            if is_ours and (self._is_outdated or entry.data != self._data):
                if not self._is_outdated:
                    log.warning("%s is not what this node has written there: it writes its registration again", path)
                with contextlib.suppress(NodeMissing, VersionConflict):
                    await self._store.commit([SetData(path, data, entry.stat.version)])
                    self._data, self._is_outdated = data, False
                continue
            if is_ours and (self._started or await self._rival(before=entry.stat.czxid) is None):
                self._on_registered(entry.stat.czxid)
                return True
            if is_ours or entry.stat.ephemeral_owner in self._own_sessions:
                with contextlib.suppress(NodeMissing, VersionConflict):  # its session, or its rival, was faster
                    await self._store.commit([Delete(path, entry.stat.version)])
                continue
            log.warning("Broker id %d is registered by another process: waiting for it to end.", self._broker.broker_id)
            await self._wait_for_another(
                self._entry_changed,
                f"Broker id {self._broker.broker_id} is registered by another process that lives: "
                "give this node another broker.id.",
            )
        return False

    def _be_patient(self) -> None:
        """Begin the wait for a rival again: when ZooKeeper elects a leader, the timeouts of all
        sessions, also of dead ones, begin again.
        """
        self._patience = trio.current_time() + self._takeover_seconds

    async def _wait_for_another(self, changed: Signal, sentence: str) -> None:
        """Wait for a change of the broker in the way. Raises ConfigurationError with this sentence
        if a node that starts has waited for `takeover_seconds` without losing the store.
        """
        session_id = self._store.session_id
        while True:
            with trio.move_on_at(math.inf if self._started else self._patience) as scope:
                await wait_within_session(self._store, session_id, changed.wait)
            if not scope.cancelled_caught:
                return
            if self._store.session is not SessionState.CONNECTED:
                await wait_connected(self._store)  # and then the wait begins again
            elif trio.current_time() >= self._patience:
                raise ConfigurationError(sentence)

    async def _rival(self, before: float = math.inf) -> Broker | None:
        """Return another broker with an address of this node that registered before this czxid."""
        return next(
            (
                each
                for each in await load_brokers(self._store, self._others_changed.send)
                if each.broker_id != self._broker.broker_id
                and each.epoch < before
                and _addresses(each) & _addresses(self._broker)
            ),
            None,
        )


def _addresses(broker: Broker) -> set[str]:
    return {endpoint.address.lower() for endpoint in broker.endpoints}
