"""The gateway as a tree of tasks, from its start to its end."""

import logging
from collections.abc import Callable
from functools import partial

import msgspec
import trio

from ..client.configuration import Address
from ..client.network import Network
from ..controller.errors import ConfigurationError
from ..controller.network.server import PortTakenError, Server
from ..controller.network.transport import Transport
from ..controller.node.endpoints import connection_limits
from ..controller.security.caller import Caller
from ..controller.security.listeners import server_listeners
from ..controller.security.mechanisms import LoginSources
from ..policies.configs.values import MAX_PORT
from .broker import OfferedBroker
from .channel import Channel
from .cluster import UpstreamCluster
from .configuration import GatewayConfig

log = logging.getLogger("minicontroller.gateway")

MAX_FRAME_BYTES = 2**31 - 1
"""A frame is not kept in memory, so that only the broker decides how large one may be."""
GRACE_SECONDS = 5.0
"""How long clients are waited for when the gateway stops."""


class Gateway:
    """A gateway in front of one cluster."""

    def __init__(self, config: GatewayConfig, nursery: trio.Nursery, *, room: int) -> None:
        """Prepare a gateway, whose own connections to the cluster are tasks of the nursery. `room`
        is the number of clients for which there are file descriptors. Raises ConfigurationError if
        TLS cannot be spoken as it is configured.
        """
        self.bootstrap = config.listen
        """Where clients begin: what they are told, once the gateway serves."""
        self.is_serving = False
        self._config = config
        self._server = Server(connection_limits(config.node, room))
        self._listener = server_listeners(config.node, LoginSources())[0]
        self._cluster = UpstreamCluster(Network(nursery, config.upstream), self._open_listener)
        self._next_port = config.listen.port
        self._stopping = trio.Event()

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until `stop`. Calls `ready` once it serves. Raises OSError if an address is
        taken.
        """
        self.bootstrap = await self._open(None, "bootstrap")
        await self._cluster.begin()
        async with trio.open_nursery() as nursery:
            await nursery.start(self._server.run)
            nursery.start_soon(self._cluster.follow)
            if self._listener.tls is not None:
                nursery.start_soon(self._listener.tls.follow, lambda: self._config.node)
            self.is_serving = True
            ready()
            await self._stopping.wait()
            await self._server.shutdown(GRACE_SECONDS)
            nursery.cancel_scope.cancel()

    def stop(self) -> None:
        """Accept no more, let the requests that were read be answered, and return from `run`."""
        self._stopping.set()

    async def _open_listener(self, broker_id: int) -> Address:
        return await self._open(broker_id, f"broker-{broker_id}")

    async def _open(self, broker_id: int | None, name: str) -> Address:
        """Open a listener at the next port that is free, and return the address that clients are
        given. Raises PortTakenError if clients should begin at a port that is not free.
        """
        broker = OfferedBroker(self._cluster, broker_id, tls=self._config.upstream.tls)
        while True:
            port = self._take_port(name)
            listener = msgspec.structs.replace(self._listener, name=name, host=self._config.listen.host, port=port)
            try:
                await self._server.open_for([listener], partial(self._channel, broker))
            except PortTakenError as error:
                if broker_id is None:
                    raise
                log.warning("%s The next port is tried.", error)
            else:
                return Address(self._config.advertised_host, self._server.ports[name])

    def _take_port(self, name: str) -> int:
        """Return the next port, or 0 for any. Raises ConfigurationError if there is none."""
        port = self._next_port
        if port > MAX_PORT:
            raise ConfigurationError(f"No port is left for the listener {name}: name a lower one by --listen.")
        if port:
            self._next_port += 1
        return port

    def _channel(self, broker: OfferedBroker, transport: Transport, caller: Caller) -> Channel:
        return Channel(transport, caller, broker, max_bytes=MAX_FRAME_BYTES, failures=self._server.failures)
