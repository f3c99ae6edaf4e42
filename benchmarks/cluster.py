"""A running system as its own Metadata shows it: its nodes, its controller, and which topics are
led or gone where.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final

from . import messages
from .driver import Connection, DriverError
from .peers.base import Address, CannotRunError, System

READY_SECONDS: Final = 90.0
SETTLED_SECONDS: Final = 600.0  # Kafka on ZooKeeper deletes some forty topics a second
POLL_SECONDS: Final = 0.01
BATCH: Final = 100
REPLICAS_A_REQUEST: Final = 900  # of untimed creations: Kafka makes some two hundred a second, and a request times out
TOPIC_ALREADY_EXISTS: Final = 36
UNKNOWN_TOPIC_OR_PARTITION: Final = 3


@dataclass
class Waited:
    """How long until all nodes agreed, up to the last answer that showed it, and how often they
    were asked.
    """

    seconds: float
    polls: int


@dataclass
class Cluster:
    """Three nodes that answer and agree on a controller, with a connection to each."""

    system: System
    nodes: dict[int, Address]
    controller: int
    connections: dict[int, Connection] = field(default_factory=dict)

    @classmethod
    def discover(cls, system: System) -> "Cluster":
        """Waits until every node answers, knows all three nodes, and all name a controller."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            system.check_alive()
            views = [ask_nodes(address) for address in system.addresses]
            if all(view is not None and len(view[0]) == len(views) and view[1] in view[0] for view in views):
                break
            if time.monotonic() > deadline:
                raise CannotRunError(f"{system.name}: not every node was ready within {READY_SECONDS:.0f} s: {views}")
            time.sleep(0.05)
        assert views[0] is not None
        nodes, controller = views[0]
        return cls(system, nodes, controller)

    def __getitem__(self, node_id: int) -> Connection:
        if node_id not in self.connections:
            self.connections[node_id] = Connection(self.nodes[node_id])
        return self.connections[node_id]

    @property
    def at_controller(self) -> Connection:
        return self[self.controller]

    @property
    def elsewhere(self) -> Connection:
        """A node that is not the controller."""
        return self[next(node_id for node_id in self.nodes if node_id != self.controller)]

    def forget(self, node_id: int) -> None:
        """Close the connection to a node that is gone."""
        if (connection := self.connections.pop(node_id, None)) is not None:
            connection.close()

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()
        self.connections.clear()

    def wait_led(self, frame: bytes, topics: int, partitions: int) -> Waited:
        """Asks every node with this Metadata frame until each shows that many topics with all
        partitions led.
        """
        return self.wait(frame, lambda answer: messages.all_led(answer, topics, partitions))

    def wait_gone(self, frame: bytes) -> Waited:
        """Asks every node with this Metadata frame, which names the topics, until none of them
        knows one.
        """
        return self.wait(frame, gone)

    def wait_creatable(self, names: Sequence[str]) -> Waited:
        """Asks the controller whether it would create the topics, until it would."""
        begin = perf_counter()
        frame = messages.create_topics(names, validate_only=True)
        for polls in itertools.count(1):
            answer = self.at_controller.call(frame)
            stamp = perf_counter()
            codes = messages.created_codes(answer)
            if not any(codes):
                return Waited(stamp - begin, polls)
            if unexpected := set(codes) - {0, TOPIC_ALREADY_EXISTS}:
                raise DriverError(f"{self.system.name}: names of deleted topics give errors {unexpected}")
            self._check_time(begin)
        raise AssertionError("count() does not end")

    def create(self, names: Sequence[str], *, partitions: int, replication_factor: int) -> None:
        """Untimed: creates in batches and waits until every node shows every partition led."""
        for batch in batches(names, min(BATCH, REPLICAS_A_REQUEST // (partitions * replication_factor))):
            frame = messages.create_topics(batch, partitions=partitions, replication_factor=replication_factor)
            messages.check_created(self.at_controller.call(frame))
            self.wait_led(messages.metadata(batch), len(batch), partitions)

    def delete(self, names: Sequence[str]) -> None:
        """Untimed: deletes in batches and waits until the names are free again."""
        for batch in batches(names):
            messages.check_deleted(self.at_controller.call(messages.delete_topics(batch)))
            self.wait_gone(messages.metadata(batch))
            self.wait_creatable(batch)

    def wait(self, frame: bytes, done: Callable[[bytes], bool]) -> Waited:
        """Ask every node with this frame until the answers of all are as wanted."""
        begin = perf_counter()
        waiting = list(self.nodes)
        before: dict[int, bytes] = {}
        for polls in itertools.count(1):
            answers = {node_id: self[node_id].call(frame) for node_id in waiting}
            stamp = perf_counter()  # before decoding, which is the driver's own time
            waiting = [node for node in waiting if answers[node] == before.get(node) or not done(answers[node])]
            before = answers
            if not waiting:
                return Waited(stamp - begin, polls)
            self._check_time(begin)
        raise AssertionError("count() does not end")

    def _check_time(self, begin: float) -> None:
        if perf_counter() - begin > SETTLED_SECONDS:
            raise DriverError(f"{self.system.name}: not settled within {SETTLED_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)


def ask_nodes(address: Address) -> tuple[dict[int, Address], int] | None:
    """The nodes and the controller as one node sees them; None if it does not answer."""
    try:
        with Connection(address, timeout=5.0) as connection:
            view = messages.read_metadata(connection.call(messages.metadata([])))
    except (OSError, DriverError):
        return None
    return {broker.node_id: (broker.host, broker.port) for broker in view.brokers}, view.controller_id


def gone(answer: bytes) -> bool:
    return all(topic.error_code == UNKNOWN_TOPIC_OR_PARTITION for topic in messages.read_metadata(answer).topics)


def batches(names: Sequence[str], size: int = BATCH) -> Iterator[Sequence[str]]:
    return (names[start : start + size] for start in range(0, len(names), size))
