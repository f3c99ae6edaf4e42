"""Connections from the active controller to the nodes, and from a node to the active controller,
for requests of the nodes themselves.
"""

import logging
from collections.abc import Sequence
from functools import partial

import trio

from ...cluster.cache import MetadataCache
from ...cluster.entities import Broker, Endpoint
from ...network.peer import PeerConnection, PeerUnavailable
from ...process.settings.node_config import NodeConfig
from ...protocol.api_keys import ApiKey
from ...protocol.schema import WireStruct, layout_of
from ...security.credentials import Credentials
from ...security.listeners import NodeLogins
from .channel import ControlLink, Unreachable
from .control_requests import ControlRequest, ControlVersions

log = logging.getLogger("minicontroller.controller")


def key_of(message: ControlRequest) -> ApiKey:
    return ApiKey(layout_of(type(message)).api_key)


class PeerControlLink:
    """The controller's connection to one broker. Without an endpoint, the broker is unreachable."""

    def __init__(self, peer: PeerConnection | None) -> None:
        self.versions = ControlVersions()
        self._peer = peer

    async def request(self, message: ControlRequest) -> object:
        if self._peer is None:
            raise Unreachable("it has no endpoint for nodes")
        try:
            return await self._peer.request(key_of(message), self.versions.of(message), message)
        except PeerUnavailable as error:
            raise Unreachable(str(error)) from error

    async def aclose(self) -> None:
        if self._peer is not None:
            self._peer.close()
        await trio.lowlevel.checkpoint()


class ControlLinks:
    """Connects this node with the other nodes of the cluster."""

    def __init__(self, nursery: trio.Nursery, config: NodeConfig, cache: MetadataCache, logins: NodeLogins) -> None:
        self._nursery = nursery
        self._client_id = str(config.integer("broker.id"))
        self._cache = cache
        self._control_plane = config.control_plane_listener.name
        self._inter_broker = config.inter_broker_listener.name
        self._logins = logins
        self._controller: tuple[int, Endpoint, PeerConnection] | None = None

    def link(self, broker: Broker) -> ControlLink:
        if not broker.proves_itself:
            log.warning(
                "broker %d does not give the proof between nodes: it is a Kafka broker, or of an older version. It gets all updates; its own "
                "requests are carried out only if it logs in as the nodes' user or has an ACL for ClusterAction",
                broker.broker_id,
            )
        endpoint = broker.endpoint(self._control_plane) or broker.endpoint(self._inter_broker)
        if endpoint is None:
            log.warning(
                "broker %d has no listener %s, at which the nodes of this cluster talk to each other, so it gets no updates: "
                "inter.broker.listener.name must be the same on all brokers",
                broker.broker_id,
                self._inter_broker,
            )
            return PeerControlLink(None)
        return PeerControlLink(self._connection(endpoint, self._logins.at_any(broker, endpoint)))

    async def ask_controller(self, key: ApiKey, version: int, message: WireStruct) -> WireStruct:
        """Send a request to the controller that this node follows. Raises PeerUnavailable."""
        image = self._cache.image
        broker = image.brokers.get(image.controller_id)
        endpoint = None if broker is None else broker.endpoint(self._inter_broker)
        if broker is None or endpoint is None:
            raise PeerUnavailable("no controller is known", in_doubt=False)
        if self._controller is None or self._controller[:2] != (broker.broker_id, endpoint):
            if self._controller is not None:
                self._controller[2].close()
            peer = self._connection(endpoint, self._logins.at(broker, endpoint))
            self._controller = broker.broker_id, endpoint, peer
        return await self._controller[2].request(key, version, message)

    def _connection(self, endpoint: Endpoint, logins: Sequence[Credentials]) -> PeerConnection:
        return PeerConnection(
            self._nursery,
            endpoint.host,
            endpoint.port,
            client_id=self._client_id,
            logins=logins,
            tls=partial(self._logins.tls_at, endpoint),
        )
