"""Updates the nodes in the active controller's own process by call, as UpdateMetadata does for all
others.

Rule: local nodes are updated in the time slice in which the controller learns of a change, and they
share one image, so that a cluster in one process keeps one copy. As elsewhere, only registered
nodes are updated, and none that has seen a newer controller epoch. They have no logs, so they need
neither LeaderAndIsr nor StopReplica.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

import msgspec
from immutables import Map

from ...cluster.cache import ImageChanges, MetadataCache, first_update_number
from ...cluster.entities import Broker, Topic
from ...cluster.entity_paths import Entity
from ...cluster.image import Image


class LocalNode(Protocol):
    """The part of a local node that the active controller updates."""

    cache: MetadataCache

    @property
    def broker_epoch(self) -> int:
        """The broker epoch of the node's registration."""


class LocalNodes:
    """Updates the active controller's own node always, and the other local nodes while they are
    registered.
    """

    def __init__(self, broker_id: int, own: LocalNode, others: Mapping[int, LocalNode]) -> None:
        """`own` is the active controller's node, with this id; `others` may contain it too."""
        self.ids: Collection[int] = frozenset({broker_id})
        """The broker ids of the nodes that are updated here."""
        self._own_id = broker_id
        self._own = own
        self._nodes = others
        self._shared = Image()
        """The image that the nodes share."""
        self._updated: dict[int, MetadataCache] = {}
        """The caches of the nodes that are updated, by broker id."""

    def __contains__(self, broker_id: int) -> bool:
        """Return whether this is a node of this process, registered or not."""
        return broker_id == self._own_id or broker_id in self._nodes

    def known_topic(self, name: str) -> Topic | None:
        """Return what the active controller's own node knows of a topic."""
        return self._own.cache.image.topics.get(name)

    def is_here(self, broker: Broker) -> bool:
        if broker.broker_id == self._own_id:
            return True
        node = self._nodes.get(broker.broker_id)
        return node is not None and node.broker_epoch == broker.epoch

    def update_everything(self, image: Image) -> None:
        """Give the nodes another image, after the controller has loaded its state."""
        self._updated.clear()
        self._shared = _as_nodes_see_it(image)
        self._take_in_registered(image)

    def update_brokers(self, image: Image) -> None:
        """Update the live brokers. A local node that has registered since gets everything."""
        self._update(image, ImageChanges(), brokers=image.brokers)
        self._take_in_registered(image)

    def update(
        self,
        image: Image,
        changed: Iterable[Topic] = (),
        removed: Collection[str] = (),
        entities: Mapping[str, Entity | None] = Map(),
    ) -> None:
        """Update topics and entities that changed. `removed` names topics that are deleted or
        marked for it.
        """
        live = image.live_ids()
        topics = [topic.for_nodes(live) for topic in changed if _is_visible(topic)]
        if not (topics or removed or entities):
            return
        self._update(image, ImageChanges(topics, removed, entities))

    def _update(self, image: Image, changes: ImageChanges, *, brokers: Map[int, Broker] | None = None) -> None:
        before = self._shared
        self._shared = after = msgspec.structs.replace(
            before.with_changed_topics(changes.topics, changes.removed),
            brokers=before.brokers if brokers is None else brokers,
            configs=image.configs,
            acls=image.acls,
            tokens=image.tokens,
            features=image.features,
            groups=image.groups,
            rooms=image.rooms,
        )
        for cache in self._updated.values():
            if _has_newer(cache, after):
                continue
            if cache.shared is before:
                cache.share(after, changes)
            else:
                cache.apply(
                    controller_id=after.controller_id,
                    controller_epoch=after.controller_epoch,
                    brokers=None if brokers is None else brokers.values(),
                    changed=changes.topics,
                    removed=changes.removed,
                    entities=changes.entities,
                )

    def _take_in_registered(self, image: Image) -> None:
        """Give the shared image to local nodes that have registered, and leave out those whose
        registration is gone.
        """
        nodes = {self._own_id: self._own} | {
            broker_id: self._nodes[broker_id]
            for broker_id, broker in image.brokers.items()
            if broker_id != self._own_id and self.is_here(broker)
        }
        known, self._updated = self._updated, {broker_id: node.cache for broker_id, node in nodes.items()}
        self.ids = frozenset(nodes)
        for broker_id, cache in self._updated.items():
            if known.get(broker_id) is not cache and not _has_newer(cache, self._shared):
                cache.replace(self._shared)
                cache.updated_to(first_update_number(image.controller_epoch))


def _has_newer(cache: MetadataCache, image: Image) -> bool:
    return cache.image.controller_epoch > image.controller_epoch


def _is_visible(topic: Topic) -> bool:
    """Whether nodes see a topic: it had a leader, and is not marked for deletion."""
    return not topic.marked_for_deletion and topic.was_ever_led


def _as_nodes_see_it(image: Image) -> Image:
    """Return the controller's image with the topics that nodes see, in the form in which they do,
    and without what only the controller needs.
    """
    live = image.live_ids()
    hidden = [name for name, topic in image.topics.items() if not _is_visible(topic)]
    visible = (topic for topic in image.topics.values() if _is_visible(topic))
    changed = [seen for topic in visible if (seen := topic.for_nodes(live)) is not topic]
    return msgspec.structs.replace(image.with_topics(changed, hidden), counts=None, leftover_configs=Map())
