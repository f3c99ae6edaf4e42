"""Clients reach the brokers at fixed ports, or at one port of TLS by a name. Brokers come, go, and
come back elsewhere.
"""

import socket
import ssl
from collections.abc import Iterator, Mapping
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any

import pytest
import trio
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from trio.testing import MockClock

from minicontroller.client.configuration import Address, ClientConfig
from minicontroller.client.network import Network
from minicontroller.cluster.errors import ConfigurationError
from minicontroller.gateway.cluster import MOST_BROKERS, UpstreamCluster
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.metadata import MetadataRequest
from tests.faults.conftest import LASTING
from tests.gateway.test_passing import Stream, request
from tests.support.certificates import Authority
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.gateway import GatewayProcess, running_gateway
from tests.support.nodes import Nodes
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.wire import ConnectionEndedError, Wire
from tests.support.zookeeper import ZooKeeperServer

ASKED = request(ApiKey.METADATA, 9, MetadataRequest(topics=[]), 7)
DOMAIN = "kafka.test"


def fixed_ports() -> dict[int, int]:
    return {broker_id: free_port() for broker_id in (1, 2, 3)}


def setting(ports: Mapping[int, int]) -> dict[str, str]:
    return {"broker.ports": ",".join(f"{broker_id}:{port}" for broker_id, port in ports.items())}


def broker_at(address: str) -> int | None:
    """Return the id of the broker that is reached at an address: only the broker itself tells its
    configs. None where there is no answer.
    """
    for broker_id in (1, 2, 3):
        body = {"resources": [{"resource_type": 4, "resource_name": str(broker_id)}]}
        try:
            with Wire(address) as wire:
                if not wire.ask("DescribeConfigs", 4, body)["results"][0]["error_code"]:
                    return broker_id
        except (OSError, ConnectionEndedError):
            pass
    return None


def test_brokers_come_and_come_back_elsewhere(tmp_path: Path, zookeeper: ZooKeeperServer, chroot: str) -> None:
    """Each id keeps its port of the gateway, which is open before the broker is there: who comes
    early is held until it comes. A broker that comes back at another address is followed, and
    another gateway with the same ports, started with fewer brokers, tells the same addresses.
    """
    ports = fixed_ports()
    nodes = Nodes(tmp_path, [zookeeper.connect + chroot] * 3, LASTING)
    try:
        nodes.start(1, 3)
        with running_gateway(nodes[1].address, settings=setting(ports)) as gateway:
            wanted = {broker_id: f"127.0.0.1:{port}" for broker_id, port in ports.items()}
            assert gateway.addresses == {1: wanted[1], 3: wanted[3]}
            with Stream(wanted[2]) as early:
                early.send(ASKED)
                nodes.start(2)
                assert early.frame()[:4] == (7).to_bytes(4, "big")
            assert gateway.addresses == wanted
            nodes[3].stop()
            nodes.start(3)
            for broker_id, address in wanted.items():
                until(partial(broker_at, address), right=partial(eq, broker_id))
            nodes[2].stop()
            same = setting(ports) | {"advertised.host": "127.0.0.1", "advertised.bootstrap.host": "127.0.0.2"}
            with running_gateway(nodes[1].address, listen="127.0.0.2:0", settings=same) as other:
                nodes.start(2)
                until(lambda: other.addresses, right=lambda seen: seen == wanted)
                assert broker_at(wanted[2].replace("127.0.0.1", "127.0.0.2")) == 2
    finally:
        nodes.kill()


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with running_cluster(brokers=3) as cluster:
        yield cluster


