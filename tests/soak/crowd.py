"""Hundreds of connections for `make soak`: half of them ask small things and read the answers, the
other half misbehave, each in one of nine ways.

Rule: nobody here changes anything, and all connections are closed at the end of a window, so what a
node holds afterwards it has leaked.
"""

import random
import struct
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import cycle

import trio

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.api_versions import ApiVersionsRequest
from minicontroller.protocol.messages.describe_cluster import DescribeClusterRequest
from minicontroller.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from minicontroller.protocol.messages.list_groups import ListGroupsRequest
from minicontroller.protocol.messages.metadata import MetadataRequest
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeRequest
from minicontroller.protocol.registry import KAFKA
from tests.faults.detector.connection import Connection, Lost, Request, open_connection
from tests.faults.detector.floods import Addresses

CLIENT_ID = "crowd"
PAUSE_SECONDS = 2.0
"""Between two questions of a connection that behaves, on average."""
STAY_SECONDS = 4.0
"""How long a connection that misbehaves stays at most, if the node lets it."""
DRIP_SECONDS = 0.1
FLOOD = 200
FALSE_LENGTHS = (2**31 - 1, -1, -(2**31), 0, 100 * 1024 * 1024 + 1)

EVERYTHING = Request(ApiKey.METADATA, 12, MetadataRequest(topics=None, allow_auto_topic_creation=False))
SMALL = (
    Request(ApiKey.API_VERSIONS, 3, ApiVersionsRequest()),
    Request(ApiKey.DESCRIBE_CLUSTER, 1, DescribeClusterRequest()),
    Request(ApiKey.LIST_GROUPS, 4, ListGroupsRequest()),
    EVERYTHING,
)


def encoded(request: Request) -> bytes:
    """Return a request as it is sent, with its size."""
    header = RequestHeader(api_key=request.key, api_version=request.version, correlation_id=1, client_id=CLIENT_ID)
    return KAFKA.encode_request(header, request.message)


async def half_frames(stream: trio.SocketStream, dice: random.Random) -> None:
    """Half a request, and nothing more."""
    whole = encoded(dice.choice(SMALL))
    await stream.send_all(whole[: dice.randrange(1, len(whole))])
    await ended(stream)


async def false_lengths(stream: trio.SocketStream, dice: random.Random) -> None:
    """A frame that says that it is endless, negative or empty, and some bytes of it."""
    await stream.send_all(struct.pack(">i", dice.choice(FALSE_LENGTHS)) + dice.randbytes(100))
    await ended(stream)


async def floods(stream: trio.SocketStream, dice: random.Random) -> None:
    """Many requests at once, whose answers are read."""
    await stream.send_all(encoded(dice.choice(SMALL)) * FLOOD)
    await ended(stream)


async def never_reading(stream: trio.SocketStream, dice: random.Random) -> None:
    """Small questions with large answers, as many as the node takes, and nobody who reads them."""
    resources = [DescribeConfigsResource(resource_type=2, resource_name=f"t{number}") for number in range(6)]
    large = Request(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=resources))
    with trio.move_on_after(STAY_SECONDS / 2):
        while True:
            await stream.send_all(encoded(large) * 20)
    await trio.sleep(dice.random() * STAY_SECONDS / 2)


async def leaving(stream: trio.SocketStream, dice: random.Random) -> None:
    """A reset of the connection while the answer is on its way, or in the middle of the request."""
    whole = encoded(EVERYTHING)
    await stream.send_all(whole * dice.randint(0, 3) + whole[: dice.randrange(len(whole))])
    stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, struct.pack("ii", 1, 0))


async def drips(stream: trio.SocketStream, dice: random.Random) -> None:
    """A request that comes byte by byte."""
    for byte in encoded(dice.choice(SMALL)):
        await stream.send_all(bytes([byte]))
        await trio.sleep(DRIP_SECONDS)


async def wrong_logins(stream: trio.SocketStream, dice: random.Random) -> None:
    """A login with a wrong password, or a request without one."""
    name = dice.choice((b"node", b"nobody"))
    proof = SaslAuthenticateRequest(auth_bytes=b"\0" + name + b"\0wrong")
    handshake = Request(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism=dice.choice(("PLAIN", "NONE"))))
    await stream.send_all(encoded(dice.choice((handshake, EVERYTHING))))
    await stream.send_all(encoded(Request(ApiKey.SASL_AUTHENTICATE, 2, proof)))
    await ended(stream)


