"""Computes the endpoints of a node: its registration, its connection limits, and its bootstrap
address.

Rule: a registration that other nodes cannot read is refused before it is written.
"""

import socket
from collections.abc import Mapping

from ..config.node_config import NodeConfig
from ..errors import ConfigurationError
from ..metadata.entities import Broker, Endpoint
from ..network.descriptors import MOST_CONNECTIONS
from ..network.limits import UNLIMITED, ConnectionLimits
from ..network.memory import DEFAULT_BYTES
from ..znodes import registrations
from ..znodes.content import MalformedZnodeError


def connection_limits(config: NodeConfig, room: int) -> ConnectionLimits:
    """Return the configured connection limits, lowered to the `room` of file descriptors."""
    wanted = config.integer("max.connections")
    idle_ms = config.integer("connections.max.idle.ms")
    return ConnectionLimits(
        max_request_bytes=config.integer("socket.request.max.bytes"),
        max_unauthenticated_bytes=config.integer("sasl.server.max.receive.size"),
        max_unfinished_bytes=_unfinished_bytes(config),
        max_connections=min(room, MOST_CONNECTIONS if wanted == UNLIMITED else wanted),
        max_connections_per_ip=config.integer("max.connections.per.ip"),
        per_ip_overrides=config.max_connections_per_ip_overrides,
        of_listeners=_of_listeners(config),
        max_idle_seconds=float("inf") if idle_ms < 0 else idle_ms / 1000,
        failed_authentication_delay_seconds=config.integer("connection.failed.authentication.delay.ms") / 1000,
    )


def _of_listeners(config: NodeConfig) -> dict[str, int]:
    """Return the most connections of each listener that has a limit of its own."""
    names = {listener.name: f"listener.name.{listener.name.lower()}.max.connections" for listener in config.listeners}
    return {name: limit for name, key in names.items() if (limit := config.optional_integer(key)) is not None}


def _unfinished_bytes(config: NodeConfig) -> int:
    """Return the most bytes of unfinished requests, which allows at least one request."""
    wanted = config.integer("queued.max.request.bytes")
    return max(wanted if wanted > 0 else DEFAULT_BYTES, config.integer("socket.request.max.bytes"))


def advertised_endpoints(config: NodeConfig, ports: Mapping[str, int]) -> tuple[Endpoint, ...]:
    """Return the endpoints to register of the listeners with a bound port, which replaces a port
    0.
    """
    return tuple(
        Endpoint(
            listener=listener.name,
            host=listener.advertised_host or socket.getfqdn(),
            port=listener.advertised_port or ports[listener.name],
            security_protocol=listener.security_protocol,
        )
        for listener in config.listeners
        if listener.advertised_host is not None and listener.name in ports
    )


def registration(config: NodeConfig, ports: Mapping[str, int]) -> Broker:
    """Return the registration of a node that listens on these ports. Raises ConfigurationError if
    other nodes could not read it.
    """
    return registrable(
        Broker(
            broker_id=config.integer("broker.id"),
            endpoints=advertised_endpoints(config, ports),
            rack=config.optional_string("broker.rack"),
            proves_itself=True,
        )
    )


def registrable(broker: Broker) -> Broker:
    """Return `broker`. Raises ConfigurationError if other nodes could not read its registration."""
    try:
        registrations.decode_broker(broker.broker_id, registrations.encode_broker(broker, 0), 0)
    except MalformedZnodeError as error:
        raise ConfigurationError(
            f"broker.rack and advertised.listeners make this node's registration unreadable to other nodes: {error}."
        ) from error
    return broker


def bootstrap_of(config: NodeConfig, broker: Broker) -> str:
    """Return the host:port of the first listener for clients, or of the inter-broker listener if it
    is the only one.
    """
    nodes = config.inter_broker_listener.name
    endpoint = next((each for each in broker.endpoints if each.listener != nodes), broker.endpoints[0])
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{host}:{endpoint.port}"