def test_a_gateway_that_is_killed_comes_back(cluster: MiniCluster) -> None:
    """After SIGKILL the next gateway tells the same addresses, and each leads to its broker."""
    ports = fixed_ports()
    listen = f"127.0.0.1:{free_port()}"
    addresses = []
    for _ in range(2):
        gateway = GatewayProcess(cluster.bootstrap, listen=listen, settings=setting(ports))
        try:
            assert gateway.bootstrap == listen
            addresses.append(gateway.addresses)
            assert [broker_at(address) for address in gateway.addresses.values()] == [1, 2, 3]
        finally:
            gateway.kill()
    assert addresses[0] == addresses[1] == {broker_id: f"127.0.0.1:{port}" for broker_id, port in ports.items()}


def test_a_broker_without_a_port_is_left_out(cluster: MiniCluster) -> None:
    """A broker whose id is in no range is not told of: neither its own address nor another one is
    given for it, and the log says what to do.
    """
    with running_gateway(cluster.bootstrap, settings={"broker.ports": "2-3:0"}) as gateway:
        assert gateway.addresses.keys() == {2, 3}
        assert "broker 1 has no port in broker.ports" in gateway.output
        with Wire(gateway.bootstrap) as wire:
            found = [wire.ask("FindCoordinator", 2, {"key": f"g{number}"}) for number in range(30)]
            listed = wire.ask("FindCoordinator", 4, {"coordinator_keys": [f"g{number}" for number in range(30)]})
            brokers = wire.ask("DescribeCluster", 1, {})["brokers"]
        assert {each["broker_id"] for each in brokers} == {2, 3}
        assert {(row["error_code"], row["node_id"]) for row in (*found, *listed["coordinators"])} == {
            (15, -1),
            (0, 2),
            (0, 3),
        }


async def test_an_address_that_another_broker_has_now(autojump_clock: MockClock) -> None:
    """A broker whose address another one has is not there any more: its clients are held, and not
    led to the other one.
    """
    one, two = Address("a", 1), Address("b", 1)

    async def place_of(broker_id: int) -> Address:
        await trio.lowlevel.checkpoint()
        return Address("gateway", broker_id)

    async with trio.open_nursery() as nursery:
        cluster = UpstreamCluster(Network(nursery, ClientConfig((one,))), place_of)
        await cluster.learn({1: one, 2: two})
        await cluster.learn({2: one})
        assert await cluster.address_of(2) == one
        assert await cluster.address_of(1) is None
        nursery.start_soon(cluster.learn, {1: two})
        assert await cluster.address_of(1) == two


async def test_a_listener_that_cannot_be_opened(cluster: MiniCluster) -> None:
    """A gateway that serves goes on where it cannot stand for another broker, and tries again."""
    refusals = iter([OSError("no room"), ConfigurationError("no port"), None])

    async def place_of(broker_id: int) -> Address:
        await trio.lowlevel.checkpoint()
        refusal = next(refusals) if broker_id == 7 else None
        if refusal is not None:
            raise refusal
        return Address("gateway", broker_id)

    host, _, port = cluster.addresses[1].rpartition(":")
    async with trio.open_nursery() as nursery:
        network = Network(nursery, ClientConfig((Address(host, int(port)),)))
        upstream = UpstreamCluster(network, place_of)
        with pytest.raises(OSError, match="no room"):
            await upstream.learn({7: Address("a", 1)})
        await upstream.begin()
        await upstream.learn({7: Address("a", 1)})
        assert upstream.advertised(7) is None
        await upstream.learn({7: Address("a", 1)})
        assert upstream.advertised(7) == Address("gateway", 7)
        network.close()
        nursery.cancel_scope.cancel()


