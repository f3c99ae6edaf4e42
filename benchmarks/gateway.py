"""`python -m benchmarks.gateway`: what the gateway costs clients and the machine, beside a direct
connection and a proxy on the JVM (Kroxylicious, without filters).

Rule: a real Kafka 4.1, the gateway and the proxy are up side by side, and a round takes all ways to
the broker one after the other, so that another load of the machine meets all alike. A first round
warms everything up and is not counted. The clients are librdkafka's.
"""

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.gateway import GatewayProcess
from tests.support.kafka_kraft import KraftCluster, started
from tests.support.maven import CACHE, kept
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.wire import ConnectionEndedError, Wire

from . import memory, messages
from .driver import Connection
from .security import processor_seconds

RECORD_BYTES = 1024
TOPIC, PARTITIONS = "measured", 3
SMALL_BYTES, SMALL_RECORDS, WARM_RECORDS = 100, 3000, 300
IDLE_CONNECTIONS = 1000
ROUNDS = 5
PROXY = Path(__file__).parent / "peers" / "kroxylicious"
PROXY_CONFIG = """virtualClusters:
  - name: measured
    targetCluster:
      bootstrapServers: {upstream}
    gateways:
      - name: default
        portIdentifiesNode:
          bootstrapAddress: 127.0.0.1:{port}
          nodeIdRanges:
            - name: brokers
              start: 1
              end: 1
"""
MIB = 1024 * 1024


@dataclass(frozen=True)
class Way:
    """A way to the broker, and the process in between, if there is one."""

    name: str
    bootstrap: str
    pid: int | None = None


@dataclass(frozen=True)
class Round:
    """The figures of one round by one way."""

    produced: float
    """In MiB a second, as `consumed`."""
    consumed: float
    median: float
    """Milliseconds of a small produce, as `nearly_all`."""
    nearly_all: float
    processor: float
    """Seconds of processor time that the process in between took for a GiB, one half produced."""


def producer_of(way: Way, **settings: object) -> Producer:
    return Producer(
        {"bootstrap.servers": way.bootstrap, "acks": "1", "queue.buffering.max.kbytes": 200_000, **settings}
    )


def produce(way: Way, topic: str, records: int) -> float:
    """Produce records of 1 KiB as fast as it goes, and return MiB a second."""
    failures: list[object] = []
    producer = producer_of(way, **{"linger.ms": 5, "batch.size": 512 * 1024, "queue.buffering.max.messages": 200_000})
    producer.list_topics(timeout=30)
    value = os.urandom(RECORD_BYTES)

    def delivered(error: object, _: object) -> None:
        if error is not None:
            failures.append(error)

    begin = perf_counter()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
        if number % 1000 == 0:
            producer.poll(0)
    left = producer.flush(120)
    took = perf_counter() - begin
    assert not left, f"{left} records were not delivered"
    assert not failures, failures[:1]
    return records * RECORD_BYTES / MIB / took


def consume(way: Way, topic: str, records: int) -> float:
    """Consume as many records from the beginning, and return MiB a second."""
    settings = {"bootstrap.servers": way.bootstrap, "group.id": "measured", "enable.auto.commit": False}
    consumer = Consumer({**settings, "fetch.message.max.bytes": 4 * MIB, "queued.max.messages.kbytes": 65536})
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        got = 0
        while not got:
            got = len(consumer.consume(1, 1.0))
        first, begin = got, perf_counter()
        while got < records:
            got += len(consumer.consume(10_000, 0.5))
        return (got - first) * RECORD_BYTES / MIB / (perf_counter() - begin)
    finally:
        consumer.close()


def small(way: Way) -> list[float]:
    """Produce small records one by one, and return the milliseconds of each."""
    producer = producer_of(way, **{"linger.ms": 0})
    value, took = bytes(SMALL_BYTES), list[float]()
    for _ in range(WARM_RECORDS + SMALL_RECORDS):
        begin = perf_counter()
        producer.produce(TOPIC, value, partition=0)
        assert producer.flush(30) == 0
        took.append((perf_counter() - begin) * 1000)
    return sorted(took[WARM_RECORDS:])


def measured(way: Way, records: int, filled: str) -> Round:
    before = 0.0 if way.pid is None else processor_seconds(way.pid)
    produced, consumed = produce(way, TOPIC, records), consume(way, filled, records)
    used = 0.0 if way.pid is None else processor_seconds(way.pid) - before
    latencies = small(way)
    moved = 2 * records * RECORD_BYTES / MIB / 1024
    nearly_all = latencies[int(len(latencies) * 0.99)]
    return Round(produced, consumed, statistics.median(latencies), nearly_all, used / moved)


# ---------------------------------------------------------------------- what is up


