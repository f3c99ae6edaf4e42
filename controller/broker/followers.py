"""Expands the ISR of the partitions that this node leads, by AlterPartition as Kafka's leaders do.

Rule: our nodes have no logs, so a follower is in sync as soon as its broker is live. Changes of the
metadata start a request, and an error in its response is final until the metadata changes again. A
request ends with its timeout, or when another controller is elected; sending it again is harmless.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable

import trio

from ...cluster.cache import ImageChanges, MetadataCache
from ...cluster.entities import Partition, Topic
from ...cluster.image import Image
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.alter_partition import AlterPartitionResponse, BrokerState, PartitionData, TopicData
from ...store.signal import Signal

log = logging.getLogger("minicontroller.node")

RETRY_SECONDS = 0.05  # Kafka: AlterPartitionManager resends after 50 ms

AlterPartition = Callable[[list[TopicData]], Awaitable[AlterPartitionResponse | None]]
"""Sends AlterPartition for these topics to the active controller, as this broker. Returns None if
the controller cannot be reached.
"""


class Followers:
    """Watches a node's metadata for partitions that the node leads and whose ISR lacks a live
    replica.
    """

    def __init__(
        self, cache: MetadataCache, alter_partition: AlterPartition, *, broker_id: int, timeout_seconds: float
    ) -> None:
        self._cache = cache
        self._alter_partition = alter_partition
        self._broker_id = broker_id
        self._timeout_seconds = timeout_seconds
        self._candidates: dict[str, None] = {}
        """Names of topics that may have such partitions."""
        self._candidates_added = Signal()
        cache.on_change(self._image_changed)

    def _image_changed(self, before: Image, after: Image, changes: ImageChanges) -> None:
        topics: Iterable[Topic] = changes.topics
        if after.brokers is not before.brokers:
            topics = after.topics.values()
        for topic in topics:
            if any(self._missing(after, partition) for partition in topic.partitions):
                self._candidates[topic.name] = None
        if self._candidates:
            self._candidates_added.send()

    def _missing(self, image: Image, partition: Partition) -> list[int]:
        """Return the replicas that could be in the ISR and are not."""
        if partition.leader != self._broker_id or len(partition.isr) == len(partition.replicas):
            return []
        absent = {*partition.isr, *partition.offline_replicas}
        return [r for r in partition.replicas if r not in absent and r in image.brokers]

    async def run(self) -> None:
        while True:
            await self._candidates_added.wait()
            while self._candidates:
                await self._expand_isrs()

    async def _expand_isrs(self) -> None:
        names, self._candidates = self._candidates, {}
        topics = self._with_missing_replicas(names)
        if not topics:
            return
        answer = await self._ask_controller(topics)
        if answer is None or answer.error_code in (ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH):
            self._candidates = {**names, **self._candidates}
            await trio.sleep(RETRY_SECONDS)
            return
        refused = [
            partition.error_code
            for topic in answer.topics
            for partition in topic.partitions
            if partition.error_code != ErrorCode.NONE
        ]
        log.debug(
            "asked for %d topics with live followers out of sync, %d partitions refused", len(names), len(refused)
        )

    async def _ask_controller(self, topics: list[TopicData]) -> AlterPartitionResponse | None:
        """Return the controller's response, or None if there is none in time, or another controller
        is elected.
        """
        answer: AlterPartitionResponse | None = None
        epoch = self._cache.image.controller_epoch
        with trio.move_on_after(self._timeout_seconds):
            async with trio.open_nursery() as nursery:

                async def end_with_epoch() -> None:
                    await self._cache.wait_cluster(lambda image: image.controller_epoch != epoch)
                    nursery.cancel_scope.cancel()

                nursery.start_soon(end_with_epoch)
                answer = await self._alter_partition(topics)
                nursery.cancel_scope.cancel()
        return answer

    def _with_missing_replicas(self, names: Iterable[str]) -> list[TopicData]:
        image = self._cache.image
        topics = []
        for name in names:
            topic = image.topics.get(name)
            partitions = [
                _data(index, partition, missing)
                for index, partition in enumerate(topic.partitions if topic is not None else ())
                if (missing := self._missing(image, partition))
            ]
            if topic is not None and partitions:
                topics.append(TopicData(topic_id=topic.topic_id, partitions=partitions))
        return topics


def _data(index: int, partition: Partition, missing: Collection[int]) -> PartitionData:
    isr = [*partition.isr, *missing]
    return PartitionData(
        partition_index=index,
        leader_epoch=partition.leader_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=replica) for replica in isr],
        partition_epoch=partition.partition_epoch,
    )