async def test_what_no_broker_can_be(autojump_clock: MockClock) -> None:
    """The gateway stands for so many brokers and no more, and for nothing with an id, a host or a
    port that no broker has.
    """

    async def place_of(broker_id: int) -> Address:
        await trio.lowlevel.checkpoint()
        return Address("gateway", broker_id)

    async with trio.open_nursery() as nursery:
        cluster = UpstreamCluster(Network(nursery, ClientConfig((Address("a", 1),))), place_of)
        await cluster.learn({-1: Address("a", 1), 1: Address("", 1), 2: Address("a" * 256, 1)})
        await cluster.learn({3: Address("a", 0), 4: Address("a", 65536), 5: Address("a", 1)})
        assert [number for number in range(-1, 6) if cluster.advertised(number) is not None] == [5]
        await cluster.learn({number: Address(f"b{number}", 1) for number in range(10, 10 + 2 * MOST_BROKERS)})
        stood_for = [number for number in range(10 + 2 * MOST_BROKERS) if cluster.advertised(number) is not None]
        assert len(stood_for) == MOST_BROKERS
        assert await cluster.address_of(10 + 2 * MOST_BROKERS - 1) is None


async def test_clients_begin_at_brokers_that_answer(autojump_clock: MockClock) -> None:
    """Those that begin are spread over the brokers, and one that was not reached is tried last."""
    every = [Address(host, 1) for host in "abc"]

    async def place_of(broker_id: int) -> Address:
        await trio.lowlevel.checkpoint()
        return Address("gateway", broker_id)

    async with trio.open_nursery() as nursery:
        cluster = UpstreamCluster(Network(nursery, ClientConfig((every[0],))), place_of)
        await cluster.learn(dict(enumerate(every)))
        assert [next(iter(cluster.addresses)) for _ in range(3)] == every
        cluster.failed_at(every[1])
        tries = [list(cluster.addresses) for _ in range(3)]
        assert all(each[-1] == every[1] and set(each) == set(every) for each in tries)
        cluster.reached(every[1])
        assert every[1] in {next(iter(cluster.addresses)) for _ in range(3)}


# ---------------------------------------------------------------------- names


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def by_name(cluster: MiniCluster, authority: Authority) -> Iterator[GatewayProcess]:
    settings = {
        "route.by": "sni",
        "advertised.host": f"broker-$(nodeId).{DOMAIN}",
        "advertised.bootstrap.host": DOMAIN,
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("gateway", DOMAIN, f"*.{DOMAIN}")),
    }
    with running_gateway(cluster.bootstrap, settings=settings) as gateway:
        yield gateway


@pytest.fixture
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of the gateway, and they alone, are found at this machine."""
    ask = socket.getaddrinfo

    def answer(host: str, *arguments: Any, **options: Any) -> Any:
        return ask("127.0.0.1" if host.endswith(DOMAIN) else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", answer)


@pytest.mark.usefixtures("_names")
def test_one_port_by_names(by_name: GatewayProcess, authority: Authority) -> None:
    """A client reaches each broker at one port, by the name that the gateway gave it."""
    assert by_name.bootstrap.startswith(f"{DOMAIN}:")
    admin = KafkaAdminClient(
        bootstrap_servers=by_name.bootstrap, security_protocol="SSL", ssl_cafile=str(authority.file)
    )
    try:
        port = int(by_name.bootstrap.rpartition(":")[2])
        brokers = admin.describe_cluster()["brokers"]
        assert {(each["host"], each["port"]) for each in brokers} == {
            (f"broker-{broker_id}.{DOMAIN}", port) for broker_id in (1, 2, 3)
        }
        for broker_id in (1, 2, 3):  # asked of the broker itself, which alone knows
            assert admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, str(broker_id))])
    finally:
        admin.close()


@pytest.mark.parametrize("name", ["broker-x.kafka.test", "broker-01.kafka.test", "kafka.test.", "other.example", None])
def test_a_name_that_is_not_the_gateways(by_name: GatewayProcess, name: str | None) -> None:
    """Who calls by an unknown name or by none gets an alert, and the log says the name."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", int(by_name.bootstrap.rpartition(":")[2]))) as connection,
        pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"),
    ):
        context.wrap_socket(connection, server_hostname=name)
    said = f"sends the name {name} (SNI):" if name else "sends no name (SNI):"
    until(lambda: said in by_name.output)
    assert f"{DOMAIN} and broker-$(nodeId).{DOMAIN}" in by_name.output
