"""Moves leadership back to preferred leaders by itself, as Kafka's controller does
(KafkaController.checkAndTriggerAutoLeaderRebalance).

Rule: it elects only preferred leaders that are online and in sync, and none while any partition is
being reassigned.
"""

import contextlib
import logging
from collections import Counter
from collections.abc import Container

import trio

from ..config.node_config import NodeConfig
from ..metadata import leadership
from ..metadata.entities import Topic
from .jobs import ControllerMoved, Draft
from .partition_states import stage_states
from .writer import Writer

log = logging.getLogger("minicontroller.controller")

FIRST_CHECK_SECONDS = 5.0
"""The time between the election of a controller and its first check, which is Kafka's."""


class LeaderRebalance:
    """Checks every `leader.imbalance.check.interval.seconds`, if `auto.leader.rebalance.enable` is
    set, which brokers lead too few of the partitions that prefer them.
    """

    def __init__(self, config: NodeConfig, writer: Writer, epoch: int) -> None:
        self._is_enabled = config.boolean("auto.leader.rebalance.enable")
        self._interval_seconds = config.integer("leader.imbalance.check.interval.seconds")
        self._tolerated_share = config.integer("leader.imbalance.per.broker.percentage") / 100
        self._writer = writer
        self._epoch = epoch

    async def run(self) -> None:
        """Move leadership back until cancelled, or until another controller is elected."""
        if not self._is_enabled:
            return
        await trio.sleep(FIRST_CHECK_SECONDS)
        with contextlib.suppress(ControllerMoved):  # the next controller does it
            while True:
                moved = await self._writer.write(self._elect)
                if moved:
                    log.info("partitions are led by their preferred leaders again: %d", moved)
                await trio.sleep(self._interval_seconds)

    async def _elect(self, draft: Draft) -> int:
        """Stage the elections, and return their number."""
        topics = [topic for topic in draft.image.topics.values() if not topic.marked_for_deletion]
        preferring, led_by_others = Counter[int](), Counter[int]()
        for topic in topics:
            await draft.time_slice.pause()
            for partition in topic.partitions:
                if partition.adding_replicas or partition.removing_replicas:
                    return 0
                preferred = partition.replicas[0]
                preferring[preferred] += 1
                led_by_others[preferred] += partition.has_state and partition.leader != preferred
        brokers = {
            broker_id
            for broker_id, count in led_by_others.items()
            if count > self._tolerated_share * preferring[broker_id]
        }
        moved = 0
        if brokers:
            for topic in topics:
                await draft.time_slice.pause()
                moved += self._elect_preferred(draft, topic, brokers)
        return moved

    def _elect_preferred(self, draft: Draft, topic: Topic, brokers: Container[int]) -> int:
        live = draft.image.live_ids()
        elected = {
            index: state
            for index, partition in enumerate(topic.partitions)
            if partition.replicas[0] in brokers
            and partition.leader != partition.replicas[0]
            and (state := leadership.elect_preferred(partition, live)) is not None
        }
        if elected:
            stage_states(draft, topic, elected, self._epoch)
        return len(elected)
