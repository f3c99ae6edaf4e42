"""Clients see the same through the gateway as without it, and leave the same behind, but for what
the gateway's policy refuses. `make gateway-clients` compares before every kind of Kafka.
"""

from collections.abc import Iterator

import pytest

from tests.gateway.clients.comparing import compare
from tests.gateway.clients.worlds import ADMIN, ALICE, DIRECT, GATEWAY, MALLORY, NEWEST, SASL_SSL, WORDS, World
from tests.support.maven import needs_maven
from tests.support.programs import needs_go, needs_npm, time_to_build

pytestmark = [needs_maven, pytest.mark.slow]

POLICY_VIOLATION = "do not satisfy the configured policy"
"""Kafka's own words for the code 44, which are all that kafkajs shows."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(NEWEST, SASL_SSL, tmp_path_factory.mktemp("world")).running() as world:
        yield world


def goes_both_ways(world: World, client: str, user: str, told: str = WORDS) -> None:
    """A client sees and leaves behind the same on both ways, and is told of a refusal (U-3)."""
    outcome = compare(world, client, user)
    assert outcome.differences == []
    assert outcome.seen[GATEWAY]
    assert told in outcome.refused[GATEWAY]
    assert WORDS not in outcome.refused[DIRECT]


KAFKA_PYTHON = pytest.param("kafka-python", id="kafka_python")
"""Without the word that names the group of the shared Kafka: this file has its own."""


@pytest.mark.parametrize("client", ["librdkafka", KAFKA_PYTHON, "aiokafka"])
def test_clients_in_python(world: World, client: str) -> None:
    """A client in Python administers, writes and reads records and has groups as without the
    gateway, and librdkafka transactions, too (U-3a).
    """
    goes_both_ways(world, client, ALICE)


def test_somebody_without_rights(world: World) -> None:
    """The cluster's ACLs refuse a client without rights the same things in the same words
    (U-3a).
    """
    outcome = compare(world, "librdkafka without rights", MALLORY)
    assert outcome.differences == []
    assert any("AUTHORIZATION_FAILED" in line for line in outcome.seen[GATEWAY])


@pytest.mark.parametrize(
    ("requests", "user"), [("requests in the newest version", ALICE), ("requests in every version", MALLORY)]
)
def test_requests_of_every_api(world: World, requests: str, user: str) -> None:
    """Right and wrong requests of an administrator have equal answers on both ways (U-3a)."""
    outcome = compare(world, requests, user)
    assert outcome.differences == []
    assert len(outcome.seen[GATEWAY]) > 30


def test_java(world: World) -> None:
    """Kafka's own clients administer, have groups of both protocols and transactions as without the
    gateway (U-3a).
    """
    goes_both_ways(world, f"Java {NEWEST.version}", ADMIN)


@time_to_build
@needs_go
def test_franz_go(world: World) -> None:
    goes_both_ways(world, "franz-go", ALICE)


@time_to_build
@needs_npm
def test_kafkajs(world: World) -> None:
    goes_both_ways(world, "kafkajs", ALICE, POLICY_VIOLATION)
