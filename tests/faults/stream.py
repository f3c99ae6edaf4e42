"""Clients that create topics one after the other while something breaks, and remember what they were told."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from minicontroller.protocol.error_codes import ErrorCode
from tests.support.nodes import NodeProcess
from tests.support.wire import Wire

CLIENTS_PER_NODE = 2
PARTITIONS, REPLICAS = 3, 2
"""So many replicas have room when one of three nodes is gone."""
TIMEOUT_MS = 20_000


class Stream:
    """What became of the topics."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, float] = {}
        """When, by topic."""
        self.answers: dict[str, int] = {}
        """The error code that each topic got."""
        self.failures: list[BaseException] = []
        self._ending = threading.Event()

    def end(self) -> None:
        """Each client finishes the request that it is at."""
        self._ending.set()

    def first_after(self, moment: float) -> float | None:
        """When a topic was acknowledged for the first time later than that."""
        self.check()
        return min((at for at in list(self.acknowledged.values()) if at > moment), default=None)

    def check(self) -> None:
        """Every answer was success or doubt."""
        assert not self.failures, self.failures
        assert set(self.answers.values()) <= {ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT}, self.answers

    def run(self, address: str, prefix: str) -> None:
        """One client's life."""
        try:
            with Wire(address) as wire:
                number = 0
                while not self._ending.is_set():
                    name = f"{prefix}-{number}"
                    number += 1
                    code = create(wire, name)
                    if code == ErrorCode.NONE:
                        self.acknowledged[name] = time.monotonic()
                    self.answers[name] = code
        except Exception as error:  # noqa: BLE001 - told to the test's own thread
            self.failures.append(error)


def create(wire: Wire, name: str, *, partitions: int = PARTITIONS, replicas: int = REPLICAS) -> int:
    """The error code of CreateTopics."""
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": [],
        "configs": [{"name": "retention.ms", "value": "60000"}],
    }
    (result,) = wire.ask("CreateTopics", 7, {"topics": [topic], "timeout_ms": TIMEOUT_MS})["topics"]
    code: int = result["error_code"]
    return code


@contextmanager
def streaming(nodes: Sequence[NodeProcess]) -> Iterator[Stream]:
    """Creations through all these nodes, for the length of the block."""
    stream = Stream()
    clients = [
        threading.Thread(target=stream.run, args=(node.address, f"topic-{node.broker_id}-{client}"), daemon=True)
        for node in nodes
        for client in range(CLIENTS_PER_NODE)
    ]
    for client in clients:
        client.start()
    try:
        yield stream
    finally:
        stream.end()
        for client in clients:
            client.join(TIMEOUT_MS / 1000 + 10)
    stream.check()
