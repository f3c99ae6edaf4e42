"""The nodes of one process as HTTP shows them: which are ready, why not, and whether they changed.

Rule: this only looks. A change costs the nodes the same with no watcher and with a hundred: one
number grows.
"""

from collections.abc import Iterator

import trio

from ...admin.recording.decisions import RecentDecisions
from ...cluster.image import Image
from ...network.http.shown import Health, NodeHealth
from ..node.app import RunningNode


class Process:
    """The nodes that run in this process, in the order of their starts."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        """How many nodes there will be."""
        self.nodes: list[RunningNode] = []
        self.decisions = RecentDecisions()
        self.generation = 0
        """Grows with every change that a watcher could see."""
        self._watchers = trio.lowlevel.ParkingLot()
        self._followed = False

    def add(self, running: RunningNode) -> None:
        self.nodes.append(running)
        if self._followed:
            self._follow(running)

    def watch(self) -> None:
        """Follow the changes of the nodes from now on."""
        if not self._followed:
            self._followed = True
            self.decisions.on_change(self.changed)
            for running in self.nodes:
                self._follow(running)

    def _follow(self, running: RunningNode) -> None:
        running.node.cache.on_change(self.changed)
        running.node.store.on_session(self.changed)
        self.changed()

    def changed(self, *_news: object) -> None:
        self.generation += 1
        if self._watchers:
            self._watchers.unpark_all()

    async def wait_for_change(self, seen: int) -> None:
        """Wait until the generation is no longer `seen`."""
        while self.generation == seen:
            await self._watchers.park()

    def representative(self) -> RunningNode | None:
        """Return the node whose image is shown: the controller if it is in this process, else the
        first one that is not shutting down.
        """
        staying = [node for node in self.nodes if not node.stopping.is_set()]
        return next((node for node in staying if node.node.controller is not None), staying[0] if staying else None)

    def health(self) -> Health:
        nodes = [_health(running) for running in self.nodes]
        reasons = []
        if len(nodes) < self.expected:
            reasons.append(f"{self.expected - len(nodes)} of {self.expected} nodes have not started yet")
        return Health(not reasons and all(node.ready for node in nodes), reasons, nodes)


def _health(running: RunningNode) -> NodeHealth:
    reasons = list(_reasons(running, running.node.cache.image))
    audit = running.node.audit
    refusal = [] if audit is None or audit.refusal is None else [audit.refusal]
    return NodeHealth(running.node.broker_id, not reasons, reasons + refusal)


def _reasons(running: RunningNode, image: Image) -> Iterator[str]:
    node = running.node
    if running.stopping.is_set():
        yield "it is stopping"
    if not node.epoch.is_registered:
        yield "it is not registered"
    elif node.broker_id not in image.brokers:
        yield "it has not received its registration from the controller"
    if node.store_absence.seconds > node.config.integer("zookeeper.session.timeout.ms") / 1000:
        yield "it does not reach ZooKeeper"
    if image.controller_id not in image.brokers:
        yield "it knows no controller"
