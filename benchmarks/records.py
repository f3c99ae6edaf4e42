"""`python -m benchmarks.records`: records through `up` and through its peers, in turns, by
librdkafka.

Rule: each figure is of a cluster of three nodes that starts for one round, so that nothing of an
earlier round is in its memory, and the load of the machine is printed beside the medians.
"""

import argparse
import os
import signal
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from time import perf_counter

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from . import memory
from .peers import SYSTEMS, System
from .peers.base import CannotRunError
from .peers.minicontroller import OnMemory
from .turns import say

ROUNDS = 5
RECORDS = 50_000
SINGLE_RECORDS = 500
PATIENCE_SECONDS = 120.0
BATCH = 1_000
TOPIC = "records"


def _delivered(done: list[Message], _error: object, message: Message) -> None:
    done.append(message)


class WithRecords(OnMemory):
    """`minicontroller up` that keeps records."""

    name = "minicontroller-records"
    title = "minicontroller with records"

    def command(self) -> list[str]:
        return [*super().command(), "--records"]


MEASURED: Mapping[str, type[System]] = {
    "up": OnMemory,
    "up with records": WithRecords,
    "kfake": SYSTEMS["kfake"],
    "kraft": SYSTEMS["kraft"],
}
WITHOUT_RECORDS = "up"


@contextmanager
def started(kind: type[System]) -> Iterator[tuple[System, Callable[[], float]]]:
    """Give a system, and the seconds since its start."""
    system = kind()
    if (missing := system.missing()) is not None:
        raise CannotRunError(missing)
    system.settings["group.initial.rebalance.delay.ms"] = "0"
    try:
        system.prepare()
        began = perf_counter()
        system.start()
        yield system, lambda: perf_counter() - began
    finally:
        system.close()


class Client:
    """A producer and consumers at one system."""

    def __init__(self, system: System) -> None:
        servers = ",".join(f"{host}:{port}" for host, port in system.addresses)
        self._access: dict[str, str | int | float | bool] = {"bootstrap.servers": servers, "log_level": 0}

    def wait_for_nodes(self) -> None:
        admin = AdminClient(self._access)

        def has_all() -> bool:
            with suppress(KafkaException):  # while none of them listens
                return len(admin.list_topics(timeout=1).brokers) == 3
            return False

        wait_for(has_all)

    def create(self, topic: str, partitions: int) -> None:
        admin = AdminClient(self._access)  # which has to live until the answer is there
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(PATIENCE_SECONDS)

    def produce(self, topic: str, count: int, size: int) -> float:
        """Return the seconds until all records were acknowledged."""
        producer = Producer({**self._access, "acks": "all", "linger.ms": 5})
        value, failed = b"x" * size, list[KafkaError]()
        began = perf_counter()
        for _ in range(count):
            while True:
                try:
                    producer.produce(topic, value, on_delivery=lambda error, _: failed.append(error) if error else None)
                    break
                except BufferError:
                    producer.poll(0.01)
            producer.poll(0)
        left = producer.flush(PATIENCE_SECONDS)
        if failed or left:
            raise CannotRunError(f"{len(failed)} records were refused, {left} were not sent: {failed[:1]}")
        return perf_counter() - began

    def consume(self, topic: str, partitions: int, count: int) -> float:
        """Return the seconds from a consumer's start to its last record."""
        consumer = Consumer({**self._access, "group.id": "benchmarks", "auto.offset.reset": "earliest"})
        began = perf_counter()
        consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        found = 0

        def has_all() -> bool:
            nonlocal found
            found += sum(message.error() is None for message in consumer.consume(BATCH, 0.1))
            return found >= count

        wait_for(has_all)
        seconds = perf_counter() - began
        consumer.close()
        return seconds

    def first_of_group(self, topic: str) -> None:
        """Wait for the first record that a new group of consumers gets."""
        consumer = Consumer({**self._access, "group.id": "first", "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        wait_for(lambda: (message := consumer.poll(0.05)) is not None and message.error() is None)
        consumer.close()

    def single(self, topic: str) -> list[float]:
        """Return the seconds until each of single records was acknowledged, with acks=1."""
        producer = Producer({**self._access, "acks": 1, "linger.ms": 0})
        seconds: list[float] = []
        for _ in range(SINGLE_RECORDS):
            done: list[Message] = []
            began = perf_counter()
            producer.produce(topic, b"x" * 100, partition=0, on_delivery=partial(_delivered, done))
            while not done:
                producer.poll(1)
            seconds.append(perf_counter() - began)
        return seconds


def wait_for(condition: Callable[[], bool]) -> None:
    began = perf_counter()
    while not condition():
        if perf_counter() - began > PATIENCE_SECONDS:
            raise CannotRunError(f"it is not done after {PATIENCE_SECONDS:.0f} s")


def measure(kind: type[System], *, records: bool) -> dict[str, float]:
    with started(kind) as (system, since_start):
        client = Client(system)
        client.wait_for_nodes()
        figures = {"ready, s": since_start(), "memory when ready, MiB": memory_of(system)}
        if not records:
            return figures
        client.create("first", 1)
        client.produce("first", 1, 100)
        client.first_of_group("first")
        figures["start to first consumed record, s"] = since_start()
        latencies = client.single("first")[SINGLE_RECORDS // 10 :]
        figures["acks=1, median, ms"] = statistics.median(latencies) * 1000
        for size in (100, 1024):
            topic = f"{TOPIC}-{size}"
            client.create(topic, 3)
            figures[f"produced, {size} B, records/s"] = RECORDS / client.produce(topic, RECORDS, size)
            figures[f"consumed, {size} B, records/s"] = RECORDS / client.consume(topic, 3, RECORDS)
        figures["memory at the end, MiB"] = memory_of(system)
        return figures


def memory_of(system: System) -> float:
    return memory.of(system.pids()).resident


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--systems", nargs="+", choices=MEASURED, default=list(MEASURED))
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    found: dict[str, dict[str, list[float]]] = {}
    for turn in range(1, arguments.rounds + 1):
        for name in arguments.systems:
            say(f"{name}: round {turn}")
            for figure, value in measure(MEASURED[name], records=name != WITHOUT_RECORDS).items():
                found.setdefault(figure, {}).setdefault(name, []).append(value)
    show(found, arguments.systems)


def show(found: Mapping[str, Mapping[str, list[float]]], names: list[str]) -> None:
    print(f"medians; load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print("".join((" " * 36, *(f"{name:>18}" for name in names))))
    for figure, values in found.items():
        cells = (f"{statistics.median(values[name]):>18,.2f}" if name in values else " " * 18 for name in names)
        print(f"{figure:36}", *cells, sep="")


if __name__ == "__main__":
    main()
