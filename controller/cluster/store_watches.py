"""What the controller notices in the store: brokers that come and go, and what others than itself write.

Rule: a watch says only that something changed; what changed is found by reading and comparing. Watches fire for our own writes too,
so a list that we write ourselves is read again at most once in a while.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

from ..store import layout
from ..store.base import Create, Delete, StoreUnavailable
from .bell import Bell
from .loading import load_brokers, load_topics
from .writer import ControllerMoved, Draft

if TYPE_CHECKING:
    from .active_controller import ActiveController

log = logging.getLogger("minicontroller.controller")

REREAD_SECONDS = 1.0
"""Between two readings of a list that our own writes change: what another broker writes is seen no later than this."""


class StoreWatches:
    """The bells of `/brokers/ids`, `/brokers/topics` and `/admin/delete_topics`, and what to do when they ring."""

    def __init__(self, controller: "ActiveController") -> None:
        self.brokers, self.topics, self.deletions, self.configs = Bell(), Bell(), Bell(), Bell()
        self._controller = controller
        self._store = controller.node.store
        self._changed_configs: set[str] = set()

    def topic_config_changed(self, topic: str) -> None:
        """A notification in `/config/changes` names this topic."""
        self._changed_configs.add(topic)
        self.configs.ring()

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow, self.brokers, self._read_brokers, 0.0)
            nursery.start_soon(self._follow, self.topics, self._read_topics, REREAD_SECONDS)
            nursery.start_soon(self._follow, self.deletions, self._read_deletions, REREAD_SECONDS)
            nursery.start_soon(self._follow, self.configs, self._read_configs, 0.0)

    async def _follow(self, bell: Bell, read: Callable[[], Awaitable[None]], pause: float) -> None:
        while True:
            await bell.wait()
            try:
                await read()
            except (StoreUnavailable, ControllerMoved) as error:
                log.debug("%s; the state will be read anew", error)
            await trio.sleep(pause)

    async def _read_brokers(self) -> None:
        await self._controller.brokers_changed(await load_brokers(self._store, self.brokers.ring))

    async def _read_topics(self) -> None:
        names = await self._store.children(layout.TOPICS, self.topics.ring)
        known = self._controller.image.topics
        if len(names) != len(known) or not known.keys() >= set(names):
            await self._controller.write(lambda draft: self._adopt_topics(draft, names))

    async def _adopt_topics(self, _draft: Draft, names: list[str]) -> None:
        """Run as a job, so that nothing of ours is half-way: what is unknown then was written by others."""
        raise NotImplementedError(names)

    async def _read_deletions(self) -> None:
        names = await self._store.children(layout.DELETE_TOPICS, self.deletions.ring)
        await self._controller.write(lambda draft: self._adopt_markers(draft, names))

    async def _adopt_markers(self, draft: Draft, names: list[str]) -> None:
        raise NotImplementedError((draft, names, Create, Delete))

    async def _read_configs(self) -> None:
        names, self._changed_configs = self._changed_configs, set()
        raise NotImplementedError((names, load_topics))
