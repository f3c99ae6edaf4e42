"""The dynamic configs of a node, from `/config/brokers/<id>` and `/config/brokers/<default>`.

Rule: configs that cannot be read, or that cannot be in force together, leave in force what was.
Values may be secrets: they are kept as they are in the store, and never logged.
"""

import logging
from collections.abc import Callable, Mapping

from ...cluster.cache import ImageChanges
from ...cluster.entities import NO_CONFIGS, NO_ENTITY_CONFIGS, UNREADABLE
from ...cluster.image import Image
from ...cluster.znodes import layout
from ...process.settings.in_force import faults_together, in_force
from ...process.settings.node_config import NodeConfig

log = logging.getLogger("minicontroller.config")


class DynamicConfigs:
    """The configuration of one node with the dynamic configs in its image."""

    def __init__(self, config: NodeConfig, broker_id: int) -> None:
        self.static = config
        """The node's configuration without any dynamic config."""
        self.current = config
        """The node's configuration with the dynamic configs in force; another object after each
        change.
        """
        self.of_cluster: Mapping[str, str] = NO_CONFIGS
        """The configs in `/config/brokers/<default>`."""
        self.of_node: Mapping[str, str] = NO_CONFIGS
        """The configs in `/config/brokers/<id>`, which override those of the cluster."""
        self._own_name = str(broker_id)
        self._followers: list[Callable[[NodeConfig], None]] = []

    def follow(self, follower: Callable[[NodeConfig], None]) -> None:
        """Call `follower(config)` now, and whenever another configuration is in force."""
        self._followers.append(follower)
        follower(self.current)

    def publish(self, before: Image, after: Image, _changes: ImageChanges) -> None:
        """Put the configs of an image into force."""
        if after.configs is before.configs:
            return
        of_node = _readable(before, after, self._own_name, self.of_node)
        of_cluster = _readable(before, after, layout.DEFAULT_ENTITY, self.of_cluster)
        if (of_node, of_cluster) != (self.of_node, self.of_cluster):  # what was parsed of these is kept with them
            self.of_node, self.of_cluster = of_node, of_cluster
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


def _readable(before: Image, after: Image, name: str, known: Mapping[str, str]) -> Mapping[str, str]:
    """Return the configs of a broker as an image has them, or those that were known if they are
    unreadable.
    """
    path = layout.entity_path(layout.BROKERS_ENTITY, name)
    found = after.configs.get(path, NO_ENTITY_CONFIGS)
    if found.version != UNREADABLE:
        return found.configs
    if found != before.configs.get(path):
        log.warning("/config/%s is unreadable; what it said before stays in force", path)
    return known