@contextlib.contextmanager
def running_proxy(upstream: str) -> Iterator[Way]:
    """Run Kroxylicious in front of the broker."""
    libs = kept(
        CACHE / "kroxylicious-0.12.0" / "libs",
        PROXY / "pom.xml",
        "dependency:copy-dependencies",
        "-DoutputDirectory={}",
    )
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["javac", "-cp", f"{libs}/*", "-d", folder, str(PROXY / "Proxy.java")], check=True)
        config = Path(folder) / "proxy.yaml"
        port = free_port()
        config.write_text(PROXY_CONFIG.format(upstream=upstream, port=port))
        free_port()  # the next one is the broker's
        process = subprocess.Popen(["java", "-cp", f"{libs}/*:{folder}", "Proxy", str(config)])
        try:
            until(lambda: answers(f"127.0.0.1:{port}"))
            yield Way("kroxylicious", f"127.0.0.1:{port}", process.pid)
        finally:
            process.kill()
            process.wait()


def answers(address: str) -> bool:
    try:
        with Wire(address) as wire:
            return bool(wire.ask("Metadata", 1, {"topics": []})["brokers"])
    except (OSError, ConnectionEndedError):
        return False


@contextlib.contextmanager
def running_gateway(upstream: str) -> Iterator[Way]:
    gateway = GatewayProcess(upstream, is_alone=True)
    try:
        yield Way("gateway", gateway.bootstrap, gateway.pid)
    finally:
        gateway.kill()


def held(way: Way) -> memory.Memory:
    assert way.pid is not None
    return memory.of([way.pid])


def idle(way: Way, connections: int) -> Mapping[str, memory.Memory]:
    """Return the memory with clients that only connected, and with as many that asked."""
    host, _, port = way.bootstrap.rpartition(":")
    kept_memory = {}
    with contextlib.ExitStack() as clients:
        opened = [clients.enter_context(Connection((host, int(port)))) for _ in range(connections)]
        kept_memory["connected"] = settled(way)
        for client in opened:
            client.call(messages.metadata([TOPIC]))
        kept_memory["asked"] = settled(way)
    return kept_memory


def settled(way: Way) -> memory.Memory:
    time.sleep(1.0)
    return held(way)


# ---------------------------------------------------------------------- what is told


def told(rounds: Mapping[Way, list[Round]]) -> None:
    ways = list(rounds)
    print(f"{'':14}" + "".join(f"{title:>22}" for title in ("produce", "consume", "median", "99 %", "processor")))
    for way in ways:
        cells = [
            f"{middle([each.produced for each in rounds[way]]):.0f} MiB/s",
            f"{middle([each.consumed for each in rounds[way]]):.0f} MiB/s",
            f"{middle([each.median for each in rounds[way]]):.2f} ms",
            f"{middle([each.nearly_all for each in rounds[way]]):.2f} ms",
            f"{middle([each.processor for each in rounds[way]]):.2f} s/GiB" if way.pid else "-",
        ]
        print(f"{way.name:14}" + "".join(f"{cell:>22}" for cell in cells))
    direct = rounds[ways[0]]
    for way in ways[1:]:
        pairs = list(zip(rounds[way], direct, strict=True))
        produced = spread([own.produced / other.produced for own, other in pairs])
        consumed = spread([own.consumed / other.consumed for own, other in pairs])
        later = spread([own.nearly_all - other.nearly_all for own, other in pairs])
        print(f"{way.name} / direct: produce {produced}, consume {consumed}, 99 % later by {later} ms")


def middle(values: list[float]) -> float:
    return statistics.median(values)


def spread(values: list[float]) -> str:
    return f"{middle(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def load() -> str:
    return f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--without-proxy", action="store_true")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    print(load())
    cluster = KraftCluster(Path(tempfile.mkdtemp(prefix="kafka-")), "4.1.0", 1, {"log.retention.bytes": str(512 * MIB)})
    cluster.options = ()
    with contextlib.ExitStack() as up:
        up.enter_context(started(cluster))
        ways = [Way("direct", cluster.bootstrap), up.enter_context(running_gateway(cluster.bootstrap))]
        if not options.without_proxy:
            ways.append(up.enter_context(running_proxy(cluster.bootstrap)))
        fresh = {way: held(way) for way in ways[1:]}
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        keep = {"retention.bytes": "-1"}
        for topic in (TOPIC, "filled"):
            admin.create_topics([NewTopic(topic, PARTITIONS, 1, config=keep)])[topic].result(60)
        produce(ways[0], "filled", options.records)
        rounds: dict[Way, list[Round]] = {way: [] for way in ways}
        for number in range(options.rounds + 1):
            for way in ways[number % len(ways) :] + ways[: number % len(ways)]:
                result = measured(way, options.records, "filled")
                print(f"round {number} {way.name}: {result}", file=sys.stderr)
                if number:
                    rounds[way].append(result)
        told(rounds)
        for way in ways[1:]:
            loaded = held(way)
            kept_memory = {"at the start": fresh[way], "after the load": loaded, **idle(way, IDLE_CONNECTIONS)}
            for what, each in kept_memory.items():
                print(f"{way.name}, {what}: {each.resident:.0f} MiB resident, {each.proportional:.0f} MiB proportional")
    print(load())


if __name__ == "__main__":
    main()
