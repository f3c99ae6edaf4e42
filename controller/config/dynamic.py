"""The part of a node's configuration that the store overrides while the node runs: `/config/brokers`.

Rule: only what a notification names is read again. Values may be secrets: they are kept as they stand in the store, and never logged.
"""

import logging
from collections.abc import Callable, Iterable, Mapping

import trio

from ..store import layout
from ..store.base import Store
from .changes import ConfigChanges, EntityChanged, now_ms
from .node_config import NodeConfig

log = logging.getLogger("minicontroller.config")

NOTHING: Mapping[str, str] = {}


class DynamicConfigs:
    """What the store says of one node, and of all of them, kept up to date by `run`."""

    def __init__(self, config: NodeConfig, broker_id: int, clock_ms: Callable[[], int] = now_ms) -> None:
        self.current = config
        """The node's configuration with what is overridden; a new one after each change."""
        self.of_cluster: Mapping[str, str] = NOTHING
        """`/config/brokers/<default>`: for every node that has nothing of its own."""
        self.of_node: Mapping[str, str] = NOTHING
        """`/config/brokers/<id>`."""
        self._own_name = str(broker_id)
        self._changes = ConfigChanges(clock_ms)
        self._listeners: list[EntityChanged] = []

    def on_change(self, listener: EntityChanged) -> None:
        """Call `listener(entity_type, entity_name)` for each change that is notified, topics included; for one of this node's
        own configs once it is in force. In the event loop's thread.
        """
        self._listeners.append(listener)

    async def load(self, store: Store) -> None:
        """Read all of it. Raises StoreUnavailable or SessionExpired."""
        await self._read(store, (layout.DEFAULT_ENTITY, self._own_name))

    async def run(
        self,
        store: Store,
        *,
        tidies: Callable[[], bool] = lambda: False,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Follow the changes until cancelled; started when all is loaded.

        While `tidies()` holds (it should on the controller, which alone writes) old notifications are removed.
        """
        await self._changes.follow(store, load=self.load, notice=self._notice, tidies=tidies, task_status=task_status)

    async def _notice(self, store: Store, entities: Iterable[tuple[str, str]]) -> None:
        changed = list(entities)
        mine = [name for kind, name in changed if kind == layout.BROKERS_ENTITY and self._concerns_me(name)]
        if mine:
            await self._read(store, mine)
        for kind, name in changed:
            for listener in self._listeners:
                listener(kind, name)

    def _concerns_me(self, name: str) -> bool:
        return name in {layout.DEFAULT_ENTITY, self._own_name}

    async def _read(self, store: Store, names: Iterable[str]) -> None:
        wanted = list(names)
        entries = await store.get_many([layout.broker_config_path(name) for name in wanted])
        for name, entry in zip(wanted, entries, strict=True):
            self._take(name, entry.data if entry is not None else None)
        self.current = self.current.with_dynamic(self.of_node, self.of_cluster)

    def _take(self, name: str, data: bytes | None) -> None:
        try:
            configs = layout.decode_config(data) if data else NOTHING
        except layout.LayoutError:
            log.warning("/config/brokers/%s is unreadable; what it said before stays in force", name)
            return
        if name == self._own_name:
            self.of_node = configs
        else:
            self.of_cluster = configs
