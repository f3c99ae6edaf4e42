"""The brokers as one listener of the gateway offers them to clients."""

import logging
import ssl
from collections.abc import Iterable

import trio

from ..client.configuration import Address
from ..network.handshake_errors import HandshakeError
from ..network.peer_login import Ask, log_in
from ..network.tls import start_tls
from ..network.transport import Disconnected, SocketTransport, Transport, notice_death
from ..process.observe.logs import RateLimitedLog
from ..protocol.errors import ProtocolError
from ..security.credentials import Credentials
from .cluster import UpstreamCluster
from .places import Which

log = logging.getLogger("minicontroller.gateway")

CONNECT_TIMEOUT_SECONDS = 10.0  # Kafka's clients: socket.connection.setup.timeout.ms
DEAD_AFTER_SECONDS = 30
"""After how many seconds without a sign of a broker's machine a connection to it breaks."""


class OfferedBroker:
    """One broker, the one that a client calls by its name, or any of them, which clients that begin
    ask for the others.
    """

    def __init__(self, cluster: UpstreamCluster, which: Which, tls: ssl.SSLContext | None) -> None:
        """Offer the broker that a client wants. `tls` is the context of connections to brokers."""
        self._cluster = cluster
        self._which = which
        self._tls = tls
        self._unreachable = RateLimitedLog(log)

    async def connect(self, client: Transport) -> Transport:
        """Connect a client to its broker, once its address is known. Raises Disconnected."""
        broker_id = self._which(client)
        reasons = []
        for address in await self._addresses(broker_id):
            try:
                transport = await self._connected(address)
            except Disconnected as error:
                self._cluster.failed_at(address)
                reasons.append(f"{address}: {error}")
            else:
                self._cluster.reached(address)
                return transport
        text = "; ".join(reasons) or f"broker {broker_id} is not known"
        self._unreachable.say(
            logging.WARNING, "disconnecting a client, because the gateway does not reach its broker: %s", text
        )
        raise Disconnected(text)

    async def _addresses(self, broker_id: int | None) -> Iterable[Address]:
        if broker_id is None:
            return self._cluster.addresses
        address = await self._cluster.address_of(broker_id)
        return () if address is None else (address,)

    async def _connected(self, address: Address) -> Transport:
        try:
            with trio.fail_after(CONNECT_TIMEOUT_SECONDS):
                stream = await trio.open_tcp_stream(address.host, address.port)
        except trio.TooSlowError as error:
            raise Disconnected("no answer in time") from error
        except (OSError, ValueError, OverflowError) as error:
            raise Disconnected(str(error) or "this is not an address") from error
        notice_death(stream.socket, DEAD_AFTER_SECONDS)
        if self._tls is None:
            return SocketTransport(stream)
        try:
            return await start_tls(stream, self._tls, address.host)
        except HandshakeError as error:  # with the broker, and so no failure of the client
            raise Disconnected(str(error)) from error

    async def log_in(self, ask: Ask, credentials: Credentials) -> float:
        """Log in on a connection to a broker, and return for how many seconds that holds. Raises
        Disconnected.
        """
        try:
            return await log_in(ask, credentials)
        except ProtocolError as error:
            self._unreachable.say(
                logging.WARNING, "disconnecting a client, because its broker refuses the login: %s", error
            )
            raise Disconnected("the broker refused the login") from error
