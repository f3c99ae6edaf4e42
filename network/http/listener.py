"""The HTTP port, a socket that costs next to nothing until somebody connects.

Rule: an HTTP client can harm nobody else. The number of connections is bounded, and the oldest
makes room for a new one; a client that does not read its answer is disconnected; and an
error ends the connection on which it happened. The service behind the connections is loaded by the
first of them.

Nothing imports `serving`, or a site that is made with it, by an import statement: it needs h11,
starlette and prometheus-client, so a process whose page nobody opens neither starts later nor grows
by them.
"""

import ipaddress
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import TypeVar

import trio

from ...cluster.errors import ConfigurationError
from ...policies.configs.values import host_and_port
from ...process.observe.logs import ClientWarnings
from ...process.settings.node_config import NodeConfig
from ...protocol.other_protocols import FIRST_BYTES, HTTP, PROXY, TEXT, protocol_of
from ..binding import OVERLOADED, open_listeners, port_of
from ..handshake_errors import HandshakeError
from ..tls import TlsTransport
from ..transport import Disconnected, SocketTransport
from .protection import HttpProtection

log = logging.getLogger("minicontroller.http")

MAX_CONNECTIONS = 100
STALL_SECONDS = 10.0
"""How long a client may take to read what was sent before it is disconnected."""
READ_BYTES = 4 * 1024
PAUSE_SECONDS = 0.1
P = TypeVar("P")
EMPTY_LINES = b"\r\n"
"""The bytes of empty lines, which a client may send before its first request."""


def parse_address(text: str) -> tuple[str, int]:
    """Read the `host:port` of `http.listen`, with an IPv6 address in brackets. Raises
    ConfigurationError.
    """
    address = host_and_port(text)
    if address is None:
        raise ConfigurationError(f"http.listen is host:port, such as 127.0.0.1:8080, and not {text!r}.")
    return address


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class BoundedStream:
    """The bytes of a connection. A client that takes nothing for STALL_SECONDS is disconnected."""

    def __init__(self, transport: SocketTransport | TlsTransport, warnings: ClientWarnings) -> None:
        self._transport = transport
        self._warnings = warnings
        self._has_begun = False
        self.scheme = "https" if isinstance(transport, TlsTransport) else "http"
        self.listens = False
        """Whether the client listens to events; such a connection is evicted last."""

    async def secure(self) -> None:
        """Do the TLS handshake, if there is TLS. Raises HandshakeError or Disconnected."""
        await self._transport.secure()

    async def send(self, data: bytes) -> None:
        """Send bytes. Always a checkpoint. Raises Disconnected."""
        with trio.move_on_after(STALL_SECONDS) as scope:
            await trio.lowlevel.checkpoint()
            sent = self._transport.send_nowait(data)
            await self._transport.send_rest(memoryview(data)[sent:])
        if scope.cancelled_caught:
            self.close()
            raise Disconnected("the client takes nothing")

    async def receive(self) -> bytes:
        """Return some bytes, or none at the end of the stream. Raises Disconnected, also if the
        first bytes are not HTTP.
        """
        data = await self._transport.receive(READ_BYTES)
        return data if self._has_begun else await self._begun(data)

    async def _begun(self, data: bytes) -> bytes:
        """Return the first bytes after empty lines (RFC 9112, section 2.2), at least as many as
        name a protocol. Raises Disconnected if it is not HTTP.
        """
        self._has_begun = True
        first = data[:1]
        data = data.lstrip(EMPTY_LINES)
        while first and len(data) < FIRST_BYTES and (more := await self._transport.receive(READ_BYTES)):
            data = (data + more).lstrip(EMPTY_LINES)
        if data[:1] == b"\0":  # in front of that, a PROXY header of version 2 has empty lines
            other: str | None = "Kafka's protocol" if first == b"\0" else PROXY
        else:
            other = protocol_of(data)
        if other in (None, HTTP, TEXT):  # what text it is, the service says
            return data
        self._warnings.say(log, "closing a connection at the HTTP port: %s arrived instead of HTTP", other)
        raise Disconnected(f"{other} arrived instead of HTTP")

    def close(self) -> None:
        """Close the socket at once; tasks that wait for it are woken."""
        self._transport.close()


Serve = Callable[[BoundedStream], Awaitable[None]]
"""Speaks HTTP on one connection until it ends."""


