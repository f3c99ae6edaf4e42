"""A broker that hangs, clients that are half open, and hostile ones: memory is bounded, and others
are served.
"""

import contextlib
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Self

import pytest
import trio

from minicontroller.client.configuration import Address, ClientConfig
from minicontroller.client.network import Network
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.metadata import MetadataRequest
from tests.faults.conftest import LASTING
from tests.gateway.test_passing import Stream, request
from tests.gateway.test_requests import produce
from tests.support.gateway import GatewayProcess, most_resident_bytes, running_gateway
from tests.support.nodes import Nodes
from tests.support.waiting import until
from tests.support.wire import Wire
from tests.support.zookeeper import ZooKeeperServer

MIB = 1024 * 1024
MEMORY_BYTES = 120 * MIB
ASKED = request(ApiKey.METADATA, 9, MetadataRequest(topics=[]), 7)
IDLE_MS = 1000


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeperServer) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path_factory.mktemp("nodes"), [zookeeper.connect + "/gateway-faults"] * 2, LASTING)
    try:
        nodes.start()
        yield nodes
    finally:
        nodes.kill()


@pytest.fixture
def gateway(nodes: Nodes) -> Iterator[GatewayProcess]:
    with running_gateway(nodes.bootstrap) as gateway:
        yield gateway


def is_served(address: str) -> bool:
    with Wire(address) as wire:
        return len(wire.ask("Metadata", 1, {"topics": []})["brokers"]) == 2


class Flood:
    """A client that sends as much as is taken, and reads nothing."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setblocking(False)
        self._left = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> bool:
        """Send data again and again. Return whether nothing more is taken."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(100):
                self._left = self._left or data
                self._left = self._left[self._socket.send(self._left) :]
            return False
        return True


def test_a_broker_that_hangs_slows_nobody_else(nodes: Nodes, gateway: GatewayProcess) -> None:
    """While a broker takes no bytes, clients flood it with records that ask for no answer: the
    gateway keeps little of them, and clients of another broker are served, new ones, too.
    """
    addresses = gateway.addresses
    record = produce(3, "flood", {}, None, 0)
    flood = struct.pack(">i", len(record) + MIB) + record + bytes(MIB)
    with Stream(addresses[1]) as client, ExitStack() as floods:
        client.send(ASKED)
        assert client.frame()
        nodes[2].freeze()
        try:
            stuck = [floods.enter_context(Flood(addresses[2])) for _ in range(20)]
            for _ in range(200):
                for each in stuck:
                    each.send(flood)
                client.send(ASKED)
                assert client.frame()[:4] == (7).to_bytes(4, "big")
            assert is_served(addresses[1])
        finally:
            nodes[2].thaw()
    assert most_resident_bytes(gateway.pid) < MEMORY_BYTES
    until(lambda: is_served(addresses[2]))


async def test_the_cluster_is_asked_elsewhere(nodes: Nodes) -> None:
    """Where the broker that answered first hangs, another one is asked for the brokers."""
    servers = [Address("127.0.0.1", int(address.rpartition(":")[2])) for address in nodes.addresses.values()]
    async with trio.open_nursery() as nursery:
        network = Network(nursery, ClientConfig(tuple(servers), request_timeout_seconds=3.0))
        await network.look()
        nodes[1].freeze()
        try:
            assert len((await network.look()).brokers) == 2
        finally:
            nodes[1].thaw()
        network.close()
        nursery.cancel_scope.cancel()


def test_half_open_clients_are_closed(nodes: Nodes) -> None:
    """A client that stops within a request, and one that takes no answers, are closed when they
    were idle for long enough.
    """
    with running_gateway(nodes.bootstrap, settings={"connections.max.idle.ms": str(IDLE_MS)}) as gateway:
        address = gateway.bootstrap
        with Stream(address) as half, Stream(address) as quarter, Flood(address) as deaf:
            half.send(ASKED[:-3])
            quarter.send(ASKED[:7])
            until(lambda: deaf.send(ASKED * 1000))
            assert half.frame() == quarter.frame() == b""
            until(lambda: is_closed(deaf))


def is_closed(client: Flood) -> bool:
    try:
        client.send(ASKED)
    except OSError:
        return True
    return False


def hostile(rng: random.Random) -> bytes:
    """Return what no client sends."""
    match rng.randrange(8):
        case 0:
            return struct.pack(">i", rng.choice([-1, -(2**31), 0, 2**31 - 1]))
        case 1:
            return b"\xff" * rng.randrange(1, 100)
        case 2:
            return struct.pack(">ihhi", 100, rng.choice([9999, -1, 32767, 58, 4]), 0, 1) + bytes(92)
        case 3:
            return struct.pack(">ihhi", 100, rng.randrange(75), rng.choice([32767, -1, -32768]), 1) + bytes(92)
        case 4:
            return ASKED[: rng.randrange(len(ASKED))]
        case 5:
            return struct.pack(">i", 2**31 - 1) + ASKED[4:] + bytes(rng.randrange(100_000))
        case 6:
            tags = struct.pack(">ihhih", 2**31 - 1, ApiKey.PRODUCE, 9, 1, -1) + b"\xff\xff\xff\xff\x0f"
            return tags + rng.randbytes(200_000)
        case _:
            return rng.randbytes(rng.randrange(1, 300))


def test_hostile_clients(gateway: GatewayProcess) -> None:
    """Whatever strangers send, by the hundred, the memory is bounded, nothing fails, and another
    client is served all the time.
    """
    rng = random.Random(14)
    with Stream(gateway.bootstrap) as client, ExitStack() as strangers:
        for _ in range(300):
            stranger = strangers.enter_context(Stream(gateway.bootstrap))
            with contextlib.suppress(OSError):  # it may be closed amid what is sent
                stranger.send(hostile(rng))
            client.send(ASKED)
            assert client.frame()[:4] == (7).to_bytes(4, "big")
    assert most_resident_bytes(gateway.pid) < MEMORY_BYTES
    assert "Traceback" not in gateway.output


def test_pipelined_refusals(gateway: GatewayProcess) -> None:
    """A refused request amid others ends the connection, and what came before it was answered, in
    its order, or was not.
    """
    for place in range(5):
        frames = [request(ApiKey.METADATA, 9, MetadataRequest(topics=[]), number) for number in range(5)]
        frames[place] = struct.pack(">ihhi", 20, 9999, 0, place) + bytes(12)
        with Stream(gateway.bootstrap) as client:
            client.send(b"".join(frames))
            told = [frame[:4] for frame in iter(client.frame, b"")]
        assert told == [number.to_bytes(4, "big") for number in range(len(told))]
        assert len(told) <= place
