"""The records, groups and transactions of a cluster whose nodes are those of one process, and what
becomes due in them by time.

Rule: the machines are called in the event loop's thread and never wait, so that each call is one
step for all tasks.
"""

import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from uuid import UUID

import trio

from ...clock import now_ms
from ...cluster.cache import ImageChanges
from ...cluster.coordinators import partition_for
from ...cluster.image import Image
from ...controller.broker.data import DataParts
from ...process.settings.node_config import NodeConfig
from ...process.steps import Steps
from ...process.time_slices import at_once, carried_out
from ...store.signal import Signal
from ..control import EndMarker
from ..errors import LogError
from ..groups.coordinator import GroupCoordinator
from ..groups.limits import GroupLimits
from ..memory import Memory
from ..transactions import TransactionCoordinator, TransactionEnding, TransactionLimits
from .kept import KeptLogs
from .node_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, NodeTopics

log = logging.getLogger("minicontroller.records")

SHARE_OF_MEMORY = 4
"""The share of the machine's memory that records may take, unless `records.memory.max.bytes` is
set: one part of so many.
"""
SHARE_OF_COORDINATORS = 16
"""The share of that which groups may take, and transactional ids as well: one part of so many."""


class ClusterData:
    """What all nodes of a process keep together. The configuration of its first node decides."""

    def __init__(self, config: NodeConfig) -> None:
        self.config = config
        self._random = Random()  # noqa: S311 - ids of members and sessions are no secrets
        limit = memory_limit(config)
        self.logs = KeptLogs(Memory(limit))
        self.groups = GroupCoordinator(_group_limits(config, limit // SHARE_OF_COORDINATORS), self._new_id)
        self.transactions = TransactionCoordinator(
            TransactionLimits(
                max_timeout_ms=config.integer("transaction.max.timeout.ms"),
                id_expiration_ms=config.integer("transactional.id.expiration.ms"),
                max_bytes=limit // SHARE_OF_COORDINATORS,
            )
        )
        self.nodes: list[NodeTopics] = []
        """In the order in which they started."""
        self._groups_changed = Signal()
        self._unfinished: deque[Steps[None]] = deque()
        """The transactions whose markers are not all written."""
        self._has_unfinished = Signal()

    def add(self, parts: DataParts, topics: NodeTopics) -> None:
        """Take in a node of the process."""
        self.nodes.append(topics)
        if len(self.nodes) == 1:  # the nodes of a process share their image
            parts.view.cache.on_change(self._publish)

    def session_id(self) -> int:
        return self._random.randrange(1, 2**31)

    def _new_id(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))

    @property
    def image(self) -> Image:
        return self.nodes[0].image

    # ------------------------------------------------------------------ the cluster changes

    def _publish(self, before: Image, after: Image, changes: ImageChanges) -> None:
        self.logs.publish(before, after, changes)
        if changes.removed:
            self.groups.forget_topics(changes.removed)
        moved = _moved_coordinators(before, after)
        if moved:
            count = len(after.topics[OFFSETS_TOPIC].partitions)
            self.groups.move(lambda group_id: partition_for(group_id, count) in moved, now_ms())
        self.groups_changed()

    # ------------------------------------------------------------------ transactions

    def finish(self, ending: TransactionEnding) -> None:
        """Write the markers of a transaction that ends: the first now, more of them soon. Until all
        are written, its producer has to wait.
        """
        rest = at_once(self._markers(ending))
        if rest is not None:
            self._unfinished.append(rest)
            self._has_unfinished.send()

    async def _finish_others(self) -> None:
        while True:
            await self._has_unfinished.wait()
            while self._unfinished:
                await carried_out(self._unfinished.popleft())

    def _markers(self, ending: TransactionEnding) -> Steps[None]:
        """Write the markers of a transaction. A topic that is gone needs none."""
        image, now = self.image, now_ms()
        epoch = _epoch_of(image, TRANSACTIONS_TOPIC, ending.transactional_id)
        marker = EndMarker(ending.producer.producer_id, ending.producer.epoch, epoch, ending.commits)
        for name, index in sorted(ending.partitions):
            yield
            image = self.image
            topic = image.topics.get(name)
            partition = None if topic is None else topic.partition(index)
            if topic is None or partition is None:
                continue
            kept = self.logs.written(topic, index, self.nodes[0].settings_of(topic))
            try:
                kept.append_marker(marker, leader_epoch=partition.leader_epoch, now=now)
            except LogError as error:
                log.warning("a transaction of %s is not ended in %s-%d: %s", ending.producer, name, index, error)
            self.logs.changed((topic.topic_id, index))
            if name == OFFSETS_TOPIC:
                lies_here = partial(_lies_in, index, len(topic.partitions))
                self.groups.end_transaction(ending.producer.producer_id, commits=ending.commits, group_ids=lies_here)
        self.transactions.completed(ending.transactional_id, now)

    # ------------------------------------------------------------------ time

    def groups_changed(self) -> None:
        """Look again when something is due in a group. Called after each call of the groups."""
        self._groups_changed.send()

    async def run(self) -> None:
        """Do what is due by time, until cancelled."""
        config = self.config
        hour = 3_600_000
        async with trio.open_nursery() as tasks:
            tasks.start_soon(self._follow_groups)
            tasks.start_soon(self._finish_others)
            for interval_ms, act in (
                (config.integer("log.retention.check.interval.ms"), self._retain),
                (config.integer("log.cleaner.backoff.ms"), self._compact),
                (config.integer("producer.id.expiration.check.interval.ms"), self._expire_producers),
                (config.integer("offsets.retention.check.interval.ms"), self._expire_offsets),
                (config.integer("transaction.abort.timed.out.transaction.cleanup.interval.ms"), self._abort_overdue),
                (hour, self._expire_transactions),
            ):
                tasks.start_soon(_every, interval_ms / 1000, act)

    async def _follow_groups(self) -> None:
        while True:
            deadline = self.groups.next_deadline()
            wait = float("inf") if deadline is None else max(0.0, (deadline - now_ms()) / 1000)
            with trio.move_on_after(wait):
                await self._groups_changed.wait()
            self.groups.tick(now_ms())

    async def _retain(self) -> None:
        for node in self.nodes:
            for topic, index in node.led(self.logs.places()):
                kept = self.logs.written(topic, index, node.settings_of(topic))
                kept.apply_retention(now_ms())
                self.logs.changed((topic.topic_id, index))
                await trio.lowlevel.checkpoint()

    async def _compact(self) -> None:
        for node in self.nodes:
            for topic, index in node.led(self.logs.places()):
                settings = node.settings_of(topic)
                if settings.compacts:
                    await carried_out(self.logs.written(topic, index, settings).compact(now_ms()))
                    await trio.lowlevel.checkpoint()

    async def _expire_producers(self) -> None:
        after = self.config.integer("producer.id.expiration.ms")
        for _, kept in self.logs:
            kept.producers.expire(now_ms(), after)
            await trio.lowlevel.checkpoint()

    async def _expire_offsets(self) -> None:
        for _ in self.groups.expire_offsets(now_ms()):
            await trio.lowlevel.checkpoint()

    async def _abort_overdue(self) -> None:
        for ending in self.transactions.abort_overdue(now_ms()):
            self.finish(ending)

    async def _expire_transactions(self) -> None:
        self.transactions.expire(now_ms())


async def _every(seconds: float, act: Callable[[], Awaitable[None]]) -> None:
    while True:
        await trio.sleep(seconds)
        await act()


def memory_limit(config: NodeConfig) -> int:
    """Return how many bytes the records of a process may take."""
    limit = config.optional_integer("records.memory.max.bytes")
    return _memory_of_machine() // SHARE_OF_MEMORY if limit is None else limit


def _memory_of_machine() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _group_limits(config: NodeConfig, max_bytes: int) -> GroupLimits:
    return GroupLimits(
        min_session_timeout_ms=config.integer("group.min.session.timeout.ms"),
        max_session_timeout_ms=config.integer("group.max.session.timeout.ms"),
        max_size=config.integer("group.max.size"),
        initial_rebalance_delay_ms=config.integer("group.initial.rebalance.delay.ms"),
        offsets_retention_ms=config.integer("offsets.retention.minutes") * 60_000,
        max_bytes=max_bytes,
    )


def _moved_coordinators(before: Image, after: Image) -> frozenset[int]:
    """Return the partitions of the offsets' topic whose leader has changed."""
    former, topic = before.topics.get(OFFSETS_TOPIC), after.topics.get(OFFSETS_TOPIC)
    if former is None or topic is None or former is topic:
        return frozenset()
    pairs = zip(former.partitions, topic.partitions, strict=False)
    return frozenset(index for index, (old, new) in enumerate(pairs) if old.leader_epoch != new.leader_epoch)


def _lies_in(partition: int, count: int, group_id: str) -> bool:
    return partition_for(group_id, count) == partition


def _epoch_of(image: Image, name: str, key: str) -> int:
    """Return the epoch of the coordinator of a key: that of the leader of its partition."""
    topic = image.topics.get(name)
    return 0 if topic is None else topic.partitions[partition_for(key, len(topic.partitions))].leader_epoch
