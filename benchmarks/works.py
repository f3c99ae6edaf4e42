"""The works that are timed on a system that stays up: topics, configs and Metadata, one by one,
side by side, in batches.

A work leaves the system as it found it: it deletes what it made, after the clock has stopped.
"""

import contextlib
import itertools
import struct
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from . import messages
from .cluster import BATCH, Cluster, batches
from .driver import Connection, Timed, numbered, one_by_one, side_by_side
from .peers.base import System

CONNECTIONS: Final = 16
PARTITIONS: Final = 3
REPLICAS: Final = 3
FLOOR_FRAME: Final = struct.Struct(">iiii")  # size, size of the answer, correlation id 0, padding
ONE_TOPIC_BYTES: Final = 260  # what a real answer about one topic of three nodes takes
CONFIGS_BYTES: Final = 1370  # what a real answer about the configs of one topic takes

Figures = dict[str, float]


@dataclass(frozen=True)
class Budget:
    """How long one timed run may take, and how many requests it may send."""

    seconds: float
    creates: int
    batches: int
    reads: int


FULL: Final = Budget(seconds=3.0, creates=3000, batches=10, reads=30_000)
QUICK: Final = Budget(seconds=1.0, creates=300, batches=2, reads=3000)


class Bench:
    """One system under measurement, and a source of unused names."""

    def __init__(self, system: System, budget: Budget) -> None:
        self.system = system
        self.budget = budget
        self.holds_topics = False
        self._cluster: Cluster | None = None
        self._prefix = f"bench-{uuid.uuid4().hex[:8]}"
        self._counter = itertools.count()

    @property
    def cluster(self) -> Cluster:
        if self._cluster is None:
            self._cluster = Cluster.discover(self.system)
        return self._cluster

    def names(self, count: int) -> list[str]:
        return [f"{self._prefix}-{next(self._counter)}" for _ in range(count)]

    def forget_cluster(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None


def create_one_by_one(bench: Bench) -> Figures:
    """One connection to the controller; a topic of one partition and one replica a request."""
    return _create(bench, [bench.cluster.at_controller])


def create_elsewhere(bench: Bench) -> Figures:
    """Create topics through a node that is not the controller and forwards."""
    return _create(bench, [bench.cluster.elsewhere])


def create_side_by_side(bench: Bench) -> Figures:
    """Create topics over 16 connections to the controller."""
    with opened(bench, CONNECTIONS) as connections:
        return _create(bench, connections)


def batches_of_topics(bench: Bench) -> Figures:
    """Creates and then deletes topics of 3 partitions x 3 replicas, 100 a request, one request
    after the other.
    """
    cluster, budget = bench.cluster, bench.budget
    groups = list(batches(bench.names(BATCH * budget.batches)))
    # Whatever number of requests the time allows, the question about their topics is encoded
    # beforehand.
    questions = [messages.metadata([*itertools.chain(*groups[:count])]) for count in range(1, len(groups) + 1)]
    creations = [
        messages.create_topics(group, partitions=PARTITIONS, replication_factor=REPLICAS, correlation_id=number)
        for number, group in enumerate(groups)
    ]
    created = one_by_one(cluster.at_controller, creations, seconds=budget.seconds, at_least=2)
    done = groups[: len(created.answers)]
    question, topics = questions[len(done) - 1], BATCH * len(done)
    led = cluster.wait_led(question, topics, PARTITIONS)
    _check(created, messages.check_created)

    deletions = [messages.delete_topics(group, correlation_id=number) for number, group in enumerate(done)]
    deleted = one_by_one(cluster.at_controller, deletions, seconds=float("inf"))
    gone = cluster.wait_gone(question)
    free = cluster.wait_creatable([*itertools.chain(*done)])
    _check(deleted, messages.check_deleted)
    return {
        "created": topics / created.seconds,
        "led": topics / (created.seconds + led.seconds),
        "led-wait": led.seconds,
        "led-polls": led.polls,
        "deleted": topics / deleted.seconds,
        "gone": topics / (deleted.seconds + gone.seconds + free.seconds),
    }


def alter_configs_one_by_one(bench: Bench) -> Figures:
    """IncrementalAlterConfigs v1: one key of one topic a request, each time another value."""
    cluster, names = bench.cluster, bench.names(1)
    cluster.create(names, partitions=1, replication_factor=1)
    frames = [
        messages.alter_topic_config(names[0], "retention.ms", str(3_600_000 + number), correlation_id=number)
        for number in range(bench.budget.creates)
    ]
    timed = one_by_one(cluster.at_controller, frames, seconds=bench.budget.seconds)
    _check(timed, messages.check_altered)
    cluster.delete(names)
    return _rate_and_latency(timed)


def metadata_one_by_one(bench: Bench) -> Figures:
    """Metadata of one topic over one connection."""
    return _ask_one_topic(bench, 1, _metadata, _check_one_topic, ONE_TOPIC_BYTES)


def metadata_side_by_side(bench: Bench) -> Figures:
    """Metadata of one topic over 16 connections."""
    return _ask_one_topic(bench, CONNECTIONS, _metadata, _check_one_topic, ONE_TOPIC_BYTES)


def describe_configs(bench: Bench) -> Figures:
    """All configs of one topic over one connection."""
    return _ask_one_topic(bench, 1, messages.describe_configs, messages.check_described, CONFIGS_BYTES)


def metadata_of_all(bench: Bench, *, topics: int, partitions: int, replicas: int) -> Figures:
    """Asks for all topics, of which there are that many and no others."""
    if bench.system.speaks_kafka:
        frames = numbered(messages.metadata(None), bench.budget.reads)
    else:
        frames = floor_frames(answer_bytes(topics, partitions, replicas), bench.budget.reads)
    with opened(bench, 1) as connections:
        timed = _run(bench, connections, frames)
    if bench.system.speaks_kafka:
        _check_different(timed, lambda answer: messages.check_led(answer, topics, partitions))
    return _rate_and_latency(timed)


def floor_frames(size: int, count: int) -> list[bytes]:
    """Requests to the bare server for answers of that size."""
    return [FLOOR_FRAME.pack(FLOOR_FRAME.size - 4, size, 0, 0)] * count


def answer_bytes(topics: int, partitions: int, replicas: int) -> int:
    """About the size of a Metadata answer: 40 bytes a topic, 18 a partition and 8 a replica (in two
    lists).
    """
    return 120 + topics * (40 + partitions * (18 + 8 * replicas))


@contextlib.contextmanager
def opened(bench: Bench, count: int) -> Iterator[list[Connection]]:
    """New connections to one node: the controller, or the only one there is."""
    cluster = bench.cluster if bench.system.speaks_kafka else None
    address = bench.system.addresses[0] if cluster is None else cluster.nodes[cluster.controller]
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Connection(address)) for _ in range(count)]