async def unknown_apis(stream: trio.SocketStream, dice: random.Random) -> None:
    """An API or a version that nobody has."""
    key, version = dice.choice(((999, 0), (-1, 0), (3, 99), (1, 12), (18, 99)))
    payload = struct.pack(">hhih", key, version, 7, -1) + dice.randbytes(20)
    await stream.send_all(struct.pack(">i", len(payload)) + payload)
    await ended(stream)


async def noise(stream: trio.SocketStream, dice: random.Random) -> None:
    """Random bytes in a frame that is right."""
    payload = struct.pack(">hhi", dice.randrange(80), dice.randrange(10), 7) + dice.randbytes(200)
    await stream.send_all(struct.pack(">i", len(payload)) + payload)
    await ended(stream)


async def ended(stream: trio.SocketStream) -> None:
    """Read until the node ends the connection, or for as long as misbehaviour lasts."""
    with trio.move_on_after(STAY_SECONDS):
        while await stream.receive_some(1 << 16):
            pass


MISBEHAVIOUR: dict[str, Callable[[trio.SocketStream, random.Random], Awaitable[None]]] = {
    each.__name__: each
    for each in (
        half_frames,
        false_lengths,
        floods,
        never_reading,
        leaving,
        drips,
        wrong_logins,
        unknown_apis,
        noise,
    )
}


class Crowd:
    """So many connections at any moment of a window; over all windows it counts what they did."""

    def __init__(self, size: int, logins: Mapping[int, str]) -> None:
        """`logins`: by node, the address of its listener that asks for a login."""
        self._size = size
        self._logins = logins
        self.misbehaved: Counter[str] = Counter()
        self.answered = 0
        self.lost = 0
        """Questions that no answer came to: their node was killed, or had to close connections."""
        self.longest_seconds = 0.0
        """The longest wait for an answer."""

    async def __call__(self, addresses: Addresses, dice: random.Random, over: trio.Event) -> None:
        async with trio.open_nursery() as nursery:
            kinds = cycle(MISBEHAVIOUR)
            for number in range(self._size):
                kind = None if number % 2 else next(kinds)
                nursery.start_soon(self._live, kind, addresses, random.Random(dice.random()))
            await over.wait()
            nursery.cancel_scope.cancel()

    async def _live(self, kind: str | None, addresses: Addresses, dice: random.Random) -> None:
        """One connection after the other, at any node that is there."""
        while True:
            await trio.sleep(dice.random())
            choices = addresses()
            if choices and kind is None:
                await self._behave(choices, dice)
            elif choices:
                await self._misbehave(kind or "", choices, dice)

    async def _behave(self, choices: Sequence[tuple[int, str]], dice: random.Random) -> None:
        try:
            connection = await open_connection(dice.choice(choices)[1], CLIENT_ID)
        except Lost:
            return
        try:
            while True:
                await self._ask(connection, dice.choice(SMALL))
                await trio.sleep(dice.expovariate(1 / PAUSE_SECONDS))
        except Lost:
            self.lost += 1
        finally:
            await connection.close()

    async def _ask(self, connection: Connection, request: Request) -> None:
        began = time.monotonic()
        async for _, at in connection.ask([request]):
            self.answered += 1
            self.longest_seconds = max(self.longest_seconds, at - began)

    async def _misbehave(self, kind: str, choices: Sequence[tuple[int, str]], dice: random.Random) -> None:
        node, address = dice.choice(choices)
        host, _, port = (self._logins[node] if kind == wrong_logins.__name__ else address).rpartition(":")
        try:
            stream = await trio.open_tcp_stream(host, int(port))
        except OSError:
            return
        try:
            self.misbehaved[kind] += 1
            await MISBEHAVIOUR[kind](stream, dice)
        except trio.BrokenResourceError:
            pass  # the node ended the connection, and is right
        finally:
            await trio.aclose_forcefully(stream)
