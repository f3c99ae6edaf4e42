"""Requests under clients' names follow the controller of a KRaft cluster wherever it moves."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.gateway import GatewayProcess, running_gateway
from tests.support.kafka_kraft import NEWEST_VERSION, KraftCluster, started
from tests.support.waiting import until
from tests.support.wire import Wire

PASSWORD = "planted-at-the-gateway"
NODES = (1, 2, 3)
TIMED_OUT, EXISTS = 7, 36


@pytest.fixture(scope="module")
def kafka() -> Iterator[KraftCluster]:
    """Three controllers, one of which is active."""
    folder = Path(tempfile.mkdtemp(prefix="kafka-"))
    cluster = KraftCluster(folder, NEWEST_VERSION, len(NODES), controllers=len(NODES))
    with started(cluster):
        yield cluster


@pytest.fixture(scope="module")
def gateway(kafka: KraftCluster) -> Iterator[GatewayProcess]:
    settings = {
        "identity": "envelope",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{PASSWORD}";'
        ),
        "upstream.controllers": ",".join(kafka.controllers.values()),
    }
    with running_gateway(kafka.bootstrap, settings=settings) as gateway:
        yield gateway


def active_controller(kafka: KraftCluster, asked: int) -> int:
    with Wire(kafka.controllers[asked]) as wire:
        number: int = wire.ask("DescribeCluster", 1, {"endpoint_type": 2})["controller_id"]
    return number


def created(gateway: GatewayProcess, topic: str, *, timeout_ms: int = 30_000) -> int:
    """Create a topic as alice, on a connection of its own, and return the code of the answer."""
    with Wire(gateway.bootstrap, login=("alice", PASSWORD)) as wire:
        body = {"topics": [{"name": topic, "num_partitions": 1, "replication_factor": 1}], "timeout_ms": timeout_ms}
        code: int = wire.ask("CreateTopics", 4, body)["topics"][0]["error_code"]
    return code


def kill(kafka: KraftCluster, node: int) -> None:
    process = kafka.processes[f"broker-{node}"]
    process.kill()
    process.wait()


def test_the_controller_moves(kafka: KraftCluster, gateway: GatewayProcess) -> None:
    """When the active controller is killed, another one gets what clients send after it; while
    there is none, a request waits for as long as it says, and is answered as timed out.
    """
    assert created(gateway, "before") == 0
    first = active_controller(kafka, 1)
    kill(kafka, first)
    until(lambda: created(gateway, "after"), right=lambda code: code in (0, EXISTS))
    kill(kafka, next(node for node in NODES if node != first))
    assert created(gateway, "never", timeout_ms=1000) == TIMED_OUT
