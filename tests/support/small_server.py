"""A real server on free ports of 127.0.0.1, with handlers small enough to be read beside the test,
and clients that see bytes.
"""

import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

import msgspec
import trio
import trustme

from minicontroller.cluster.cache import MetadataCache
from minicontroller.cluster.quotas.connection_rates import ConnectionRates
from minicontroller.controller.active.active_controller import LocalController
from minicontroller.network.connection import Connection
from minicontroller.network.limits import ConnectionLimits
from minicontroller.network.server import Server
from minicontroller.network.serving.api import ServedApi
from minicontroller.network.serving.context import RequestContext
from minicontroller.network.serving.dispatcher import Dispatcher
from minicontroller.network.serving.forwarding import Forwarder
from minicontroller.network.serving.routes import routed
from minicontroller.process.settings.node_config import NodeConfig
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct
from minicontroller.security.caller import Listener
from minicontroller.security.credentials import PlainCredentials
from minicontroller.security.sasl import PlainExchange
from tests.support.specs import APIS, TestHandler, specs_with

R = TypeVar("R", bound=WireStruct)
Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]

PATIENCE_SECONDS = 60.0
LOOP_TURNS, THREAD_SECONDS = 200, 0.002

USERS = {"alice": "alice-secret", "ANONYMOUS": "ANONYMOUS-secret", "node": "node-secret"}
PLAIN = {"PLAIN": lambda: PlainExchange(USERS)}
CLIENTS = Listener(name="CLIENTS", host="127.0.0.1")
NODE_USER = PlainCredentials("node", "node-secret")
SASL = Listener(name="SASL", host="127.0.0.1", sasl=True, mechanisms=PLAIN, node_user=NODE_USER)
NODES = Listener(name="NODES", host="127.0.0.1", sasl=True, mechanisms=PLAIN, inter_broker=True, node_user=NODE_USER)


class TinyNode:
    """As much of a node as the network side asks for."""

    def __init__(self, *, controller: object | None = None) -> None:
        self.place = LocalController()
        self.controller = controller
        self.cache = MetadataCache()
        self.seen: list[RequestContext] = []
        self.gate = trio.Event()
        """Opened by the test: what `when_open` answers wait for."""
        self.waiting = 0
        self.cancelled = 0

    @property
    def controller(self) -> object | None:
        return self.place.active

    @controller.setter
    def controller(self, controller: Any) -> None:
        self.place.active = controller


