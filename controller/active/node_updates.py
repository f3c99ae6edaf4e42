"""Updates all nodes when the metadata changes: local nodes by call, the others by control requests.

Rule: this module compares two images to find what changed for the nodes; `local_nodes` and
`propagation` deliver it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from ...cluster.delta import EntitiesChanged
from ...cluster.entities import Topic
from ...cluster.entity_paths import Entity
from ...cluster.image import Image
from .jobs import StagedElement
from .local_nodes import LocalNodes
from .propagation import Propagation


class NodeUpdates:
    """The updates that one active controller sends to all nodes."""

    def __init__(self, local_nodes: LocalNodes, propagation: Propagation) -> None:
        self._local_nodes = local_nodes
        self._propagation = propagation

    def restart(self, image: Image) -> None:
        """Send everything to every node, after the controller has loaded its state."""
        self._local_nodes.update_everything(image)
        self._propagation.restart(image)

    def brokers_changed(self, image: Image) -> None:
        """Send the live brokers to every node, and everything to brokers that have registered."""
        self._local_nodes.update_brokers(image)
        self._propagation.brokers_changed(image)

    def committed(self, before: Image, image: Image, elements: Sequence[StagedElement]) -> list[Topic]:
        """Send what these elements have changed. Returns the topics that are newly marked for
        deletion.

        The nodes of other processes read entities from the store: they follow the notifications,
        and are told what to read once somebody waits for that.
        """
        names = dict.fromkeys(element.topic for element in elements if element.topic is not None)
        changed, marked, removed = self._topics_changed(before, image, names)
        entities: dict[str, Entity | None] = {}
        for element in elements:
            if isinstance(element.delta, EntitiesChanged) and element.refusal is None:
                entities.update(element.delta.entities)
        self._local_nodes.update(image, changed, [*removed, *(topic.name for topic in marked)], entities)
        if entities:
            self._propagation.entities_changed(entities)
        return marked

    def _topics_changed(
        self, before: Image, image: Image, names: Iterable[str]
    ) -> tuple[list[Topic], list[Topic], list[str]]:
        """Send those of these topics that differ between the images. Returns them, those that are
        newly marked for deletion, and the names of those that others have removed.
        """
        changed, marked, removed = [], [], []
        for name in names:
            topic, old = image.topics.get(name), before.topics.get(name)
            if topic is old:
                continue
            if topic is None or topic.marked_for_deletion:
                was_marked = old is not None and old.marked_for_deletion
                if topic is not None and not (old is not None and was_marked and old.topic_id == topic.topic_id):
                    marked.append(topic)
                    self._propagation.topic_forgotten(topic)
                elif topic is None and old is not None and not was_marked:  # another process has removed it
                    removed.append(name)
                    self._propagation.topic_forgotten(old)
                continue
            if old is not None and len(old.partitions) > len(topic.partitions):  # another process has replaced it
                self._propagation.topic_forgotten(old)
                old = None
            changed.append(topic)
            self._propagation.topic_changed(old, topic)
        return changed, marked, removed

    def liveness_changed(self, before: Image, image: Image, brokers: Collection[int]) -> None:
        """Send the partitions with a replica on one of these brokers whose state is the same in
        both images, because their replicas went offline or came back.
        """
        changed = []
        for name, topic in image.topics.items():
            old = before.topics.get(name)
            if old is None or topic.marked_for_deletion:
                continue
            same = [
                index
                for index, (partition, known) in enumerate(zip(topic.partitions, old.partitions, strict=False))
                if partition is known and partition.has_state and any(each in brokers for each in partition.replicas)
            ]
            if same:
                changed.append(topic)
                self._propagation.liveness_changed(topic, same)
        self._local_nodes.update(image, changed)

    def stop_followers(self, image: Image, broker_id: int, partitions: Mapping[str, Iterable[int]]) -> None:
        """Have a broker stop its replicas of these partitions, by topic (controlled shutdown)."""
        for name, indexes in partitions.items():
            topic = image.topics.get(name)
            if topic is not None:
                for index in indexes:
                    self._propagation.stop_replica(topic, index, broker_id)
