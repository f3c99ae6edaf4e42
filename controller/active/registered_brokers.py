"""The active controller's reaction to brokers that register, leave, begin to shut down, or lose
replicas.

Rule: leaders are elected only by jobs of the writer (`partition_states`); this module says which
elections a change of the brokers calls for.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from ...cluster.entities import Broker
from ...cluster.image import Image
from ...store.signal import Signal
from . import partition_states
from .deletion import Deletions
from .jobs import ControllerMoved, Draft, StagedElement
from .loading import with_shutdowns
from .node_updates import NodeUpdates
from .partition_states import LeaderElector
from .writer import Writer

log = logging.getLogger("minicontroller.controller")

Loss = tuple[Broker, Mapping[bytes, Collection[int]]]
"""A broker, and the partitions whose replica it has lost, by topic id."""


class RegisteredBrokers:
    """Takes over the registrations of brokers, sends them to all nodes, and has leaders elected."""

    def __init__(self, writer: Writer, elector: LeaderElector, updates: NodeUpdates, deletions: Deletions) -> None:
        self._writer = writer
        self._elector = elector
        self._updates = updates
        self._deletions = deletions
        self._losses: list[Loss] = []
        """The losses after which no leaders were elected yet."""
        self._lost = Signal()

    async def changed(self, brokers: Iterable[Broker]) -> None:
        """Take over the registrations, send them to all nodes, and elect leaders."""
        before = self._writer.image
        self._writer.adopt(before.with_brokers(with_shutdowns(brokers, before.brokers)))
        now = self._writer.image
        self._updates.brokers_changed(now)
        changed = {broker_id for broker_id, _ in _epochs(before) ^ _epochs(now)}
        for broker_id in sorted(changed):
            log.info("broker %d %s", broker_id, "registered" if broker_id in now.brokers else "is gone")
        if changed:
            bounced = frozenset(each for each in changed if each in before.brokers and each in now.brokers)
            await self._elector.elect(lambda draft: self._elector.elect_after_change_of(draft, changed, bounced))
            self._updates.liveness_changed(before, self._writer.image, changed)
            self._deletions.resume(self._writer.image)

    def begin_shutdown(self, broker_id: int) -> None:
        """Begin a controlled shutdown: the broker stays in the metadata, but cannot be elected."""
        image = self._writer.image
        stopping = msgspec.structs.replace(image.brokers[broker_id], shutting_down=True)
        self._writer.adopt(image.with_brokers(image.brokers.set(broker_id, stopping).values()))

    def replicas_lost(self, broker: Broker, lost: Mapping[bytes, Collection[int]]) -> None:
        """Treat replicas that a broker has lost as offline (Kafka:
        KafkaController.processLeaderAndIsrResponseReceived).
        """
        self._losses.append((broker, lost))
        self._lost.send()

    async def run(self) -> None:
        """Elect leaders for partitions with lost replicas, until another controller is elected."""
        while True:
            await self._lost.wait()
            losses, self._losses = self._losses, []
            try:
                await self._elector.elect(partial(self._elect_without, losses))
            except ControllerMoved:
                return  # the next controller learns of it, too

    async def _elect_without(self, losses: Sequence[Loss], draft: Draft) -> list[StagedElement]:
        names = [name for broker, lost in losses for name in partition_states.lose(draft, broker, lost)]
        return await self._elector.elect_for_topics(draft, names)


def _epochs(image: Image) -> set[tuple[int, int]]:
    return {(broker.broker_id, broker.epoch) for broker in image.brokers.values()}
