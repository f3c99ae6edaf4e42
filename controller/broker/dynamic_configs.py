"""The dynamic configs of a node, from `/config/brokers/<id>` and `/config/brokers/<default>`.

Rule: a notification causes only the znode that it names to be read, and a request of the controller
all of them. Readings run one after the other, so that none restores older values. Values may be
secrets: they are kept as they are in the store, and never logged.
"""

import logging
from collections.abc import Callable, Iterable, Mapping

import trio

from ..clock import now_ms
from ..config.node_config import NodeConfig
from ..store.base import Entry, Store, StoreError
from ..znodes import layout
from ..znodes.configs import decode_config
from ..znodes.content import MalformedZnodeError
from .config_notifications import ConfigChanges, EntityChanged

log = logging.getLogger("minicontroller.config")

NOTHING: Mapping[str, str] = {}
CATCH_UP_SECONDS = 1.0
"""How long a reading may take while the controller waits for it."""


class DynamicConfigs:
    """The dynamic configs of one node and of the cluster, kept up to date by `run`."""

    def __init__(self, config: NodeConfig, broker_id: int, clock_ms: Callable[[], int] = now_ms) -> None:
        self.current = config
        """The node's configuration with the dynamic configs in force; another object after each
        change.
        """
        self.of_cluster: Mapping[str, str] = NOTHING
        """The configs in `/config/brokers/<default>`."""
        self.of_node: Mapping[str, str] = NOTHING
        """The configs in `/config/brokers/<id>`, which override those of the cluster."""
        self._own_name = str(broker_id)
        self._changes = ConfigChanges(clock_ms)
        self._listeners: list[EntityChanged] = []
        self._reading = trio.Lock()
        self._begun = self._loaded = 0
        """Numbers of readings: the last one that began, and the last one whose result is in force.
        """
        self._applied = 0
        """How often a controller of this process called `apply`: what was read from the store
        before the last call is out of date.
        """

    def on_change(self, listener: EntityChanged) -> None:
        """Call `listener(entity_type, entity_name)` in the event loop's thread for each change that
        is notified, topics included; for one of this node's own configs once it is in force.
        """
        self._listeners.append(listener)

    async def load(self, store: Store) -> None:
        """Read all configs, at least as new as any change acknowledged before this call. Calls that
        come during a reading share the next one. Raises StoreUnavailable or SessionExpired.
        """
        next_one = self._begun + 1
        async with self._reading:
            if self._loaded < next_one:
                number = self._begun = self._begun + 1
                await store.sync()
                await self._read(store, (layout.DEFAULT_ENTITY, self._own_name))
                self._loaded = number

    def apply(self, of_node: Mapping[str, str] | None, of_cluster: Mapping[str, str] | None) -> None:
        """Put configs in force that a controller of this process has written, before its client
        gets the response. None stands for unreadable configs, and leaves what is in force.
        """
        self._applied += 1
        of_node = self.of_node if of_node is None else of_node
        of_cluster = self.of_cluster if of_cluster is None else of_cluster
        if (of_node, of_cluster) != (self.of_node, self.of_cluster):
            self.of_node, self.of_cluster = of_node, of_cluster
            self.current = self.current.with_dynamic(of_node, of_cluster)

    async def catch_up(self, store: Store) -> bool:
        """Read all configs because the controller waits for it. Return False if the store does not
        respond in time. What this node reads from the store afterwards is no older either.
        """
        with trio.move_on_after(CATCH_UP_SECONDS):
            try:
                await self.load(store)
            except StoreError as error:
                log.debug("the configs of the cluster cannot be read now: %s", error)
            else:
                return True
        return False

    async def run(
        self,
        store: Store,
        *,
        tidies: Callable[[], bool] = lambda: False,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Follow the changes until cancelled; started when all is loaded.

        While `tidies()` holds (it should on the controller, which alone writes) old notifications
        are removed.
        """
        await self._changes.follow(
            store, load=self.load, on_change=self._reread, tidies=tidies, task_status=task_status
        )

    async def _reread(self, store: Store, entities: Iterable[tuple[str, str]]) -> None:
        changed = list(entities)
        mine = [name for kind, name in changed if kind == layout.BROKERS_ENTITY and self._concerns_me(name)]
        if mine:
            async with self._reading:
                await store.sync()  # a server that is behind would take back what a controller here has told
                await self._read(store, mine)
        for kind, name in changed:
            for listener in self._listeners:
                listener(kind, name)

    def _concerns_me(self, name: str) -> bool:
        return name in {layout.DEFAULT_ENTITY, self._own_name}

    async def _read(self, store: Store, names: Iterable[str]) -> None:
        wanted, applied = list(names), None
        entries: list[Entry | None] = []
        while applied != self._applied:
            applied = self._applied
            entries = await store.get_many([layout.broker_config_path(name) for name in wanted])
        before = self.of_node, self.of_cluster
        for name, entry in zip(wanted, entries, strict=True):
            self._take(name, entry.data if entry is not None else None)
        if (self.of_node, self.of_cluster) != before:  # what was parsed of this configuration is kept with it
            self.current = self.current.with_dynamic(self.of_node, self.of_cluster)

    def _take(self, name: str, data: bytes | None) -> None:
        try:
            configs = decode_config(data) if data else NOTHING
        except MalformedZnodeError:
            log.warning("/config/brokers/%s is unreadable; what it said before stays in force", name)
            return
        if name == self._own_name:
            self.of_node = configs
        else:
            self.of_cluster = configs