def metadata_of_names(node: TinyNode, ctx: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """At once: the names that were asked for come back (all topics: one, `all`)."""
    node.seen.append(ctx)
    names = ["all"] if request.topics is None else [topic.name for topic in request.topics]
    return MetadataResponse(topics=[MetadataResponseTopic(name=name) for name in names], cluster_id="cluster")


async def created_when_open(node: TinyNode, ctx: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Later: when the test opens the gate."""
    node.seen.append(ctx)
    node.waiting += 1
    try:
        await node.gate.wait()
    except trio.Cancelled:
        node.cancelled += 1
        raise
    finally:
        node.waiting -= 1
    return CreateTopicsResponse(topics=[CreatableTopicResult(name=topic.name) for topic in request.topics])


TINY_HANDLERS: Mapping[ApiKey, ServedApi[()] | TestHandler] = {
    **APIS,
    ApiKey.METADATA: metadata_of_names,
    ApiKey.CREATE_TOPICS: created_when_open,
}


class FixedTls:
    """The TLS of a listener whose stores never change, and of whoever calls it."""

    def __init__(self) -> None:
        authority = trustme.CA()
        self._server, self._client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        authority.issue_cert("localhost", "127.0.0.1").configure_cert(self._server)
        authority.configure_trust(self._client)

    def server_context(self) -> ssl.SSLContext:
        return self._server

    def client_context(self) -> ssl.SSLContext:
        return self._client

    def check(self, config: NodeConfig) -> None:
        """Every configuration is followed, since none is looked at."""

    def seconds_left(self) -> float:
        return 1.0

    async def follow(self, current: Callable[[], NodeConfig]) -> None:
        """Nothing ever changes."""

    def principal_of(self, certificate: bytes) -> str:
        raise ValueError(f"{certificate!r} names nobody")


class Transports:
    """By what the servers and clients of a test talk."""

    tls: FixedTls | None = None


def client_tls() -> ssl.SSLContext | None:
    """With which whoever calls a server of this module begins."""
    return None if Transports.tls is None else Transports.tls.client_context()


async def open_stream(port: int, listener: Listener | None = None, *, local_address: str | None = None) -> Stream:
    """A connection to a server of this module. TLS begins with the first byte that is sent or
    awaited.
    """
    stream = await trio.open_tcp_stream("127.0.0.1", port, local_address=local_address)
    tls = Transports.tls if listener is None or listener.tls is None else listener.tls
    if tls is None:
        return stream
    return trio.SSLStream(stream, tls.client_context(), server_hostname="localhost", https_compatible=True)


class Client:
    """One connection that writes and reads frames. Nothing waits for longer than a minute of
    whatever clock runs.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._buffer = bytearray()
        self._correlation_id = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await trio.aclose_forcefully(self.stream)

    @property
    def socket(self) -> trio.SocketStream:
        """The connection below TLS, if there is TLS."""
        return self.stream.transport_stream if isinstance(self.stream, trio.SSLStream) else self.stream

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    def encode(self, version: int, message: WireStruct, **header: Any) -> bytes:
        key = next(api.key for api in KAFKA.values() if api.request is type(message))
        self._correlation_id += 1
        full = {"correlation_id": self._correlation_id, "client_id": "test", **header}
        return KAFKA.encode_request(RequestHeader(api_key=key, api_version=version, **full), message)

    async def frame(self) -> bytes:
        """The next frame, without its size."""
        size = int.from_bytes(await self._exactly(4))
        return await self._exactly(size)

    async def answer(self, response: type[R], version: int) -> tuple[int, R]:
        """Correlation id and message of the next frame."""
        key = next(api.key for api in KAFKA.values() if api.response is response)
        header, message = KAFKA.decode_response(key, version, await self.frame())
        assert isinstance(message, response)
        return header.correlation_id, message

    async def ask(self, version: int, message: WireStruct, response: type[R], **header: Any) -> R:
        await self.send(self.encode(version, message, **header))
        correlation_id, answer = await self.answer(response, version)
        assert correlation_id == header.get("correlation_id", self._correlation_id)
        return answer

    async def ended(self) -> bool:
        """The server closes without another byte."""
        with trio.fail_after(PATIENCE_SECONDS):
            try:
                return not self._buffer and await self.stream.receive_some(4096) == b""
            except trio.BrokenResourceError:
                return True

    async def silent(self) -> bool:
        """Nothing comes and nothing ends, as far as everything that can happen without time passing
        has happened.
        """
        await trio.testing.wait_all_tasks_blocked(0.02)
        with trio.move_on_after(0) as scope:
            await self.stream.receive_some(1)
        return scope.cancelled_caught

    async def _exactly(self, size: int) -> bytes:
        with trio.fail_after(PATIENCE_SECONDS):
            while len(self._buffer) < size:
                data = await self.stream.receive_some(65536)
                if not data:
                    raise EOFError
                self._buffer += data
        result = bytes(self._buffer[:size])
        del self._buffer[:size]
        return result


class Served:
    """A running server in the hands of a test."""

    def __init__(self, server: Server, dispatcher: Dispatcher, node: TinyNode) -> None:
        self.server = server
        self.dispatcher = dispatcher
        self.node = node

    @property
    def connections(self) -> set[Connection]:
        """The connections that are open."""
        return {each for each in self.server.connections if isinstance(each, Connection)}

    async def connect(self, listener: Listener = CLIENTS) -> Client:
        return Client(await open_stream(self.server.ports[listener.name], listener))

    async def alive(self, listener: Listener = CLIENTS) -> bool:
        """A newcomer is answered."""
        async with await self.connect(listener) as client:
            answer = await client.ask(1, MetadataRequest(topics=None), MetadataResponse)
            return [topic.name for topic in answer.topics] == ["all"]


@asynccontextmanager
async def serving(
    *,
    handlers: Mapping[ApiKey, ServedApi[()] | TestHandler] = TINY_HANDLERS,
    listeners: Sequence[Listener] = (CLIENTS,),
    limits: ConnectionLimits | None = None,
    node: TinyNode | None = None,
    forwarder: Forwarder | None = None,
    rates: ConnectionRates | None = None,
) -> AsyncIterator[Served]:
    node = node or TinyNode(controller="this one")
    apis = specs_with(handlers, node)
    dispatcher = Dispatcher(routed(apis, node.cache, node.place.is_active, forwarder))
    server = Server(limits, rates)
    if Transports.tls is not None:
        listeners = [msgspec.structs.replace(each, tls=each.tls or Transports.tls) for each in listeners]
    await server.open(listeners, dispatcher)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        yield Served(server, dispatcher, node)
        nursery.cancel_scope.cancel()


async def authenticated(served: Served, username: str, password: str) -> Client:
    client = await served.connect(NODES)
    await client.ask(1, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
    token = f"\0{username}\0{password}".encode()
    answer = await client.ask(2, SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
    assert answer.error_code == ErrorCode.NONE
    return client


async def until(reached: Callable[[], bool], *, what: str = "the condition") -> None:
    """Let the server go on until `reached()` holds. After some turns of the loop what is still to
    come can only come from a thread, which is given real time.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    turns = 0
    while not reached():
        assert time.monotonic() < deadline, f"{what} never came"
        turns += 1
        if turns > LOOP_TURNS:
            time.sleep(THREAD_SECONDS)  # noqa: ASYNC251 - an awaited pause would move a mock clock
        await trio.testing.wait_all_tasks_blocked()
        await trio.lowlevel.checkpoint()
