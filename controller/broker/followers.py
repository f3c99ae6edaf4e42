"""The followers of the partitions that this node leads are in sync as soon as they live: none of
our nodes has a log to catch up with.

Rule: said as a broker of Kafka says it, by AlterPartition to the controller, so the controller
needs no special case for nodes like this one. Told by changes of the metadata, never by a clock; a
refusal is final until the metadata changes again. A controller that does not answer is asked no
longer than until it has a successor, or for the time that any request between nodes has: to ask
again does no harm.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import TYPE_CHECKING

import trio

from ...protocol.error_codes import ErrorCode
from ...protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)
from ..metadata.image import Image, Partition, Topic
from ..store.signal import Signal

if TYPE_CHECKING:
    from ..handlers.node import Node

log = logging.getLogger("minicontroller.node")

RETRY_SECONDS = 0.05  # Kafka: AlterPartitionManager resends after 50 ms

Ask = Callable[[AlterPartitionRequest], Awaitable[AlterPartitionResponse | None]]
"""Ask the controller; None if it cannot be reached."""


class Followers:
    """Watches a node's metadata for live replicas that are missing from the ISR of what the node
    leads.
    """

    def __init__(self, node: "Node", ask: Ask) -> None:
        self._node = node
        self._ask = ask
        self._candidates: dict[str, None] = {}
        self._candidates_added = Signal()
        node.cache.on_change(self._look)

    def _look(self, before: Image, after: Image, changed: Collection[Topic]) -> None:
        topics: Iterable[Topic] = changed
        if after.brokers is not before.brokers:
            topics = after.topics.values()
        for topic in topics:
            if any(self._missing(after, partition) for partition in topic.partitions):
                self._candidates[topic.name] = None
        if self._candidates:
            self._candidates_added.send()

    def _missing(self, image: Image, partition: Partition) -> list[int]:
        """Return the replicas that could be in the ISR and are not."""
        if partition.leader != self._node.broker_id or len(partition.isr) == len(partition.replicas):
            return []
        absent = {*partition.isr, *partition.offline_replicas}
        return [r for r in partition.replicas if r not in absent and r in image.brokers]

    async def run(self) -> None:
        while True:
            await self._candidates_added.wait()
            while self._candidates:
                await self._grow()

    async def _grow(self) -> None:
        names, self._candidates = self._candidates, {}
        request = self._request(names)
        if not request.topics:
            return
        answer = await self._answer(request)
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

    async def _answer(self, request: AlterPartitionRequest) -> AlterPartitionResponse | None:
        """Ask the controller; None if nobody answers, or another one rules by now."""
        answer: AlterPartitionResponse | None = None
        epoch, cache = self._node.cache.image.controller_epoch, self._node.cache
        with trio.move_on_after(self._node.request_timeout_ms / 1000):
            async with trio.open_nursery() as nursery:

                async def end_with_reign() -> None:
                    await cache.wait_cluster(lambda image: image.controller_epoch != epoch)
                    nursery.cancel_scope.cancel()

                nursery.start_soon(end_with_reign)
                answer = await self._ask(request)
                nursery.cancel_scope.cancel()
        return answer

    def _request(self, names: Iterable[str]) -> AlterPartitionRequest:
        image = self._node.cache.image
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
        return AlterPartitionRequest(
            broker_id=self._node.broker_id, broker_epoch=self._node.broker_epoch, topics=topics
        )


def _data(index: int, partition: Partition, missing: Collection[int]) -> PartitionData:
    isr = [replica for replica in partition.replicas if replica in partition.isr or replica in missing]
    return PartitionData(
        partition_index=index,
        leader_epoch=partition.leader_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=replica) for replica in isr],
        partition_epoch=partition.partition_epoch,
    )