def _run(bench: Bench, connections: Sequence[Connection], frames: Sequence[bytes]) -> Timed:
    if len(connections) == 1:
        return one_by_one(connections[0], frames, seconds=bench.budget.seconds)
    return side_by_side(connections, frames, seconds=bench.budget.seconds)


def _create(bench: Bench, connections: Sequence[Connection]) -> Figures:
    names = bench.names(bench.budget.creates)
    frames = [messages.create_topics([name], correlation_id=number) for number, name in enumerate(names)]
    timed = _run(bench, connections, frames)
    _check(timed, messages.check_created)
    bench.cluster.delete(names[: len(timed.answers)])
    return _rate_and_latency(timed)


def _ask_one_topic(
    bench: Bench, count: int, question: Callable[[str], bytes], check: Callable[[bytes, str], None], answer_size: int
) -> Figures:
    """The floor sends as many bytes as a real answer has."""
    with opened(bench, count) as connections:
        if not bench.system.speaks_kafka:
            return _rate_and_latency(_run(bench, connections, floor_frames(answer_size, bench.budget.reads)))
        (name,) = names = bench.names(1)
        bench.cluster.create(names, partitions=PARTITIONS, replication_factor=REPLICAS)
        timed = _run(bench, connections, numbered(question(name), bench.budget.reads))
    _check_different(timed, lambda answer: check(answer, name))
    bench.cluster.delete(names)
    return _rate_and_latency(timed)


def _metadata(topic: str) -> bytes:
    return messages.metadata([topic])


def _check_one_topic(answer: bytes, _topic: str) -> None:
    messages.check_led(answer, 1, PARTITIONS)


def _rate_and_latency(timed: Timed) -> Figures:
    return {
        "rate": timed.rate,
        "p50": timed.percentile(0.50) * 1000,
        "p99": timed.percentile(0.99) * 1000,
    }


def _check(timed: Timed, check: Callable[[bytes], None]) -> None:
    for answer in timed.answers:
        check(answer)


def _check_different(timed: Timed, check: Callable[[bytes], None]) -> None:
    """Decodes every answer that differs from the others, whatever its correlation id."""
    for body in {answer[4:] for answer in timed.answers}:
        check(b"\0\0\0\0" + body)
