"""A real Kafka 3.9.1 whose controller is a node of ours, over TLS and with tokens."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from tests.support.cluster import READY_TIMEOUT_SECONDS
from tests.support.kafka import KafkaCluster
from tests.support.maven import needs_maven
from tests.support.nodes import NodeProcess
from tests.support.ports import free_port
from tests.support.token_nodes import Issuer, settings
from tests.support.waiting import until
from tests.support.wire import Body, ConnectionEndedError, Wire
from tests.support.zookeeper import ZooKeeperServer

pytestmark = [needs_maven, pytest.mark.slow]

OURS, KAFKA = 1, 100
AUTHORIZER = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": f"User:ANONYMOUS;User:node-{OURS};User:node-{KAFKA}",
}
TERMINATED = 128 + signal.SIGTERM


class KafkaWithToken(KafkaCluster):
    """A broker on a ZooKeeper of others, with its own token."""

    def __init__(self, folder: Path, own: dict[str, str]) -> None:
        self.client = f"127.0.0.1:{free_port()}"
        listeners = f"CLIENT://{self.client},INTERNAL://127.0.0.1:{free_port()}"
        broker = {"broker.id": str(KAFKA), "listeners": listeners, "advertised.listeners": listeners}
        super().__init__(folder, brokers=1, settings=own | broker)

    def start_broker(self, number: int) -> None:
        """Kafka wants each address of tokens and keys to be allowed for the process."""
        (self.folder / "log4j.properties").write_text("log4j.rootLogger=OFF\n")
        properties = self.folder / "broker.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in self._properties(number).items()))
        addresses = ",".join(value for key, value in self.settings.items() if key.endswith(".endpoint.url"))
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={addresses}"
        self._java("broker-1", ["-Xmx512m", allowed], ["kafka.Kafka", str(properties)])


@contextmanager
def together(folder: Path, connect: str) -> Iterator[tuple[NodeProcess, KafkaWithToken]]:
    issuer, authority = Issuer(folder), Authority(folder)
    both = {number: settings(folder, authority, issuer.keys, number) | AUTHORIZER for number in (OURS, KAFKA)}
    for number in both:
        issuer.issue(number, 600)
    node = NodeProcess(folder, OURS, connect, both[OURS])
    kafka = KafkaWithToken(folder / "kafka", both[KAFKA] | {"zookeeper.connect": connect})
    try:
        node.start()
        node.wait_ready()
        kafka.start_broker(1)
        until(
            lambda: {each["node_id"] for each in node.metadata()["brokers"]}, right=lambda seen: seen == {OURS, KAFKA}
        )
        yield node, kafka
    finally:
        kafka.stop()
        node.kill()


def leaders(metadata: Body) -> dict[int, int]:
    (topic,) = metadata["topics"]
    return {each["partition_index"]: each["leader_id"] for each in topic["partitions"]}


def leaders_at(address: str) -> dict[int, int]:
    """By partition, as a broker says; none while it does not answer."""
    try:
        with Wire(address) as wire:
            return leaders(wire.ask("Metadata", 4, {"topics": [{"name": "t"}], "allow_auto_topic_creation": False}))
    except (OSError, ConnectionEndedError):
        return {}


def test_a_kafka_obeys_and_asks(tmp_path: Path, zookeeper: ZooKeeperServer) -> None:
    """It leads what our controller gives it to lead, and asks for another leader when it stops."""
    with together(tmp_path, f"{zookeeper.connect}/kafka-with-tokens") as (node, kafka):
        assignment = [{"partition_index": 0, "broker_ids": [KAFKA, OURS]}]
        topic = {"name": "t", "num_partitions": -1, "replication_factor": -1, "assignments": assignment, "configs": []}
        with node.wire() as wire:
            (created,) = wire.ask("CreateTopics", 4, {"topics": [topic], "timeout_ms": 10_000, "validate_only": False})[
                "topics"
            ]
        assert created["error_code"] == 0
        until(lambda: leaders_at(kafka.client), right=lambda seen: seen == {0: KAFKA})
        process = kafka.processes["broker-1"]
        process.terminate()
        assert process.wait(READY_TIMEOUT_SECONDS) == TERMINATED
        until(lambda: leaders(node.metadata(["t"])), right=lambda seen: seen == {0: OURS})
