"""The configs of topics at one node: those in the image of the controller, where it runs in the
same process, or else read from the store and kept until a watch fires.

Rule: configs that are kept have a watch and belong to one topic id. They are forgotten when this
node has changed them, before the watch fires. Their number is limited, since each costs the store a
watch.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ...cluster.entities import Topic
from ...cluster.image import Image
from ...cluster.znodes import layout
from ...store.base import SessionState, Store, WatchEvent
from ..active.loading import entity_configs

MAX_KEPT = 10_000

Configs = Mapping[str, str]


class KnownConfigs(msgspec.Struct):
    topic_id: bytes
    configs: Configs = {}
    is_stale: bool = False

    def changed(self, _event: WatchEvent) -> None:
        self.is_stale = True


class TopicOverrides:
    """The configs of topics as one node knows them."""

    def __init__(self, store: Store, controller_image: Callable[[], Image | None] = lambda: None) -> None:
        """`controller_image` returns the image of the controller that the node follows, if it runs
        in this process.
        """
        self._store = store
        self._controller_image = controller_image
        self._kept: OrderedDict[str, KnownConfigs] = OrderedDict()
        self._session_id = store.session_id
        """The session that holds the watches."""
        store.on_session(self._session_changed)

    def known(self, topics: Sequence[Topic]) -> dict[str, Configs] | None:
        """Return the configs by topic, or None if they have to be read from the store."""
        if (image := self._controller_image()) is not None:
            return {each.name: image.topics[each.name].configs for each in topics if each.name in image.topics}
        if self._store.session is not SessionState.CONNECTED or self._store.session_id != self._session_id:
            return None if topics else {}
        found = {}
        for topic in topics:
            kept = self._kept.get(topic.name)
            if kept is None or kept.is_stale or kept.topic_id != topic.topic_id:
                return None
            found[topic.name] = kept.configs
        return found

    async def read(self, topics: Sequence[Topic]) -> dict[str, Configs]:
        """Read the configs by topic, and keep those of a single topic. Several topics are read in
        one round of requests, and not kept. Raises StoreError.
        """
        if len(topics) == 1:
            return {topics[0].name: await self._read_one(topics[0])}
        entries = await self._store.get_many([layout.topic_config_path(topic.name) for topic in topics])
        return {
            topic.name: entity_configs(f"topic {topic.name}", entry).configs
            for topic, entry in zip(topics, entries, strict=True)
        }

    def forget(self, name: str) -> None:
        """Forget the configs of a topic, which a request through this node has changed."""
        kept = self._kept.pop(name, None)
        if kept is not None:
            kept.is_stale = True

    def notified(self, paths: Iterable[str]) -> None:
        """Forget the configs of topics that notifications name by their paths."""
        for path in paths:
            if path.startswith(f"{layout.TOPIC_CONFIGS}/"):
                self.forget(path.removeprefix(f"{layout.TOPIC_CONFIGS}/"))

    async def _read_one(self, topic: Topic) -> Configs:
        if self._store.session_id != self._session_id:
            self._session_id = self._store.session_id
            self._kept.clear()
        kept = self._kept[topic.name] = KnownConfigs(topic.topic_id)
        kept.is_stale = True  # until it is read
        reading = KnownConfigs(topic.topic_id)
        entry = await self._store.get(layout.topic_config_path(topic.name), reading.changed)
        reading.configs = entity_configs(f"topic {topic.name}", entry).configs
        if self._kept.get(topic.name) is kept:  # nobody has changed it, or begun to read it, meanwhile
            self._kept[topic.name] = reading
            if len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return reading.configs

    def _session_changed(self, session: SessionState) -> None:
        if session is not SessionState.CONNECTED:
            for kept in self._kept.values():
                kept.is_stale = True
            self._kept.clear()
