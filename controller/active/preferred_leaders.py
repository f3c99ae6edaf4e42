"""Moves leadership back to preferred leaders: by itself, and where tools before Kafka 2.4 ask for
it in `/admin/preferred_replica_election`.

Rule: only preferred leaders that are online and in sync are elected.
"""

import contextlib
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import trio

from ...cluster import leadership
from ...cluster.delta import NO_CHANGE
from ...cluster.entities import Topic
from ...cluster.znodes import layout
from ...cluster.znodes.content import MalformedZnodeError
from ...cluster.znodes.requests import decode_elections
from ...process.settings.node_config import NodeConfig
from ...store.base import Delete, Operation, Store
from ...store.signal import Signal
from .jobs import ControllerMoved, Draft, StagedElement
from .partition_states import stage_states
from .writer import Writer

log = logging.getLogger("minicontroller.controller")

FIRST_CHECK_SECONDS = 5.0
"""The time between the election of a controller and its first check, which is Kafka's."""


class LeaderRebalance:
    """Checks every `leader.imbalance.check.interval.seconds`, if `auto.leader.rebalance.enable` is
    set, which brokers lead too few of the partitions that prefer them (Kafka:
    KafkaController.checkAndTriggerAutoLeaderRebalance). Nothing is moved while any partition is
    being reassigned.
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
        topics = [topic for topic in draft.image.topics.values() if not topic.marked_for_deletion]
        if any(topic.is_moving for topic in topics):
            return 0
        preferring, led_by_others = Counter[int](), Counter[int]()
        for topic in topics:
            await draft.time_slice.pause()
            for partition in topic.partitions:
                preferring[partition.replicas[0]] += 1
                led_by_others[partition.replicas[0]] += partition.has_state and not partition.is_led_as_preferred
        brokers = {
            broker_id
            for broker_id, count in led_by_others.items()
            if count > self._tolerated_share * preferring[broker_id]
        }
        elected = 0
        for topic in topics if brokers else ():
            await draft.time_slice.pause()
            indexes = [index for index, each in enumerate(topic.partitions) if each.replicas[0] in brokers]
            elected += _elect_preferred(draft, topic, indexes, self._epoch)
        return elected


class SubmittedElections:
    """Carries out the elections that are asked for in `/admin/preferred_replica_election`."""

    def __init__(self, store: Store, writer: Writer, epoch: int) -> None:
        self.changed = Signal()
        """Sent when `/admin/preferred_replica_election` may have changed."""
        self._store = store
        self._writer = writer
        self._epoch = epoch

    async def read(self) -> None:
        """Elect preferred leaders as the znode asks, and delete it. A znode that cannot be read is
        deleted too, as by Kafka, or no tool could ask again; one with children stays. Raises
        ControllerMoved and StoreUnavailable.
        """
        entry = await self._store.get(layout.PREFERRED_REPLICA_ELECTION, self.changed.send)
        if entry is None:
            return
        try:
            partitions = decode_elections(entry.data)
        except MalformedZnodeError as error:
            log.warning("%s is deleted: %s", layout.PREFERRED_REPLICA_ELECTION, error)
            partitions = {}
        (children,) = await self._store.children_many([layout.PREFERRED_REPLICA_ELECTION])
        done = [] if children else [Delete(layout.PREFERRED_REPLICA_ELECTION, entry.stat.version)]
        elements = await self._writer.write(partial(self._elect, partitions, done), urgent=True)
        if any(each.refusal is not None for each in elements):  # another program has written to one of the znodes
            self.changed.send()

    async def _elect(
        self, partitions: Mapping[str, Collection[int]], done: Sequence[Operation], draft: Draft
    ) -> list[StagedElement]:
        for name, indexes in partitions.items():
            await draft.time_slice.pause()
            topic = draft.image.topics.get(name)
            if topic is not None and not topic.marked_for_deletion:
                elected = _elect_preferred(draft, topic, indexes, self._epoch)
                log.info("topic %s: %d preferred leaders are elected, as another program asks", name, elected)
        if done:
            draft.stage(NO_CHANGE, done)
        return draft.elements


def _elect_preferred(draft: Draft, topic: Topic, indexes: Collection[int], epoch: int) -> int:
    """Stage elections of the preferred leaders that can lead, and return their number."""
    live = draft.image.live_ids()
    elected = {
        index: state
        for index in indexes
        if (partition := topic.partition(index)) is not None
        and not partition.is_led_as_preferred
        and (state := leadership.elect_preferred(partition, live)) is not None
    }
    if elected:
        stage_states(draft, topic, elected, epoch)
    return len(elected)
