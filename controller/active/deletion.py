"""Deletes topics that are marked for deletion: first their replicas, then their znodes.

Rule: clients no longer see a topic as soon as it is marked, and every node is updated at once. The
rest is done in the background and needs every replica; a replica on a broker that is not live waits
for its return. A new active controller resumes every deletion whose marker it finds.
"""

import contextlib
import logging
import math
from collections.abc import Awaitable, Callable

import trio

from ...cluster.delta import TopicRemoved
from ...cluster.entities import Topic
from ...cluster.image import Image
from ...cluster.znodes import layout
from ...store.base import Delete, Operation, Store, whole_trees
from .jobs import ControllerMoved, Draft, StagedElement
from .local_nodes import LocalNodes
from .propagation import Propagation
from .writer import Writer

log = logging.getLogger("minicontroller.controller")

RETRY_SECONDS = 5.0
"""The pause before another attempt to delete znodes below which other processes keep writing."""

Key = tuple[str, bytes]
"""A topic's name and id. A new topic of the same name may be created and marked meanwhile."""


class Deletions:
    """The replicas of marked topics that are still to be deleted."""

    def __init__(self, store: Store, writer: Writer, propagation: Propagation, local_nodes: LocalNodes) -> None:
        self._store = store
        self._writer = writer
        self._propagation = propagation
        self._local_nodes = local_nodes
        self._replicas_left: dict[Key, set[int]] = {}
        self._without_replicas: list[Topic] = []
        self._wake = trio.Event()

    def start(self, topic: Topic) -> None:
        """Delete the replicas of a topic that has been marked."""
        brokers = {replica for partition in topic.partitions for replica in partition.replicas}
        brokers.difference_update(self._local_nodes.ids)  # local nodes have no logs
        self._replicas_left[_key(topic)] = brokers
        for broker_id in brokers.intersection(self._writer.image.brokers):
            self._propagation.delete_replicas(topic, broker_id)
        self._finish_if_empty(topic)

    def resume(self, image: Image) -> None:
        self._replicas_left = {key: left for key, left in self._replicas_left.items() if key[0] in image.topics}
        for topic in image.topics.values():
            if topic.marked_for_deletion:
                self.start(topic)

    def replicas_deleted(self, broker_id: int, topics: list[Topic]) -> None:
        for topic in topics:
            left = self._replicas_left.get(_key(topic))
            if left is not None:
                left.discard(broker_id)
                self._finish_if_empty(topic)

    def _finish_if_empty(self, topic: Topic) -> None:
        if not self._replicas_left[_key(topic)]:
            self._without_replicas.append(topic)
            self._wake.set()

    async def run(self) -> None:
        """Delete the znodes of topics that have no replicas left, many in one commit."""
        left: list[Topic] = []
        while True:
            with trio.move_on_after(RETRY_SECONDS if left else math.inf):
                await self._wake.wait()
            self._wake = trio.Event()
            topics, self._without_replicas = [*left, *self._without_replicas], []
            with contextlib.suppress(ControllerMoved):
                left = await self._delete_znodes(topics)

    async def _delete_znodes(self, topics: list[Topic]) -> list[Topic]:
        """Delete the znodes of these topics, and return the topics of which znodes are left because
        other processes keep writing below them.
        """
        left = await self._writer.write(lambda draft: self._plan(draft, topics, _znodes_of_whole_topic))
        refused = left()
        if refused:
            left = await self._writer.write(lambda draft: self._plan(draft, refused, self._existing_znodes))
        for topic in left():
            log.warning(
                "the znodes of topic %s cannot be deleted yet, because other programs write below them", topic.name
            )
        for topic in topics:
            if topic not in left():
                self._replicas_left.pop(_key(topic), None)
        return left()

    async def _plan(
        self, draft: Draft, topics: list[Topic], znodes: Callable[[Topic], Awaitable[list[Operation]]]
    ) -> Callable[[], list[Topic]]:
        """Stage the deletion of these topics' znodes. Return a function that returns, after the
        commit, the topics for which the store refused it.
        """
        staged: list[tuple[Topic, StagedElement]] = []
        for topic in topics:
            await draft.time_slice.pause()
            current = draft.image.topics.get(topic.name)
            if current is not None and current.marked_for_deletion and current.topic_id == topic.topic_id:
                staged.append((current, draft.stage(TopicRemoved(topic.name, topic.topic_id), await znodes(current))))
        return lambda: [topic for topic, element in staged if element.refusal is not None]

    async def _existing_znodes(self, topic: Topic) -> list[Operation]:
        """Return the deletions of a topic's existing znodes, for a topic that was never complete,
        that a predecessor began to delete, or below which others wrote.
        """
        store, marker = self._store, layout.delete_topic_path(topic.name)
        found = await whole_trees(store, [layout.topic_path(topic.name), layout.topic_config_path(topic.name)])
        if await store.get(marker) is not None:
            found.insert(0, marker)  # deleted last
        return [Delete(path) for path in reversed(found)]


async def _znodes_of_whole_topic(topic: Topic) -> list[Operation]:
    """Return the deletions of a complete topic's znodes: children first and the marker last, so
    that a successor finds the rest.
    """
    operations: list[Operation] = []
    for index in range(len(topic.partitions)):
        operations += [
            Delete(layout.partition_state_path(topic.name, index)),
            Delete(layout.partition_path(topic.name, index)),
        ]
    operations += [
        Delete(layout.partitions_path(topic.name)),
        Delete(layout.topic_path(topic.name)),
        Delete(layout.topic_config_path(topic.name)),
        Delete(layout.delete_topic_path(topic.name)),
    ]
    return operations


def _key(topic: Topic) -> Key:
    return topic.name, topic.topic_id
