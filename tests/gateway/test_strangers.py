"""Clients that ask for nothing, or for nothing that passes, cost the brokers nothing; and whoever
they are, others are served.
"""

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pytest

from minicontroller.process.observe.logs import CLIENT_LINES
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.metadata import MetadataRequest
from tests.gateway.test_passing import TIMEOUT_SECONDS, Stream, first_bytes, request
from tests.protocol.test_frame import OTHERS
from tests.support.certificates import Authority
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.gateway import GatewayProcess, most_resident_bytes, running_gateway
from tests.support.waiting import until

IDLE_CLIENTS, IDLE_BYTES = 300, 64 * 1024
ASKED = request(ApiKey.METADATA, 9, MetadataRequest(topics=[]), 7)


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with running_cluster(brokers=1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def gateway(cluster: MiniCluster) -> Iterator[GatewayProcess]:
    with running_gateway(cluster.bootstrap) as gateway:
        yield gateway


class Upstream:
    """The sockets that a gateway holds to a cluster."""

    def __init__(self, gateway: GatewayProcess, cluster: MiniCluster) -> None:
        self._pid = gateway.pid
        self._ports = {int(address.rpartition(":")[2]) for address in cluster.addresses.values()}

    @property
    def count(self) -> int:
        return sum(1 for _ in self._of_this_process())

    def _of_this_process(self) -> Iterator[str]:
        sockets = {_target(link) for link in Path(f"/proc/{self._pid}/fd").iterdir()}
        for row in Path(f"/proc/{self._pid}/net/tcp").read_text().splitlines()[1:]:
            fields = row.split()
            if int(fields[2].rpartition(":")[2], 16) in self._ports and f"socket:[{fields[9]}]" in sockets:
                yield row

    def at_rest(self) -> Self:
        """Wait until nobody but the gateway itself is connected."""
        until(lambda: self.count == 1)
        return self


def _target(link: Path) -> str:
    """Return what a file descriptor of another process is; empty if it was closed meanwhile."""
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""


def test_who_asks_for_nothing_has_no_connection_to_a_broker(cluster: MiniCluster, gateway: GatewayProcess) -> None:
    """Idle strangers, halves of requests, and requests that do not pass or that the gateway answers
    itself, open no connection to a broker; the first request that has to go there does.
    """
    upstream = Upstream(gateway, cluster).at_rest()
    with ExitStack() as open_ones:
        clients = [open_ones.enter_context(Stream(gateway.bootstrap)) for _ in range(60)]
        for client in clients[:20]:
            client.send(ASKED[:7])
        for number, client in enumerate(clients[20:40]):
            client.send(first_bytes(ApiKey.API_VERSIONS, 99, number))
            assert client.frame()[:4] == number.to_bytes(4, "big")
        assert upstream.count == 1
        clients[0].send(ASKED[7:])
        assert clients[0].frame()[:4] == (7).to_bytes(4, "big")
        assert upstream.count == 2
        clients[30].send(ASKED)
        assert clients[30].frame()[:4] == (7).to_bytes(4, "big")
        assert upstream.count == 3
    upstream.at_rest()


def test_other_protocols_are_named(cluster: MiniCluster, gateway: GatewayProcess) -> None:
    """A stream of another protocol is closed with one line that says what it is, although a frame
    of the gateway may be as long as its first bytes would say; nothing of it goes to a broker.
    """
    upstream = Upstream(gateway, cluster).at_rest()
    seen = len(gateway.output)
    for first in OTHERS:
        with Stream(gateway.bootstrap) as stranger:
            stranger.send(first)
            assert stranger.frame() == b""
        assert upstream.count == 1

    def lines() -> list[str]:
        return gateway.output[seen:].splitlines()

    told = until(lines, right=lambda found: len(found) == CLIENT_LINES)
    for line, named in zip(told, OTHERS.values(), strict=False):
        assert f"{named} arrived" in line


def test_an_idle_client_costs_little(gateway: GatewayProcess) -> None:
    """Clients that have asked and ask no more cost the gateway some tens of KiB each."""
    before = most_resident_bytes(gateway.pid)
    with ExitStack() as open_ones:
        for _ in range(IDLE_CLIENTS):
            client = open_ones.enter_context(Stream(gateway.bootstrap))
            client.send(ASKED)
            assert client.frame()
        assert most_resident_bytes(gateway.pid) - before < IDLE_CLIENTS * IDLE_BYTES


def test_a_failed_handshake_is_told(cluster: MiniCluster, tmp_path: Path) -> None:
    """A client whose handshake fails gets the alert, although it has sent more than was read: the
    connection is not reset. Handshakes that have begun cost the brokers nothing.
    """
    settings = {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(Authority(tmp_path).issue("gateway", "127.0.0.1")),
    }
    hello, more = _client_hello(ssl.TLSVersion.TLSv1_2, "AES128-SHA"), bytes(20_000)  # in one call
    with running_gateway(cluster.bootstrap, settings=settings) as gateway:
        host, _, port = gateway.bootstrap.rpartition(":")
        upstream = Upstream(gateway, cluster).at_rest()
        with ExitStack() as open_ones:
            for _ in range(60):
                stranger = open_ones.enter_context(socket.create_connection((host, int(port)), TIMEOUT_SECONDS))
                stranger.sendall(hello[: len(hello) // 2])
            assert upstream.count == 1
        with socket.create_connection((host, int(port)), TIMEOUT_SECONDS) as client:
            client.sendall(hello + more)
            client.shutdown(socket.SHUT_WR)
            told = b"".join(iter(lambda: client.recv(100), b""))
    assert told[:1] == b"\x15", "an alert, and then the end in good order"


def _client_hello(version: ssl.TLSVersion, ciphers: str) -> bytes:
    """The first bytes of a client with which the gateway has no cipher in common."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = version
    context.set_ciphers(ciphers)
    outgoing = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()
