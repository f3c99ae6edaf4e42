"""Clients that create topics one after the other while something breaks, and remember what they
were told.
"""

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from minicontroller.protocol.error_codes import ErrorCode
from tests.support.nodes import NodeProcess
from tests.support.waiting import until
from tests.support.wire import Body, ConnectionEndedError, Wire

CLIENTS_PER_NODE = 2
PARTITIONS, REPLICAS = 3, 2
"""So many replicas have room when one of three nodes is gone."""
TIMEOUT_MS = 20_000


class Stream:
    """Creates topics one after the other, and keeps the answers."""

    def __init__(self, addresses: Sequence[str], replicas: int) -> None:
        self.acknowledged: dict[str, float] = {}
        """The time of each topic's acknowledgement."""
        self.answers: dict[str, int] = {}
        """The error code that each topic got."""
        self.failures: list[BaseException] = []
        self._addresses = addresses
        self._replicas = replicas
        self._ending = threading.Event()

    def end(self) -> None:
        """Each client finishes the request that it is at."""
        self._ending.set()

    @property
    def in_doubt(self) -> set[str]:
        return set(self.answers) - set(self.acknowledged)

    def wait_acknowledged(self, more: int) -> None:
        """Until so many more topics have been acknowledged."""
        wanted = len(self.acknowledged) + more
        until(lambda: self.failures or len(self.acknowledged) >= wanted)
        self.check()

    def first_after(self, moment: float) -> float | None:
        """Return when a topic was acknowledged for the first time after that."""
        self.check()
        return min((at for at in list(self.acknowledged.values()) if at > moment), default=None)

    def longest_pause(self) -> float:
        """Between two acknowledgements."""
        return max(later - earlier for earlier, later in itertools.pairwise(sorted(self.acknowledged.values())))

    def check(self) -> None:
        """Every answer was success or doubt."""
        assert not self.failures, self.failures
        assert set(self.answers.values()) <= {ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT}, self.answers

    def run(self, at: int, prefix: str) -> None:
        """Act as a client: at the node that it begins at, or at the next one when that one ends the
        connection.
        """
        names = (f"{prefix}-{number}" for number in itertools.count())
        unanswered: str | None = None
        try:
            for address in itertools.islice(itertools.cycle(self._addresses), at, at + 2 * len(self._addresses)):
                try:
                    with Wire(address) as wire:
                        while not self._ending.is_set():
                            unanswered = unanswered or next(names)
                            self.note(unanswered, create(wire, unanswered, replicas=self._replicas))
                            unanswered = None
                        return
                except (ConnectionEndedError, ConnectionRefusedError):
                    continue
        except Exception as error:  # noqa: BLE001 - told to the test's own thread
            self.failures.append(error)

    def note(self, name: str, code: int) -> None:
        """Note the answer about a topic."""
        if code == ErrorCode.NONE:
            self.acknowledged[name] = time.monotonic()
        self.answers[name] = code


def create(wire: Wire, name: str, *, partitions: int = PARTITIONS, replicas: int = REPLICAS) -> int:
    """The error code of CreateTopics."""
    return created(wire.ask("CreateTopics", 7, creation(name, partitions=partitions, replicas=replicas)))


def creation(name: str, *, partitions: int = PARTITIONS, replicas: int = REPLICAS) -> Body:
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": [],
        "configs": [{"name": "retention.ms", "value": "60000"}],
    }
    return {"topics": [topic], "timeout_ms": TIMEOUT_MS}


def created(answer: Body) -> int:
    (result,) = answer["topics"]
    code: int = result["error_code"]
    return code


def place(wire: Wire, assignments: dict[str, list[int]]) -> None:
    """Topics of one partition, by the replicas of it."""
    topics = [
        {
            "name": name,
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [{"partition_index": 0, "broker_ids": replicas}],
        }
        for name, replicas in assignments.items()
    ]
    results = wire.ask("CreateTopics", 7, {"topics": topics, "timeout_ms": TIMEOUT_MS})["topics"]
    assert {result["error_code"] for result in results} == {ErrorCode.NONE}, results


def delete(wire: Wire, name: str) -> int:
    """The error code of DeleteTopics."""
    (result,) = wire.ask("DeleteTopics", 5, {"topic_names": [name], "timeout_ms": TIMEOUT_MS})["responses"]
    code: int = result["error_code"]
    return code


@contextmanager
def streaming(nodes: Sequence[NodeProcess], *, replicas: int = REPLICAS) -> Iterator[Stream]:
    """Creations through all these nodes, for the length of the block."""
    stream = Stream([node.address for node in nodes], replicas)
    clients = [
        threading.Thread(target=stream.run, args=(at, f"topic-{node.broker_id}-{client}"), daemon=True)
        for at, node in enumerate(nodes)
        for client in range(CLIENTS_PER_NODE)
    ]
    for thread in clients:
        thread.start()
    try:
        yield stream
    finally:
        stream.end()
        for thread in clients:
            thread.join(TIMEOUT_MS / 1000 + 10)
    stream.check()
