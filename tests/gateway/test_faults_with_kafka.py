"""A gateway in front of a real Kafka 4.1 under load of librdkafka and of Java: a broker is killed
and comes back at another address, and the gateway itself is killed. What was acknowledged is there.
"""

import re
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.gateway import GatewayProcess
from tests.support.java import java
from tests.support.kafka import KafkaProcesses, kafka_libs
from tests.support.kafka_kraft import KRAFT, NEWEST_VERSION, Kafka
from tests.support.maven import needs_maven
from tests.support.ports import free_port
from tests.support.programs import TESTS
from tests.support.waiting import PATIENCE_SECONDS, until

pytestmark = [needs_maven, pytest.mark.slow]

PARTITIONS = 4
PAUSE_SECONDS = 0.01
AT_ONCE = 50
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controlled.shutdown.enable": "false",
}


@pytest.fixture(scope="module", name="kafka")
def kafka_fixture() -> Iterator[KafkaProcesses]:
    """Node 1 is the controller and lives on."""
    with Kafka(NEWEST_VERSION, KRAFT).running(2, SETTINGS) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def ports() -> list[int]:
    return [free_port() for _ in range(3)]


def started(kafka: KafkaProcesses, ports: list[int]) -> GatewayProcess:
    listen, *others = ports
    fixed = ",".join(f"{broker_id}:{port}" for broker_id, port in enumerate(others, 1))
    gateway = GatewayProcess(kafka.bootstrap, listen=f"127.0.0.1:{listen}", settings={"broker.ports": fixed})
    assert gateway.bootstrap
    return gateway


class Load:
    """A producer that goes on, whatever happens, and counts what was acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged = 0
        self.failures: list[object] = []
        self.sent = 0
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def goes_on(self) -> None:
        """Wait until more was acknowledged."""
        before = self.acknowledged
        until(lambda: self.acknowledged > before + AT_ONCE)

    def _run(self) -> None:
        while not self._ending.wait(PAUSE_SECONDS):
            if self.sent - self.acknowledged - len(self.failures) < 10 * AT_ONCE:
                self._producer.produce(self._topic, str(self.sent).encode(), on_delivery=self._delivered)
                self.sent += 1
            self._producer.poll(0)
        assert self._producer.flush(PATIENCE_SECONDS) == 0

    def _delivered(self, error: object, _: object) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.failures.append(error)


@contextmanager
def loaded(bootstrap: str, topic: str) -> Iterator[Load]:
    """A load while the block lasts, of which nothing is lost and nothing is there twice."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 2)])[topic].result(PATIENCE_SECONDS)
    with Load(bootstrap, topic) as load:
        load.goes_on()
        yield load
        load.goes_on()
    assert load.failures == []
    assert load.acknowledged == load.sent
    assert consumed(bootstrap, topic, load.sent) == Counter(range(load.sent))


def consumed(bootstrap: str, topic: str, count: int) -> Counter[int]:
    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer(settings)
    got: list[int] = []

    def all_of_them() -> int:
        got.extend(int(message.value() or b"-1") for message in consumer.consume(1000, 0.2) if not message.error())
        return len(got)

    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        until(all_of_them, right=lambda seen: seen >= count)
    finally:
        consumer.close()
    return Counter(got)


class Transactions:
    """Java's producer of transactions and its consumer in a group, which go on whatever happens."""

    def __init__(self, bootstrap: str, topic: str, folder: Path) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(topic, 2, 2)])[topic].result(PATIENCE_SECONDS)
        settings = folder / "client.properties"
        settings.write_text(f"bootstrap.servers={bootstrap}\n")
        program = str(TESTS / "java" / "clients" / "Load.java")
        self._process = subprocess.Popen(
            [*java(kafka_libs(NEWEST_VERSION)), program, str(settings), topic],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._lines = [""]
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def goes_on(self) -> None:
        """Wait until more was committed, and read."""
        committed, read = self._progress()
        until(self._progress, right=lambda seen: seen[0] > committed + AT_ONCE // 10 and seen[1] > read)

    def end(self) -> str:
        """Return what was lost, and what is there though it should not be."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        until(lambda: self._process.poll() is not None)
        self._reader.join()
        return self._lines[-1].strip()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _progress(self) -> tuple[int, int]:
        assert self._process.poll() is None, self._lines[-1]
        told = re.fullmatch(r"committed (\d+) read (\d+)\n", self._lines[-1])
        return (int(told[1]), int(told[2])) if told else (0, 0)

    def _read(self) -> None:
        assert self._process.stdout is not None
        self._lines.extend(self._process.stdout)


def test_transactions_of_java_go_on(kafka: KafkaProcesses, ports: list[int], tmp_path: Path) -> None:
    """The gateway is killed, then a broker, which comes back at another address: what Java
    committed is there once, what it aborted is not there, and a group has read everything (U-3f).
    """
    gateway = started(kafka, ports)
    load = Transactions(gateway.bootstrap, "transactions", tmp_path)
    try:
        load.goes_on()
        gateway.kill()
        gateway = started(kafka, ports)
        load.goes_on()
        kafka.processes["broker-2"].kill()
        kafka.processes["broker-2"].wait()
        kafka.addresses[2] = f"127.0.0.1:{free_port()}"
        kafka.start_broker(2)
        kafka.wait_until_complete({1, 2})
        load.goes_on()
        assert load.end() == "lost 0 twice 0 uncommitted 0 unread 0"
        gateway.stop()
    finally:
        load.kill()
        gateway.kill()


def test_a_broker_that_dies_and_comes_back_elsewhere(kafka: KafkaProcesses, ports: list[int]) -> None:
    """A broker is killed and comes back at another address; the producer goes on, by the same
    addresses of the gateway (U-3f).
    """
    gateway = started(kafka, ports)
    try:
        addresses = gateway.addresses
        with loaded(gateway.bootstrap, "moved") as load:
            kafka.processes["broker-2"].kill()
            kafka.processes["broker-2"].wait()
            load.goes_on()
            kafka.addresses[2] = f"127.0.0.1:{free_port()}"
            kafka.start_broker(2)
            kafka.wait_until_complete({1, 2})
            until(lambda: kafka.addresses[2] in gateway.output)
            load.goes_on()
        assert gateway.addresses == addresses
        gateway.stop()
    finally:
        gateway.kill()


def test_a_gateway_that_dies_under_load(kafka: KafkaProcesses, ports: list[int]) -> None:
    """The gateway is killed twice and started again at the same ports; the producer goes on, and
    each record is there once (U-3f).
    """
    gateway = started(kafka, ports)
    try:
        with loaded(gateway.bootstrap, "restarted") as load:
            for _ in range(2):
                gateway.kill()
                gateway = started(kafka, ports)
                load.goes_on()
        gateway.stop()
    finally:
        gateway.kill()
