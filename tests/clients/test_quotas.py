"""Quotas as clients meet them, at whatever node, and as Kafka's own tool sets and shows them."""

import subprocess
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from tests.support.cluster import Cluster, unlike_kafka
from tests.support.java import java
from tests.support.kafka import kafka_libs
from tests.support.maven import needs_maven, time_to_download
from tests.support.waiting import until
from tests.support.wire import Body, Wire, read_answer, request_frame

pytestmark = unlike_kafka("a Kafka broker in ZooKeeper mode forwards nothing")

MUTATION = "controller_mutation_rate"
RATE, TOO_MANY, WAIT_MS = 0.5, 7, 3_000
"""A rate, more partitions than it lets through at once (controller.quota.window.num seconds of it),
and how long it needs to make up for them: longer than a busy machine needs for the next request.
"""
EXCEEDED = 89
TOOL_SECONDS = 120


def ask(wire: Wire, client_id: str, api: str, version: int, body: Body) -> Body:
    """One request under a client id."""
    answer = wire.exchange(request_frame(api, version, body, client_id=client_id))
    return read_answer(api, version, answer)


def create(wire: Wire, client_id: str, topic: str, partitions: int, version: int = 7) -> tuple[int, int]:
    """The code of the topic, and how long to wait."""
    wanted = {"name": topic, "num_partitions": partitions, "replication_factor": 1, "assignments": [], "configs": []}
    body = {"topics": [wanted], "timeout_ms": 30_000, "validate_only": False}
    answer = ask(wire, client_id, "CreateTopics", version, body)
    return answer["topics"][0]["error_code"], answer["throttle_time_ms"]


def limit(wire: Wire, client_id: str, rate: float | None) -> None:
    change = {"key": MUTATION, "value": rate or 0.0, "remove": rate is None}
    entry = {"entity": [{"entity_type": "client-id", "entity_name": client_id}], "ops": [change]}
    answer = wire.ask("AlterClientQuotas", 1, {"entries": [entry], "validate_only": False})
    assert answer["entries"][0]["error_code"] == 0


def described(wire: Wire, *components: tuple[str, str | None]) -> list[Body]:
    parts = [{"entity_type": kind, "match_type": 1 if name is None else 0, "match": name} for kind, name in components]
    answer = wire.ask("DescribeClientQuotas", 1, {"components": parts, "strict": True})
    entries: list[Body] = answer["entries"]
    return entries


@pytest.mark.parametrize("node", [1, 2, 3])
def test_a_client_is_limited_at_every_node(cluster: Cluster, node: int) -> None:
    """A quota that was set at one node holds for a client of every other: the controller refuses
    its changes, and its node takes no further request for the time that the answer names.
    """
    client_id = f"limited-{uuid4()}"
    with Wire(cluster.addresses[node % 3 + 1]) as other, Wire(cluster.addresses[node]) as wire:
        limit(other, client_id, RATE)
        assert create(wire, client_id, f"{client_id}-a", TOO_MANY) == (0, 0)
        began = time.monotonic()
        code, throttle_ms = create(wire, client_id, f"{client_id}-b", 1)
        assert code == EXCEEDED
        assert 0 < throttle_ms <= WAIT_MS
        wire.ask("Metadata", 1, {"topics": []})
        assert time.monotonic() - began >= throttle_ms / 1000
        assert create(wire, client_id, f"{client_id}-b", 1, version=5)[0] == 0
        assert create(wire, "unlimited", f"{client_id}-c", 1) == (0, 0)
        limit(other, client_id, None)
        assert create(wire, client_id, f"{client_id}-d", 1) == (0, 0)


@pytest.fixture
def configs(cluster: Cluster) -> Callable[..., str]:
    """Kafka's own tool, as kafka-configs.sh runs it, at one of the nodes."""
    return partial(kafka_configs, cluster.addresses[2])


def kafka_configs(address: str, *arguments: str) -> str:
    command = [*java(kafka_libs()), "kafka.admin.ConfigCommand"]
    command += ["--bootstrap-server", address, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@time_to_download
@needs_maven
def test_kafkas_tool_sets_shows_and_removes_quotas(cluster: Cluster, configs: Callable[..., str]) -> None:
    """kafka-configs.sh of 3.9 works on pairs of users and clients, and on addresses."""
    user, client_id = f"u-{uuid4()}", f"c-{uuid4()}"
    pair = ("--entity-type", "users", "--entity-name", user, "--entity-type", "clients", "--entity-name", client_id)
    assert "Completed" in configs("--alter", "--add-config", f"{MUTATION}=2.5,producer_byte_rate=1024", *pair)
    address = ("--entity-type", "ips", "--entity-name", "10.99.0.1")
    assert "Completed" in configs("--alter", "--add-config", "connection_creation_rate=100000", *address)
    with Wire(cluster.addresses[3]) as wire:
        of_pair = until(lambda: described(wire, ("user", user), ("client-id", client_id)))
        assert values(of_pair) == {MUTATION: 2.5, "producer_byte_rate": 1024.0}
        assert values(until(lambda: described(wire, ("ip", "10.99.0.1")))) == {"connection_creation_rate": 100000.0}
        shown = configs("--describe", *pair)
        assert f"user-principal '{user}', client-id '{client_id}'" in shown
        assert f"{MUTATION}=2.5" in shown
        assert "producer_byte_rate=1024.0" in shown
        configs("--alter", "--delete-config", f"{MUTATION},producer_byte_rate", *pair)
        until(lambda: described(wire, ("user", user), ("client-id", client_id)) == [])


def values(entries: list[Any]) -> dict[str, float]:
    (entry,) = entries
    return {each["key"]: each["value"] for each in entry["values"]}
