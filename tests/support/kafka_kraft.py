"""A real Apache Kafka without ZooKeeper, of any version whose jars Maven Central has, and the table
of the Kafkas that tests stand before.

The first nodes are controllers and brokers at once, the others brokers only. Clients have a
listener of their own whose security protocol the test chooses; between themselves the nodes speak
plain text, at listeners that are asked whether a node is ready.
"""

import tempfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import msgspec

from tests.support.kafka import KAFKA_VERSION, KafkaCluster, KafkaProcesses
from tests.support.ports import free_port

NEWEST_VERSION = "4.4.0"
"""The newest Kafka before which anything is tried."""
CLUSTER_ID = "bWluaWNvbnRyb2xsZXItYg"
"""Any 16 bytes in base64."""
ZOOKEEPER, KRAFT = "zookeeper", "kraft"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class KraftCluster(KafkaProcesses):
    """Nodes 1..n on 127.0.0.1. After `start` every broker knows all others."""

    def __init__(
        self,
        folder: Path,
        version: str,
        brokers: int = 1,
        settings: Mapping[str, str] | None = None,
        *,
        controllers: int = 1,
        protocol: str = "PLAINTEXT",
        controller_protocol: str = "PLAINTEXT",
    ) -> None:
        """`protocol` is that of the listener CLIENTS, `controller_protocol` that of the listener
        CONTROLLER; the settings say what they need besides.
        """
        super().__init__(folder, brokers, settings, None, version)
        self.protocol, self.controller_protocol = protocol, controller_protocol
        self.internal = {number: f"127.0.0.1:{free_port()}" for number in self.addresses}
        self.controllers = {number: f"127.0.0.1:{free_port()}" for number in range(1, controllers + 1)}

    def start(self) -> None:
        self._prepare()
        for number in self.addresses:
            self._format(number)
            self.start_broker(number)
        self.wait_until_complete(set(self.addresses))

    def _format(self, number: int) -> None:
        """Make what Kafka's StorageTool makes, without the seconds of a Java."""
        logs = self.folder / f"logs-{number}"
        logs.mkdir()
        (logs / "meta.properties").write_text(
            f"version=1\ncluster.id={CLUSTER_ID}\nnode.id={number}\ndirectory.id={directory_id()}\n"
        )

    def _properties(self, number: int) -> dict[str, str]:
        advertised = f"CLIENTS://{self.addresses[number]},INTERNAL://{self.internal[number]}"
        controls = number in self.controllers
        return {
            "process.roles": "broker,controller" if controls else "broker",
            "node.id": str(number),
            "controller.quorum.voters": ",".join(f"{each}@{address}" for each, address in self.controllers.items()),
            "listeners": f"{advertised},CONTROLLER://{self.controllers[number]}" if controls else advertised,
            "advertised.listeners": advertised,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "INTERNAL",
            "listener.security.protocol.map": (
                f"CLIENTS:{self.protocol},INTERNAL:PLAINTEXT,CONTROLLER:{self.controller_protocol}"
            ),
            "log.dirs": str(self.folder / f"logs-{number}"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self.settings,
        }

    def _asked_at(self, number: int) -> str:
        return self.internal[number]


def directory_id() -> str:
    """A random id in the form in which Kafka writes one."""
    return urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")


class Kafka(msgspec.Struct, frozen=True):
    """One kind of Kafka: its version, and what keeps its metadata."""

    version: str
    mode: str

    def __str__(self) -> str:
        return f"{self.version}-{self.mode}"

    @contextmanager
    def running(self, brokers: int = 1, settings: Mapping[str, str] | None = None) -> Iterator[KafkaProcesses]:
        """A fresh cluster for the length of the block, which lets everybody in."""
        folder = Path(tempfile.mkdtemp(prefix="kafka-"))
        cluster: KafkaProcesses = (
            KafkaCluster(folder, brokers, settings)
            if self.mode == ZOOKEEPER
            else KraftCluster(folder, self.version, brokers, settings)
        )
        with started(cluster):
            yield cluster


KAFKAS = (
    Kafka(KAFKA_VERSION, ZOOKEEPER),
    Kafka(KAFKA_VERSION, KRAFT),
    Kafka("4.1.1", KRAFT),
    Kafka(NEWEST_VERSION, KRAFT),
)
"""The Kafkas before which the gateway has to work."""


@contextmanager
def started(cluster: KafkaProcesses) -> Iterator[None]:
    """A cluster runs for the length of the block."""
    try:
        cluster.start()
        yield
    finally:
        cluster.stop()
