"""The gateway as a tree of tasks, from its start to its end."""

import logging
from collections import Counter
from collections.abc import Callable
from functools import partial

import msgspec
import trio

from ..client.network import Network
from ..network.limits import connection_limits
from ..network.server import Server
from ..network.transport import Transport
from ..security.caller import Caller
from ..security.listeners import server_listeners
from .broker import OfferedBroker
from .channel import ClientChannel
from .cluster import UpstreamCluster
from .configuration import GatewayConfig
from .identity.starting import Identity
from .intake import Shared
from .judging.starting import Judging, judging
from .places import FixedPorts, NamedTls, NextPorts, OnePort, Places, Which
from .responses import Responses

log = logging.getLogger("minicontroller.gateway")

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
        self.config = config
        self.server = Server(connection_limits(config.node, room))
        self._identity = Identity(
            config.identity,
            nursery,
            self.server.failures,
            self.server.limits.failed_authentication_delay_seconds,
        )
        listener = server_listeners(config.node, self._identity.sources)[0]
        self._listener = self._identity.logins.at(listener)
        self._places = self._configured_places()
        self._network = Network(nursery, config.upstream)
        self.cluster = UpstreamCluster(self._network, self._places.of_broker)
        self.judging: Judging | None = None
        """What judges requests; None before the gateway serves, and where nothing is judged."""
        self.requests = Counter[int]()
        """How many requests were read, by API key."""
        self._shared = Shared(
            service=self._identity.service,
            responses=Responses(self.cluster, self._identity.service),
            reviewer=lambda: None if self.judging is None else self.judging.reviewer,
            forwarding=self._identity.forwarding,
            failures=self.server.failures,
            memory=self.server.memory,
            counts=self.requests,
        )
        self._stopping = trio.Event()

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until `stop`. Calls `ready` once it serves.

        Raises:
            OSError: an address is taken.
            PolicyLoadError: the rules or the policy have a mistake.
            ConfigurationError: the audit log cannot be written.
        """
        self.bootstrap = await self._places.open()
        async with judging(self.config, self._network) as self.judging, trio.open_nursery() as nursery:
            await self.cluster.begin()
            await nursery.start(self.server.run)
            nursery.start_soon(self.cluster.follow)
            for task in self._identity.tasks:
                nursery.start_soon(task)
            if self._listener.tls is not None:
                nursery.start_soon(self._listener.tls.follow, lambda: self.config.node)
            if self.judging is not None and self.config.observes:
                log.info("the gateway observes: it records what the policy would refuse, and refuses nothing")
            self.is_serving = True
            ready()
            await self._stopping.wait()
            await self.server.shutdown(GRACE_SECONDS)
            nursery.cancel_scope.cancel()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """Accept no more, let the requests that were read be answered, and return from `run`."""
        self._stopping.set()

    def _configured_places(self) -> Places:
        config = self.config
        if config.by_name:
            names = OnePort(self._bind, config.listen, config.begin_host, config.broker_host)
            assert self._listener.tls is not None, "only TLS names brokers"
            self._listener = msgspec.structs.replace(self._listener, tls=NamedTls(self._listener.tls, names.refuses))
            return names
        if config.broker_ports:
            return FixedPorts(self._bind, config.listen, config.begin_host, config.broker_host, config.broker_ports)
        return NextPorts(self._bind, config.listen, config.begin_host, config.broker_host)

    async def _bind(self, name: str, port: int, which: Which) -> int:
        """Open a listener for the clients of a broker, and return its port. Raises
        PortTakenError.
        """
        broker = OfferedBroker(self.cluster, which, self.config.upstream.tls)
        listener = msgspec.structs.replace(self._listener, name=name, host=self.config.listen.host, port=port)
        await self.server.open_for([listener], partial(self._channel, broker))
        return self.server.ports[name]

    def _channel(self, broker: OfferedBroker, transport: Transport, caller: Caller) -> ClientChannel:
        return ClientChannel(transport, caller, broker, self._identity.logins.of(caller), self._shared)
