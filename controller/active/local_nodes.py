"""Updates the nodes in the active controller's own process by call, as UpdateMetadata does for all
others.

Rule: local nodes are updated in the time slice in which the controller learns of a change, and they
share one image, so that a cluster in one process keeps one copy. As elsewhere, only registered
nodes are updated, and none that has seen a newer controller epoch. They have no logs, so they need
neither LeaderAndIsr nor StopReplica.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from ...cluster.cache import MetadataCache, first_update_number
from ...cluster.entities import NO_ENTITY_CONFIGS, UNREADABLE, Broker, Topic
from ...cluster.entity_paths import Entity, followed
from ...cluster.image import Image
from ...cluster.znodes import layout
from ...process.settings.node_config import NodeConfig


class DynamicConfigsView(Protocol):
    """The part of a node's dynamic configs that the active controller uses."""

    current: NodeConfig
    """The node's configuration with the dynamic configs in force."""

    def apply(self, of_node: Mapping[str, str] | None, of_cluster: Mapping[str, str] | None) -> None:
        """Put configs that the controller has written into force. None keeps the present ones."""


class FollowedEntities(Protocol):
    """The part of a node's view of users, clients, ACLs and tokens that the active controller
    uses.
    """

    def apply(self, changed: Mapping[str, Entity | None]) -> None:
        """Put entities that the controller has written into force, by path."""

    def become(self, entities: Mapping[str, Entity]) -> None:
        """Put exactly these entities into force."""


class LocalNode(Protocol):
    """The part of a local node that the active controller updates."""

    cache: MetadataCache
    broker_epoch: int
    """The broker epoch of the node's registration."""

    @property
    def dynamic_configs(self) -> DynamicConfigsView: ...

    @property
    def security(self) -> FollowedEntities: ...


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
        self._updated: dict[int, MetadataCache] = {}
        """The caches of the other nodes that are updated, by broker id."""

    def __contains__(self, broker_id: int) -> bool:
        """Return whether this is a node of this process, registered or not."""
        return broker_id == self._own_id or broker_id in self._nodes

    def known_topic(self, name: str) -> Topic | None:
        """Return what the active controller's own node knows of a topic."""
        return self._own.cache.image.topics.get(name)

    def is_here(self, broker: Broker) -> bool:
        """Return whether this is the present registration of a local node."""
        if broker.broker_id == self._own_id:
            return True
        node = self._nodes.get(broker.broker_id)
        return node is not None and node.broker_epoch == broker.epoch

    def update_everything(self, image: Image) -> None:
        """Update all topics and brokers, after the controller has loaded its state."""
        self._updated.clear()
        own = self._own.cache
        if not _has_newer(own, image):
            topics = _visible(image, image.topics.values())
            names = {topic.name for topic in topics}
            own.apply(
                controller_id=image.controller_id,
                controller_epoch=image.controller_epoch,
                brokers=image.brokers.values(),
                changed=topics,
                removed=[name for name in own.image.topics if name not in names],
            )
            own.updated_to(first_update_number(image.controller_epoch))
            self._own.security.become(followed(image))
        self._take_in_registered(image)

    def update_brokers(self, image: Image) -> None:
        """Update the live brokers. A local node that has registered since gets everything."""
        self._update(image, (), (), list(image.brokers.values()))
        self._take_in_registered(image)

    def update_topics(self, image: Image, changed: Iterable[Topic], removed: Collection[str]) -> None:
        """Update topics that changed; `removed` names those that are deleted or marked for it."""
        self._update(image, _visible(image, changed), removed, None)

    def update_configs(self, image: Image) -> None:
        """Update the configs of brokers, which other nodes read from the store."""
        of_cluster = _broker_configs(image, layout.DEFAULT_ENTITY)
        for broker_id in self.ids:
            node = self._own if broker_id == self._own_id else self._nodes.get(broker_id)
            if node is not None and not _has_newer(node.cache, image):
                node.dynamic_configs.apply(_broker_configs(image, str(broker_id)), of_cluster)

    def update_entities(self, image: Image, changed: Mapping[str, Entity | None]) -> None:
        for broker_id in self.ids:
            node = self._own if broker_id == self._own_id else self._nodes.get(broker_id)
            if node is not None and not _has_newer(node.cache, image):
                node.security.apply(changed)

    def _update(
        self, image: Image, changed: Collection[Topic], removed: Collection[str], brokers: list[Broker] | None
    ) -> None:
        own = self._own.cache
        before = own.image
        for cache in (own, *self._updated.values()):
            if _has_newer(cache, image):
                continue
            if cache is not own and cache.image is before:
                cache.become(own.image, changed, removed)
            else:
                cache.apply(
                    controller_id=image.controller_id,
                    controller_epoch=image.controller_epoch,
                    brokers=brokers,
                    changed=changed,
                    removed=removed,
                )

    def _take_in_registered(self, image: Image) -> None:
        """Give the own node's image to local nodes that have registered, and leave out those whose
        registration is gone.
        """
        registered = {
            broker_id: self._nodes[broker_id].cache
            for broker_id, broker in image.brokers.items()
            if broker_id != self._own_id and self.is_here(broker)
        }
        known, now = self._updated, self._own.cache.image
        for broker_id, cache in registered.items():
            if known.get(broker_id) is not cache and not _has_newer(cache, now):
                gone = [name for name in cache.image.topics if name not in now.topics]
                cache.become(now, list(now.topics.values()), gone)
                cache.updated_to(first_update_number(now.controller_epoch))
                self._nodes[broker_id].security.become(followed(image))
        self._updated = registered
        self.ids = frozenset({self._own_id, *registered})


def _broker_configs(image: Image, name: str) -> Mapping[str, str] | None:
    found = image.configs.get(layout.entity_path(layout.BROKERS_ENTITY, name), NO_ENTITY_CONFIGS)
    return None if found.version == UNREADABLE else found.configs


def _has_newer(cache: MetadataCache, image: Image) -> bool:
    return cache.image.controller_epoch > image.controller_epoch


def _visible(image: Image, topics: Iterable[Topic]) -> list[Topic]:
    """Return the topics that nodes see: those that had a leader and are not marked for deletion."""
    live = image.live_ids()
    return [topic.for_nodes(live) for topic in topics if not topic.marked_for_deletion and topic.was_ever_led]
