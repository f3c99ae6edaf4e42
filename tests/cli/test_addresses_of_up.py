"""What clients of `up` are given: on this machine, in a container, and behind a proxy."""

from pathlib import Path

import pytest

from minicontroller.cluster.errors import ConfigurationError
from minicontroller.controller.node.client_addresses import ClientAddresses, with_internal_listener
from minicontroller.controller.node.endpoints import advertised_endpoints
from minicontroller.controller.node.process import node_settings
from minicontroller.process.settings.loading import config_from_mapping
from tests.cli.command import running
from tests.support.cluster import READY
from tests.support.ports import free_port

NODES = (1, 2, 3)


def told(clients: ClientAddresses, port: int) -> list[str]:
    """Return what clients are given for each of three nodes, whose free port is 40000."""
    found = []
    for number in NODES:
        config = config_from_mapping(node_settings(number, 3, "memory", "secret", clients.settings(number, port)))
        [client] = [each for each in config.listeners if each.name == "PLAINTEXT"]
        bound = {"PLAINTEXT": client.port or 40000, "INTERNAL": 50000}
        found += [each.address for each in advertised_endpoints(config, bound) if each.listener == "PLAINTEXT"]
    return found


@pytest.mark.parametrize(
    ("clients", "port", "addresses"),
    [
        (ClientAddresses(), 9092, ["127.0.0.1:9092", "127.0.0.1:9093", "127.0.0.1:9094"]),
        (ClientAddresses(), 0, ["127.0.0.1:40000"] * 3),
        (ClientAddresses("0.0.0.0", "localhost"), 9092, ["localhost:9092", "localhost:9093", "localhost:9094"]),
        (ClientAddresses("::", "[::1]:7000"), 0, ["[::1]:7000", "[::1]:7001", "[::1]:7002"]),
        (ClientAddresses("0.0.0.0", "k-$(nodeId).test:19092"), 9092, ["k-1.test:19092", "k-2.test:19092", "k-3.test:19092"]),
        (ClientAddresses("0.0.0.0", "k-$(nodeId)"), 9092, ["k-1:9092", "k-2:9093", "k-3:9094"]),
    ],
)  # fmt: skip
def test_what_clients_are_given(clients: ClientAddresses, port: int, addresses: list[str]) -> None:
    """Each node its own address, by a port that follows or by its number in the host."""
    assert told(clients, port) == addresses


@pytest.mark.parametrize("listen", ["0.0.0.0", "::"])
def test_everywhere_is_the_name_of_this_machine(listen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --advertise, which is what other containers of a network resolve."""
    monkeypatch.setattr("socket.getfqdn", lambda: "a1b2c3")
    assert told(ClientAddresses(listen), 9092) == ["a1b2c3:9092", "a1b2c3:9093", "a1b2c3:9094"]


@pytest.mark.parametrize(
    ("advertise", "sentence"),
    [("a:b", "is not HOST or HOST:PORT"), ("a:0", "is not HOST"), ("a:65534", "leaves no room for node 3")],
)
def test_what_cannot_be_advertised(advertise: str, sentence: str) -> None:
    """It is told by the option."""
    with pytest.raises(ConfigurationError, match=f"^--advertise {advertise} {sentence}"):
        told(ClientAddresses("127.0.0.1", advertise), 9092)


def test_listeners_that_are_set_keep_the_one_of_the_nodes() -> None:
    """With one node, `listeners` and `advertised.listeners` are what clients see; several nodes
    cannot have one address.
    """
    given = ["listeners=PLAINTEXT://0.0.0.0:9092", "advertised.listeners = PLAINTEXT://h:1", "num.partitions=2"]
    settings = with_internal_listener(given, 1)
    assert [each.endswith(",INTERNAL://127.0.0.1:0") for each in settings] == [True, True, False]
    assert with_internal_listener(settings, 1) == settings
    assert with_internal_listener(["listeners=nonsense"], 3) == ["listeners=nonsense"]
    with pytest.raises(ConfigurationError, match="gives all 3 nodes one address: use --port"):
        with_internal_listener(given, 3)


@pytest.mark.slow
def test_a_cluster_in_a_container(tmp_path: Path) -> None:
    """It listens everywhere, and the ready line says what clients are given."""
    port = free_port()
    given = ("--brokers", "1", "--set", f"listeners=PLAINTEXT://0.0.0.0:{port}")
    told = f"{READY}localhost:9092 "
    with running("up", *given, "--set", "advertised.listeners=PLAINTEXT://localhost:9092", folder=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(told)
