"""A real Apache Kafka 3.9.2 in ZooKeeper mode, with its command-line tools: the oracle of the
conformance recordings and the ratio of the benchmarks.

Its jars come from Maven Central into a cache outside the repository, once. Node 1 is the
controller: it is started first and waited for, so that what is recorded from it is the controller's
answer.
"""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO

from tests.support.java import SHORT_LIVED, java
from tests.support.maven import CACHE, kept
from tests.support.ports import free_port
from tests.support.wire import ConnectionEndedError, Login, Wire
from tests.support.zookeeper import ZooKeeperServer

KAFKA_VERSION = "3.9.2"
"""The last version with ZooKeeper."""
START_TIMEOUT_SECONDS = 180.0
PAUSE_SECONDS = 0.1  # between two looks at a process that is starting

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>minicontroller</groupId><artifactId>kafka-oracle</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{0}</version></dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{0}</version>
      <exclusions><exclusion><groupId>org.apache.kafka</groupId><artifactId>connect-runtime</artifactId></exclusion></exclusions>
    </dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-reload4j</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""

LOG4J = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c %m%n
"""


def kafka_libs(version: str = KAFKA_VERSION) -> Path:
    """The folder of the jars of a Kafka; fetched by Maven when it is not there."""
    text = POM.format(version)
    # Named after what it was made from, so that another list of jars is fetched.
    libs = CACHE / f"kafka-{version}-{sha256(text.encode()).hexdigest()[:16]}" / "libs"
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as pom:
        pom.write(text)
        pom.flush()
        return kept(libs, Path(pom.name), "dependency:copy-dependencies", "-DoutputDirectory={}")


class KafkaProcesses:
    """The processes of brokers 1..n on 127.0.0.1, whatever keeps their metadata."""

    options: Sequence[str] = SHORT_LIVED
    """How Java is called."""

    def __init__(
        self, folder: Path, brokers: int, settings: Mapping[str, str] | None, login: Login | None, version: str
    ) -> None:
        """`login` is a user with a password, if the settings demand one of clients."""
        self.login = login
        self.folder = folder
        self.settings = dict(settings or {})
        self.version = version
        self.class_path: list[Path] = []
        """Folders of classes beside Kafka's jars."""
        self.loggers: dict[str, str] = {}
        """Levels by the names of loggers, which print more than warnings."""
        self.addresses = {number: f"127.0.0.1:{free_port()}" for number in range(1, brokers + 1)}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._logs: list[IO[bytes]] = []

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses.values())

    def start(self) -> None:
        raise NotImplementedError

    def start_broker(self, number: int) -> None:
        properties = self.folder / f"broker-{number}.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in self._properties(number).items()))
        self._java(f"broker-{number}", ["-Xmx512m"], ["kafka.Kafka", str(properties)])

    def log(self, number: int) -> str:
        """What a broker has printed since it was started last."""
        return (self.folder / f"broker-{number}.log").read_text(errors="replace")

    def stop(self) -> None:
        """The data is thrown away, so nobody waits for a controlled shutdown."""
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        for log in self._logs:
            log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _properties(self, number: int) -> dict[str, str]:
        raise NotImplementedError

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        more = "".join(f"log4j.logger.{name}={level}\n" for name, level in self.loggers.items())
        (self.folder / "log4j.properties").write_text(LOG4J + more)

    def _java(self, name: str, options: list[str], main: list[str]) -> None:
        log = (self.folder / f"{name}.log").open("wb")
        self._logs.append(log)
        log4j = f"-Dlog4j.configuration=file:{self.folder}/log4j.properties"
        command = java(kafka_libs(self.version), *options, log4j, tuned=self.options)
        command[-1] = ":".join([command[-1], *map(str, self.class_path)])
        command += main
        self.processes[name] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder)

    def wait_until_complete(self, numbers: set[int]) -> None:
        """Every one of these brokers lists all of them, and the controller."""
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        for number in sorted(numbers):
            while not self._knows(number, numbers):
                self._check(f"broker-{number}", deadline)
                time.sleep(PAUSE_SECONDS)

    def _knows(self, number: int, numbers: set[int]) -> bool:
        try:
            with Wire(self._asked_at(number), login=self.login) as wire:
                answer = wire.ask("Metadata", 1, {"topics": []})
        except (OSError, ConnectionEndedError):
            return False
        return {broker["node_id"] for broker in answer["brokers"]} >= numbers and answer["controller_id"] in numbers

    def _asked_at(self, number: int) -> str:
        """The address at which a broker is asked whether it is ready."""
        return self.addresses[number]

    def _check(self, name: str, deadline: float) -> None:
        code = self.processes[name].poll()
        if code is not None or time.monotonic() > deadline:
            log = (self.folder / f"{name}.log").read_text(errors="replace")
            raise RuntimeError(f"{name} did not start (exit code {code}):\n{log[-4000:]}")


class KafkaCluster(KafkaProcesses):
    """Brokers 1..n on 127.0.0.1 with a ZooKeeper of their own. After `start` every broker knows the
    controller and all others.
    """

    def __init__(
        self,
        folder: Path,
        brokers: int = 3,
        settings: Mapping[str, str] | None = None,
        login: Login | None = None,
        version: str = KAFKA_VERSION,
    ) -> None:
        super().__init__(folder, brokers, settings, login, version)
        self.zookeeper = ZooKeeperServer(folder / "zookeeper")

    def start(self) -> None:
        self._prepare()
        self.zookeeper.start()
        for number in self.addresses:
            self.start_broker(number)
            if number == 1:
                self.wait_until_complete({1})
        self.wait_until_complete(set(self.addresses))

    def stop(self) -> None:
        self.zookeeper.kill()
        super().stop()

    def _properties(self, number: int) -> dict[str, str]:
        return {
            "broker.id": str(number),
            "zookeeper.connect": self.zookeeper.connect,
            "listeners": f"PLAINTEXT://{self.addresses[number]}",
            "advertised.listeners": f"PLAINTEXT://{self.addresses[number]}",
            "log.dirs": str(self.folder / f"logs-{number}"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            **self.settings,
        }


@contextmanager
def running_kafka(
    brokers: int = 3, settings: Mapping[str, str] | None = None, login: Login | None = None
) -> Iterator[KafkaCluster]:
    """A fresh cluster for the length of the block."""
    cluster = KafkaCluster(Path(tempfile.mkdtemp(prefix="kafka-")), brokers, settings, login)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
