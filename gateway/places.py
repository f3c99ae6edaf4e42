"""Where clients reach the brokers: at a port for each broker, the next one that is free or one that
the configuration names, or all at one port of TLS, by the name that a client calls.

Rule: what the configuration fixes is bound before the cluster is known, so that a client which
comes early waits and is not turned away.
"""

import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from ..client.configuration import Address
from ..cluster.errors import ConfigurationError
from ..network.server import PortTakenError
from ..network.tls import CalledEnd, TlsTransport
from ..network.transport import Transport
from ..policies.configs.values import MAX_PORT
from ..process.observe.logs import RateLimitedLog
from ..process.settings.node_config import NodeConfig
from ..security.caller import TlsOfListener
from ..text import escaped
from .patterns import HostPattern, PortRange, with_port

log = logging.getLogger("minicontroller.gateway")

BOOTSTRAP = "bootstrap"
UNKNOWN_NAMES = 5
"""How many clients that call by unknown names are logged at once."""

Which = Callable[[Transport], int | None]
"""Returns the id of the broker that a client wants to reach, None for any of them, once its
handshake is over.
"""
Bind = Callable[[str, int, Which], Awaitable[int]]
"""Binds a listener by its name and its port, 0 for a free one, and returns the port. Raises
PortTakenError.
"""


class Places(Protocol):
    """The addresses at which the gateway stands for brokers."""

    async def open(self) -> Address:
        """Bind what is fixed, and return the address where clients begin. Raises OSError."""

    async def of_broker(self, broker_id: int) -> Address | None:
        """Return the address that stands for a broker from now on; None if there is none for it."""


class NextPorts:
    """The ports after the one where clients begin, in the order in which brokers become known."""

    def __init__(self, bind: Bind, listen: Address, begin: HostPattern, brokers: HostPattern) -> None:
        self._bind = bind
        self._next = listen.port
        self._begin, self._brokers = begin, brokers

    async def open(self) -> Address:
        port = await self._bind(BOOTSTRAP, self._take(BOOTSTRAP), _always(None))
        return Address(self._begin.text, port)

    async def of_broker(self, broker_id: int) -> Address:
        """Open a listener at the next port that is free. Raises ConfigurationError if none is."""
        name = _listener_of(broker_id)
        while True:
            try:
                port = await self._bind(name, self._take(name), _always(broker_id))
            except PortTakenError as error:
                log.warning("%s The next port is tried.", error)
            else:
                return Address(self._brokers.host_of(broker_id), port)

    def _take(self, name: str) -> int:
        port = self._next
        if port > MAX_PORT:
            raise ConfigurationError(f"No port is left for the listener {name}: give a lower port by --listen.")
        if port:
            self._next += 1
        return port


class FixedPorts:
    """A port for each id of some ranges, and none for other ids."""

    def __init__(
        self, bind: Bind, listen: Address, begin: HostPattern, brokers: HostPattern, ranges: Sequence[PortRange]
    ) -> None:
        self._bind = bind
        self._listen = listen
        self._begin, self._brokers = begin, brokers
        self._ranges = ranges
        self._ports: dict[int, int] = {}
        self._left_out: set[int] = set()

    async def open(self) -> Address:
        begin = await self._bind(BOOTSTRAP, self._listen.port, _always(None))
        for each in self._ranges:
            for broker_id in range(each.first_id, each.last_id + 1):
                port = each.port_of(broker_id)
                self._ports[broker_id] = await self._bind(_listener_of(broker_id), port, _always(broker_id))
        return Address(self._begin.text, begin)

    async def of_broker(self, broker_id: int) -> Address | None:
        port = self._ports.get(broker_id)
        if port is not None:
            return Address(self._brokers.host_of(broker_id), port)
        if broker_id not in self._left_out:
            self._left_out.add(broker_id)
            log.error("broker %d has no port in broker.ports: the gateway hides it from clients", broker_id)
        return None


class OnePort:
    """The port where clients begin, for all brokers: the name by which a client calls it, as TLS
    tells (SNI), says which broker it wants.
    """

    def __init__(self, bind: Bind, listen: Address, begin: HostPattern, brokers: HostPattern) -> None:
        self._bind = bind
        self._listen = listen
        self._begin, self._brokers = begin, brokers
        self._port = listen.port
        self._unknown = RateLimitedLog(log, lines=UNKNOWN_NAMES)

    async def open(self) -> Address:
        self._port = await self._bind(BOOTSTRAP, self._listen.port, self._which)
        return with_port(self._begin, self._begin.text, self._port)

    async def of_broker(self, broker_id: int) -> Address:
        return with_port(self._brokers, self._brokers.host_of(broker_id), self._port)

    def refuses(self, name: str | None) -> bool:
        """Whether a client calls by a name that is none of the gateway's."""
        if name is not None and (self._begins(name) or self._brokers.broker_called(name) is not None):
            return False
        called = "no name" if name is None else f"the name {escaped(name)}"
        names = f"{self._begin.text} and {self._brokers.text}"
        self._unknown.say(logging.WARNING, "refusing a client that sends %s (SNI): the names are %s", called, names)
        return True

    def _begins(self, name: str) -> bool:
        return name.lower() == self._begin.text.lower()

    def _which(self, client: Transport) -> int | None:
        name = client.called if isinstance(client, TlsTransport) else None
        return None if name is None or self._begins(name) else self._brokers.broker_called(name)


def _listener_of(broker_id: int) -> str:
    return f"broker-{broker_id}"


def _always(broker_id: int | None) -> Which:
    return lambda _client: broker_id


class NamedTls:
    """The TLS of another listener, which notes the name by which a client calls (SNI). A client
    that calls by none of the gateway's names gets an alert that says so, and no certificate.
    """

    def __init__(self, tls: TlsOfListener, refuses: Callable[[str | None], bool]) -> None:
        """`refuses` decides on the name, None where a client calls by none."""
        self._tls = tls
        self._refuses = refuses
        self._context: ssl.SSLContext | None = None

    def server_context(self) -> ssl.SSLContext:
        context = self._tls.server_context()
        if context is not self._context:
            context.sslobject_class = CalledEnd
            context.sni_callback = self._on_name
            self._context = context
        return context

    def client_context(self) -> ssl.SSLContext:
        return self._tls.client_context()

    def check(self, config: NodeConfig) -> None:
        self._tls.check(config)

    def seconds_left(self) -> float:
        return self._tls.seconds_left()

    async def follow(self, current: Callable[[], NodeConfig]) -> None:
        await self._tls.follow(current)

    def principal_of(self, certificate: bytes) -> str:
        return self._tls.principal_of(certificate)

    def _on_name(self, end: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
        if self._refuses(name):
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        assert isinstance(end, CalledEnd)
        end.called = name
        return None
