"""The connection to the broker on which one client's requests go, opened when the first of them has
to go there: a client that asks for nothing, or for nothing that passes, costs the broker nothing.
"""

import math
from collections.abc import Awaitable, Callable

import trio

from ..network.transport import Transport
from ..protocol.api_keys import ApiKey
from ..protocol.header import RequestHeader
from ..protocol.registry import KAFKA
from ..protocol.schema import WireStruct
from .broker import OfferedBroker
from .exchange import OWN_CORRELATION_ID, Exchange
from .frames import FrameReader, FrameWriter
from .identity.login import Login

CLIENT_ID = "minicontroller"
"""The client id of what the gateway itself asks brokers on the connection of a client."""

Connect = Callable[[], Awaitable[Transport]]
"""Connects to the broker, and passes its responses to the client from now on."""


class UpstreamLink:
    __slots__ = ("_broker", "_connect", "_exchange", "_logged_in_until", "_transport", "_writer", "login")

    def __init__(self, exchange: Exchange, connect: Connect, broker: OfferedBroker, login: Login) -> None:
        self._exchange = exchange
        self._connect = connect
        self._broker = broker
        self.login = login
        self._transport: Transport | None = None
        self._writer: FrameWriter | None = None
        self._logged_in_until = -math.inf
        """trio's time until which the connection need not log in again."""

    async def opened(self) -> FrameWriter:
        """Return what sends to the broker, once it is connected and knows the user. Raises
        Disconnected.
        """
        if self._writer is None:
            self._transport = await self._connect()
            self._writer = FrameWriter(self._transport)
        credentials = self.login.credentials
        if credentials is not None and trio.current_time() >= self._logged_in_until:
            self._logged_in_until = trio.current_time() + await self._broker.log_in(self._ask_now, credentials)
        return self._writer

    async def flush(self) -> None:
        """Send what was kept to be sent together. Raises Disconnected."""
        if self._writer is not None:
            await self._writer.flush()

    async def ask(self, api_key: ApiKey, version: int, message: WireStruct) -> WireStruct:
        """Have the broker answer a request of the gateway itself. Raises Disconnected."""
        await self.opened()
        return await self._ask_now(api_key, version, message)

    async def _ask_now(self, api_key: ApiKey, version: int, message: WireStruct) -> WireStruct:
        answered = trio.Event()
        answers: list[WireStruct] = []

        async def take(frames: FrameReader, _client: FrameWriter) -> None:
            answers.append(KAFKA.decode_response(api_key, version, await frames.whole())[1])
            answered.set()

        assert self._writer is not None
        self._exchange.await_broker(OWN_CORRELATION_ID, take)
        await self._writer.send(own_request(api_key, version, message))
        await answered.wait()
        return answers[0]

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def own_request(api_key: ApiKey, version: int, message: WireStruct) -> bytes:
    """Return a request of the gateway itself, its size included."""
    return KAFKA.encode_request(RequestHeader(api_key, version, OWN_CORRELATION_ID, CLIENT_ID), message)
