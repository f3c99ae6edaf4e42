"""Watches the znodes of all topics, and those of their configs, for the active controller.

Rule: a znode is watched from soon after it is known, and whatever another program writes there is
read at once; this controller's own writes are told apart by their version. The controller begins
without waiting for the watches: what changed before they were set is found when they are.
"""

import logging
from collections.abc import Callable, Iterable

import trio

from ...cluster.entities import UNREADABLE, Topic
from ...cluster.image import Image
from ...cluster.znodes import layout
from ...store.base import Entry, SessionExpired, Store, StoreUnavailable, WatchEvent
from ...store.sessions import wait_connected
from ...store.signal import Signal

log = logging.getLogger("minicontroller.controller")

BATCH = 1000
"""How many znodes are read at once."""
PAUSE_SECONDS = 0.1
"""The pause between two batches. One reading finds all writes to a znode in this time."""


class TopicWatches:
    """Sets the watches, and calls `topics_changed` or `configs_changed` with the names of topics
    whose znode is not as the controller's image has it.
    """

    def __init__(
        self,
        store: Store,
        image: Callable[[], Image],
        *,
        topics_changed: Callable[[Iterable[str]], None],
        configs_changed: Callable[[Iterable[str]], None],
    ) -> None:
        self._store = store
        self._image = image
        self._topics_changed = topics_changed
        self._configs_changed = configs_changed
        self._unwatched: dict[str, bool] = {}
        """The paths without a watch, and whether it was called, so that the znode has changed."""
        self._added = Signal()

    def watch(self, names: Iterable[str]) -> None:
        for name in names:
            self._unwatched.setdefault(layout.topic_path(name), False)
            self._unwatched.setdefault(layout.topic_config_path(name), False)
        if self._unwatched:
            self._added.send()

    def _fired(self, event: WatchEvent) -> None:
        self._unwatched[event.path] = True
        self._added.send()

    async def run(self) -> None:
        try:
            while True:
                await self._added.wait()
                batch = dict(list(self._unwatched.items())[:BATCH])
                for path in batch:
                    del self._unwatched[path]
                try:
                    await self._read(batch)
                except StoreUnavailable:
                    self._unwatched = batch | self._unwatched
                    self._added.send()
                    await wait_connected(self._store)
                except SessionExpired:
                    return
                await trio.sleep(PAUSE_SECONDS)
                if self._unwatched:
                    self._added.send()
        finally:
            self._store.forget(self._fired)

    async def _read(self, batch: dict[str, bool]) -> None:
        entries = await self._store.get_many(list(batch), self._fired)
        topics: list[str] = []
        configs: list[str] = []
        for (path, has_changed), found in zip(batch.items(), entries, strict=True):
            parent, _, name = path.rpartition("/")
            topic = self._image().topics.get(name)
            if topic is None:
                continue
            entry = found or await self._store.get(path, self._fired)  # its creation is waited for
            if parent == layout.TOPICS:
                if _is_topic_new(topic, entry, has_changed=has_changed):
                    topics.append(name)
            elif _are_configs_new(topic.config_version, entry, has_changed=has_changed):
                configs.append(name)
        self._topics_changed(topics)
        self._configs_changed(configs)


def _is_topic_new(known: Topic, entry: Entry | None, *, has_changed: bool) -> bool:
    """Whether the znode of a topic that was read is not the one that the image has. One that cannot
    be read is read again only when it has changed.
    """
    if not (known.is_readable or has_changed):
        return False
    return entry is None or (entry.stat.version, entry.stat.czxid) != (known.version, known.czxid)


def _are_configs_new(known: int, entry: Entry | None, *, has_changed: bool) -> bool:
    """Whether the configs that were read may not be those of the image, which knows this version. A
    znode that was deleted and created again begins at version 0.
    """
    version = -1 if entry is None else entry.stat.version
    if has_changed:
        return version in (0, -1) or version != known
    return known not in (version, UNREADABLE)
