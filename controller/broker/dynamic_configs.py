"""The dynamic configs of a node, from `/config/brokers/<id>` and `/config/brokers/<default>`.

Rule: a notification causes only the znode that it names to be read, and a request of the controller
all of them. Readings run one after the other, so that none restores older values. Values may be
secrets: they are kept as they are in the store, and never logged.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import trio
from immutables import Map

from ...cluster.entities import NO_CONFIGS
from ...cluster.znodes import layout
from ...cluster.znodes.configs import decode_config, decode_config_change
from ...cluster.znodes.content import MalformedZnodeError
from ...process.settings.in_force import faults_together, in_force
from ...process.settings.node_config import NodeConfig
from ...store.base import Entry, Store, StoreError
from .change_notifications import ChangeNotifications

log = logging.getLogger("minicontroller.config")

EntityChanged = Callable[[str, str], None]
"""Called with the type and name of an entity: ("topics", "orders"), ("brokers", "1"), ("users",
"alice/clients/<default>").
"""
CATCH_UP_SECONDS = 1.0
"""How long a reading may take while the controller waits for it."""


class DynamicConfigs:
    """The dynamic configs of one node and of the cluster, kept up to date by `run`."""

    def __init__(self, config: NodeConfig, broker_id: int) -> None:
        self.current = config
        """The node's configuration with the dynamic configs in force; another object after each
        change.
        """
        self.of_cluster: Mapping[str, str] = NO_CONFIGS
        """The configs in `/config/brokers/<default>`."""
        self.of_node: Mapping[str, str] = NO_CONFIGS
        """The configs in `/config/brokers/<id>`, which override those of the cluster."""
        self._own_name = str(broker_id)
        self._changes = ChangeNotifications(layout.CONFIG_CHANGES, decode_config_change)
        self._listeners: list[EntityChanged] = []
        self._followers: list[Callable[[NodeConfig], None]] = []
        self._load_others: list[Callable[[Store], Awaitable[None]]] = []
        self._reread_others: list[Callable[[Store, Sequence[tuple[str, str]]], Awaitable[None]]] = []
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

    def follow(self, follower: Callable[[NodeConfig], None]) -> None:
        """Call `follower(config)` now, and whenever another configuration is in force."""
        self._followers.append(follower)
        follower(self.current)

    def accompany(
        self,
        load: Callable[[Store], Awaitable[None]],
        reread: Callable[[Store, Sequence[tuple[str, str]]], Awaitable[None]],
    ) -> None:
        """Follow the configs of other entities by the same notifications: `load` reads them at the
        start and after each loss of the session, `reread` those that notifications name. Both raise
        StoreError.
        """
        self._load_others.append(load)
        self._reread_others.append(reread)

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
        gets the response. None stands for unreadable configs, and leaves what is in force. The
        mappings must be hashable.
        """
        self._applied += 1
        of_node = self.of_node if of_node is None else of_node
        of_cluster = self.of_cluster if of_cluster is None else of_cluster
        if (of_node, of_cluster) != (self.of_node, self.of_cluster):
            self.of_node, self.of_cluster = of_node, of_cluster
            self._put_in_force()

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
            store, load=self._load_everything, on_change=self._reread, tidies=tidies, task_status=task_status
        )

    async def read_notifications(self, store: Store) -> None:
        """Read whatever notifications name that nobody has read yet. Raises StoreError."""
        await self._changes.catch_up(store, self._reread)

    async def _load_everything(self, store: Store) -> None:
        await self.load(store)
        for load in self._load_others:
            await load(store)

    async def _reread(self, store: Store, entities: Iterable[tuple[str, str]]) -> None:
        changed = list(entities)
        mine = [name for kind, name in changed if kind == layout.BROKERS_ENTITY and self._concerns_me(name)]
        if mine:
            async with self._reading:
                await store.sync()  # a server that is behind would take back what a controller here has told
                await self._read(store, mine)
        for reread in self._reread_others:
            await reread(store, changed)
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
            self._put_in_force()

    def _put_in_force(self) -> None:
        stored = self.current.with_dynamic(self.of_node, self.of_cluster)
        self.current = in_force(self.current, self.of_node, self.of_cluster)
        for _, sentence in faults_together(stored):
            log.error("configs that are stored for this node cannot be in force together: %s", sentence)
        self._tell_of_ignored(self._own_name, self.of_node, self.current.dynamic_broker)
        self._tell_of_ignored(layout.DEFAULT_ENTITY, self.of_cluster, self.current.dynamic_default)
        for follower in self._followers:
            follower(self.current)

    def _tell_of_ignored(self, name: str, stored: Mapping[str, str], in_force: Mapping[str, str]) -> None:
        ignored = [key for key in stored if key not in in_force]
        if ignored:
            log.error(
                "of the configs in %s these are not in force, because a broker cannot follow them: %s",
                layout.broker_config_path(name),
                ", ".join(ignored),
            )

    def _take(self, name: str, data: bytes | None) -> None:
        try:
            configs = Map(decode_config(data))
        except MalformedZnodeError:
            log.warning("/config/brokers/%s is unreadable; what it said before stays in force", name)
            return
        if name == self._own_name:
            self.of_node = configs
        else:
            self.of_cluster = configs
