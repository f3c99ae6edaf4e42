"""Systems that are up side by side and are measured in turns, and the requests about many
partitions that several benchmarks send them.

Rule: a first round warms every system up and is not counted, unless only one is asked for.
"""

import contextlib
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from time import perf_counter, sleep
from typing import TypeVar

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from minicontroller.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct

from .cluster import Cluster
from .driver import DriverError
from .peers import SYSTEMS
from .peers.base import CannotRunError

NODES = 3
"""The number of nodes of every system, whose ids begin with 1."""
TIMEOUT_MS = 120_000
POLL_SECONDS = 0.01
PATIENCE_SECONDS = 300.0

T = TypeVar("T")
Replicas = Callable[[int], list[int]]
"""The replicas of a partition, by its index."""


def frame(key: ApiKey, version: int, request: WireStruct) -> bytes:
    return KAFKA.encode_request(RequestHeader(key, version, 1, "benchmarks"), request)


def creation(
    names: Iterable[str], partitions: int, replicas: Replicas, configs: Mapping[str, str] | None = None
) -> bytes:
    """Return a request that creates topics with these replicas and configs."""
    rows = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=replicas(index)) for index in range(partitions)
    ]
    written = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    topics = [
        CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=rows, configs=written)
        for name in names
    ]
    return frame(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS))


def reassignment(names: Iterable[str], partitions: int, replicas: Replicas) -> bytes:
    """Return a request that gives all partitions of topics these replicas."""
    rows = [ReassignablePartition(partition_index=index, replicas=replicas(index)) for index in range(partitions)]
    topics = [ReassignableTopic(name=name, partitions=rows) for name in names]
    request = AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=TIMEOUT_MS)
    return frame(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)


def check_reassigned(answer: bytes, partitions: int) -> None:
    """Raise DriverError unless that many reassignments were accepted."""
    _, response = KAFKA.decode_response(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, answer)
    assert isinstance(response, AlterPartitionReassignmentsResponse)
    codes = [row.error_code for topic in response.responses for row in topic.partitions]
    if response.error_code or len(codes) != partitions or any(codes):
        raise DriverError(f"the reassignment is refused: {response.error_code}, {len(codes)} rows, {set(codes)}")


def say(what: str) -> None:
    """Tell whoever waits how far the benchmark is."""
    print(f"{datetime.now(UTC):%H:%M:%S} {what}", file=sys.stderr, flush=True)


def wait_until(condition: Callable[[], bool], *, pause: float = POLL_SECONDS) -> None:
    begin = perf_counter()
    while not condition():
        if perf_counter() - begin > PATIENCE_SECONDS:
            raise DriverError(f"it is not done after {PATIENCE_SECONDS:.0f} s")
        sleep(pause)


@contextlib.contextmanager
def running(names: Sequence[str], settings: Mapping[str, str] | None = None) -> Iterator[dict[str, Cluster]]:
    """The systems of these names while the block lasts, with these keys besides their own."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    with contextlib.ExitStack() as stack:
        clusters: dict[str, Cluster] = {}
        for name in names:
            system = SYSTEMS[name]()
            if (missing := system.missing()) is not None:
                raise CannotRunError(missing)
            stack.callback(system.close)
            system.settings.update(settings or {})
            say(f"{name} starts")
            system.prepare()
            system.start()
            clusters[name] = cluster = Cluster.discover(system)
            stack.callback(cluster.close)
        yield clusters


def in_turns(clusters: Mapping[str, Cluster], rounds: int, measure: Callable[[Cluster, int], T]) -> dict[str, list[T]]:
    """Measure every system in each round, and return the results of the rounds by system."""
    results: dict[str, list[T]] = {name: [] for name in clusters}
    for turn in range(1 if rounds > 1 else 2, rounds + 2):
        for name, cluster in clusters.items():
            say(f"{name}: round {turn - 1}")
            result = measure(cluster, turn)
            if turn > 1:
                results[name].append(result)
    return results
