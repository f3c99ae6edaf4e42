"""The nodes of the controller's own process, itself included: what UpdateMetadata does for the
others, done without the wire.

Rule: they are told in the turn in which the controller learns of a change, and nodes that held the
same image share the next one: a cluster in one process pays for one view, not for one a node. Only
nodes that are registered are told, as everywhere, and none that has heard of a newer controller:
what this one has still to say is old. They have no logs, so there is nothing that LeaderAndIsr or
StopReplica would tell them.
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ..metadata.cache import MetadataCache, first_update_number
from ..metadata.entities import NO_ENTITY_CONFIGS, UNREADABLE, Broker, Topic
from ..metadata.image import Image
from ..znodes import layout

if TYPE_CHECKING:
    from ..handlers.node import Node


class LocalNodes:
    """Tells the controller's own node, and its local_nodes as long as they are registered."""

    def __init__(self, node: "Node") -> None:
        self.ids: Collection[int] = frozenset({node.broker_id})
        self._own_id = node.broker_id
        self._own = node.cache
        self._node = node
        self._local_nodes = node.local_nodes
        self._others: dict[int, MetadataCache] = {}

    def is_here(self, broker: Broker) -> bool:
        """Whether this is the registration of a node of this process."""
        if broker.broker_id == self._own_id:
            return True
        node = self._local_nodes.get(broker.broker_id)
        return node is not None and node.broker_epoch == broker.epoch

    def tell_everything(self, image: Image) -> None:
        """Tell all topics and brokers after the controller has read the state anew."""
        self._others.clear()
        if not _has_newer(self._own, image):
            topics = _visible(image, image.topics.values())
            told = {topic.name for topic in topics}
            self._own.apply(
                controller_id=image.controller_id,
                controller_epoch=image.controller_epoch,
                brokers=image.brokers.values(),
                changed=topics,
                removed=[name for name in self._own.image.topics if name not in told],
            )
            self._own.updated_to(first_update_number(image.controller_epoch))
        self._welcome(image)

    def tell_brokers(self, image: Image) -> None:
        """Tell the brokers that live now. A local node among them that was not told so far is told
        everything.
        """
        self._tell(image, (), (), list(image.brokers.values()))
        self._welcome(image)

    def tell(self, image: Image, changed: Iterable[Topic], removed: Collection[str]) -> None:
        """Tell which topics changed, and which are gone or going."""
        self._tell(image, _visible(image, changed), removed, None)

    def tell_configs(self, image: Image) -> None:
        """Tell the configs of brokers, which other nodes read in the store when they are told of a
        change.
        """
        of_cluster = _broker_configs(image, layout.DEFAULT_ENTITY)
        for broker_id in self.ids:
            node = self._node if broker_id == self._own_id else self._local_nodes.get(broker_id)
            if node is not None and not _has_newer(node.cache, image):
                node.dynamic_configs.apply(_broker_configs(image, str(broker_id)), of_cluster)

    def _tell(
        self, image: Image, changed: Collection[Topic], removed: Collection[str], brokers: list[Broker] | None
    ) -> None:
        before = self._own.image
        for cache in (self._own, *self._others.values()):
            if _has_newer(cache, image):
                continue
            if cache is not self._own and cache.image is before:
                cache.become(self._own.image, changed, removed)
            else:
                cache.apply(
                    controller_id=image.controller_id,
                    controller_epoch=image.controller_epoch,
                    brokers=brokers,
                    changed=changed,
                    removed=removed,
                )

    def _welcome(self, image: Image) -> None:
        here = {
            broker_id: self._local_nodes[broker_id].cache
            for broker_id, broker in image.brokers.items()
            if broker_id != self._own_id and self.is_here(broker)
        }
        known, now = self._others, self._own.image
        for broker_id, cache in here.items():
            if known.get(broker_id) is not cache and not _has_newer(cache, now):
                gone = [name for name in cache.image.topics if name not in now.topics]
                cache.become(now, list(now.topics.values()), gone)
                cache.updated_to(first_update_number(now.controller_epoch))
        self._others = here
        self.ids = frozenset({self._own_id, *here})


def _broker_configs(image: Image, name: str) -> dict[str, str] | None:
    """Return the configs of a broker; None if they are unreadable."""
    found = image.configs.get(layout.entity_path(layout.BROKERS_ENTITY, name), NO_ENTITY_CONFIGS)
    return None if found.version == UNREADABLE else dict(found.configs)


def _has_newer(cache: MetadataCache, image: Image) -> bool:
    return cache.image.controller_epoch > image.controller_epoch


def _visible(image: Image, topics: Iterable[Topic]) -> list[Topic]:
    """Return the topics that are told: those that were led, and are not on their way out."""
    live = image.live_ids()
    return [topic.as_told(live) for topic in topics if not topic.marked_for_deletion and topic.was_ever_led]
