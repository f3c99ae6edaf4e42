"""From the controller to the nodes, and from a node to the controller: the connections that carry no client's request."""

from typing import TYPE_CHECKING

import trio

from ..protocol.api_keys import ApiKey
from ..protocol.messages.leader_and_isr import LeaderAndIsrRequest
from ..protocol.messages.stop_replica import StopReplicaRequest
from ..protocol.messages.update_metadata import UpdateMetadataRequest
from ..protocol.schema import WireStruct
from .cluster.control_requests import VERSIONS, ControlRequest
from .cluster.image import Broker, Endpoint
from .cluster.propagation import ControlLink, Unreachable
from .peer import PeerConnection, PeerUnavailable
from .security.listeners import peer_credentials

if TYPE_CHECKING:
    from .node import Node

KEYS: dict[type[ControlRequest], ApiKey] = {
    LeaderAndIsrRequest: ApiKey.LEADER_AND_ISR,
    UpdateMetadataRequest: ApiKey.UPDATE_METADATA,
    StopReplicaRequest: ApiKey.STOP_REPLICA,
}


class PeerLink:
    """One broker's control connection. A broker that does not listen where nodes meet is never reached."""

    def __init__(self, peer: PeerConnection | None) -> None:
        self._peer = peer

    async def request(self, message: ControlRequest) -> object:
        if self._peer is None:
            raise Unreachable("it has no endpoint for nodes")
        try:
            return await self._peer.request(KEYS[type(message)], VERSIONS[type(message)], message)
        except PeerUnavailable as error:
            raise Unreachable(str(error)) from error

    async def aclose(self) -> None:
        if self._peer is not None:
            self._peer.close()
        await trio.lowlevel.checkpoint()


class ControlLinks:
    """Makes connections between this node and the others."""

    def __init__(self, nursery: trio.Nursery, node: "Node") -> None:
        self._nursery = nursery
        self._node = node
        self._listener = node.config.control_plane_listener.name
        self._credentials = peer_credentials(node.config)
        self._controller: tuple[Endpoint, PeerConnection] | None = None

    def link(self, broker: Broker) -> ControlLink:
        """To one broker, for the controller."""
        endpoint = broker.endpoint(self._listener) or broker.endpoint(self._node.config.inter_broker_listener.name)
        return PeerLink(None if endpoint is None else self._connection(endpoint))

    async def ask_controller(self, key: ApiKey, version: int, message: WireStruct) -> WireStruct:
        """To the controller that this node knows of. Raises PeerUnavailable."""
        image = self._node.cache.image
        broker = image.brokers.get(image.controller_id)
        endpoint = None if broker is None else broker.endpoint(self._node.config.inter_broker_listener.name)
        if endpoint is None:
            raise PeerUnavailable("no controller is known", in_doubt=False)
        if self._controller is None or self._controller[0] != endpoint:
            if self._controller is not None:
                self._controller[1].close()
            self._controller = endpoint, self._connection(endpoint)
        return await self._controller[1].request(key, version, message)

    def _connection(self, endpoint: Endpoint) -> PeerConnection:
        return PeerConnection(
            self._nursery,
            endpoint.host,
            endpoint.port,
            client_id=str(self._node.broker_id),
            credentials=self._credentials,
        )