class HttpListener:
    """Accepts HTTP connections: `open` it, then `run` it until cancelled."""

    def __init__(self, load: "Callable[[HttpListener], Awaitable[Serve]]", protection: HttpProtection) -> None:
        """`load` is called once, when the first connection comes."""
        self.protection = protection
        self.connections: dict[BoundedStream, None] = {}
        """The open connections, the oldest first."""
        self.evicted = 0
        self.host = ""
        self.port = 0
        self._load = load
        self._listeners: list[trio.SocketListener] = []
        self._serve: Serve | None = None
        self._loading = trio.Lock()
        self._warnings = ClientWarnings()

    async def open(self, address: str) -> None:
        """Bind the address of `http.listen`. Raises ConfigurationError or OSError."""
        self.host, port = parse_address(address)
        try:
            self._listeners = await open_listeners(self.host, port)
        except OSError as error:
            raise OSError(f"http.listen cannot listen on {address}: {error.strerror or error}.") from error
        self.port = port_of(self._listeners[0])

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.protection.follow, self._end_events)
            for listener in self._listeners:
                nursery.start_soon(self._accept, listener, nursery)
            try:
                await trio.sleep_forever()
            finally:
                for stream in list(self.connections):
                    stream.close()

    async def _accept(self, listener: trio.SocketListener, nursery: trio.Nursery) -> None:
        async with listener:
            while True:
                try:
                    accepted = await listener.accept()
                except OSError as error:
                    if error.errno not in OVERLOADED:
                        raise
                    await trio.sleep(PAUSE_SECONDS)
                    continue
                stream = BoundedStream(self._transport(accepted), self._warnings)
                self._make_room()
                self.connections[stream] = None
                nursery.start_soon(self._guarded, stream)

    def _transport(self, stream: trio.SocketStream) -> SocketTransport | TlsTransport:
        context = self.protection.context
        return SocketTransport(stream) if context is None else TlsTransport(stream, context)

    def _make_room(self) -> None:
        if len(self.connections) >= MAX_CONNECTIONS:
            oldest = next((each for each in self.connections if not each.listens), next(iter(self.connections)))
            del self.connections[oldest]
            oldest.close()
            self.evicted += 1

    def _end_events(self) -> None:
        """Close the connections of those who listen to events by a token that is no longer the
        right one; browsers connect again. Every other request shows its token.
        """
        for stream in self.connections:
            if stream.listens:
                stream.close()

    async def _guarded(self, stream: BoundedStream) -> None:
        try:
            await stream.secure()
            serve = await self._loaded()
            await serve(stream)
        except HandshakeError as error:
            self._warnings.say(log, "TLS handshake at the HTTP port failed: %s", error)
        except Disconnected:
            pass  # as every connection once is
        except Exception:
            log.exception("an HTTP connection failed")
        finally:
            stream.close()
            self.connections.pop(stream, None)

    async def _loaded(self) -> Serve:
        async with self._loading:
            if self._serve is None:
                self._serve = await self._load(self)
            return self._serve


async def open_site(module: str, process: P, config: NodeConfig, nursery: trio.Nursery) -> HttpListener | None:
    """Open the port that `http.listen` names, if it names one, and serve the site that the module
    makes of the process, by tasks of the nursery. Raises ConfigurationError or OSError.
    """
    address = config.optional_string("http.listen")
    if not address:
        return None
    protection = HttpProtection(config)
    http = HttpListener(partial(_load_site, module, process), protection)
    await http.open(address)
    if protection.asks_for_a_token and protection.context is None and not is_loopback(http.host):
        log.warning("http.bearer.token crosses the network unencrypted: set http.ssl.keystore.location")
    if not protection.asks_for_a_token and not is_loopback(http.host):
        log.warning(
            "everybody who reaches %s can read the page and the metrics, with the names of topics and users: "
            "set http.bearer.token.file, or let http.listen be an address of this machine alone", http.address,
        )  # fmt: skip
    nursery.start_soon(http.run)
    return http


async def _load_site(module: str, process: P, listener: HttpListener) -> Serve:
    loaded = await trio.to_thread.run_sync(import_module, module)
    make_site: Callable[[P, HttpListener], Serve] = loaded.site
    return make_site(process, listener)
