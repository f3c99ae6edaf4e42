"""The topics of the cluster as one node has them: what it leads, and the configs that hold."""

from collections.abc import Iterable, Iterator, Mapping

from ...cluster.coordinators import COORDINATED_BY, CoordinatorType
from ...cluster.entities import Topic
from ...cluster.image import Image
from ...controller.broker.data import DataParts
from ...process.settings.topic_configs import topic_default_texts
from ..settings import LogSettings
from .waiting import Place

OFFSETS_TOPIC = COORDINATED_BY[CoordinatorType.GROUP]
TRANSACTIONS_TOPIC = COORDINATED_BY[CoordinatorType.TRANSACTION]
KEPT_SETTINGS = 10_000
MIN_INSYNC_REPLICAS = "min.insync.replicas"
NO_CONFIGS: Mapping[str, str] = {}


class NodeTopics:
    def __init__(self, parts: DataParts) -> None:
        self._view = parts.view
        self._overrides = parts.overrides
        self._settings: dict[str, tuple[Mapping[str, str], Mapping[str, str], LogSettings]] = {}
        """The settings of topics, with the configs that they were read from, by name."""

    @property
    def image(self) -> Image:
        return self._view.cache.image

    def led(self, places: Iterable[Place]) -> Iterator[tuple[Topic, int]]:
        image, broker_id = self.image, self._view.broker_id
        for topic_id, index in places:
            topic = image.topic_by_id(topic_id)
            partition = None if topic is None else topic.partition(index)
            if topic is not None and partition is not None and partition.leader == broker_id:
                yield topic, index

    def settings_of(self, topic: Topic) -> LogSettings:
        own, defaults = self._configs_of(topic)
        kept = self._settings.get(topic.name)
        if kept is not None and kept[0] is own and kept[1] is defaults:
            return kept[2]
        if len(self._settings) >= KEPT_SETTINGS:
            self._settings.clear()
        settings = LogSettings.from_configs({**defaults, **own})
        self._settings[topic.name] = own, defaults, settings
        return settings

    def min_insync_replicas(self, topic: Topic) -> int:
        own, defaults = self._configs_of(topic)
        return int(own.get(MIN_INSYNC_REPLICAS) or defaults[MIN_INSYNC_REPLICAS])

    def _configs_of(self, topic: Topic) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return a topic's own configs, and those of this node that the others come from."""
        own = (self._overrides.known([topic]) or {}).get(topic.name, NO_CONFIGS)
        return own, topic_default_texts(self._view.configs.current)
