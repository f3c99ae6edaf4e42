"""Computes the endpoints of a node: its registration, and its bootstrap address.

Rule: a registration that other nodes cannot read is refused before it is written.
"""

import socket
from collections.abc import Mapping

from ...cluster.entities import Broker, Endpoint
from ...cluster.errors import ConfigurationError
from ...cluster.znodes import registrations
from ...cluster.znodes.content import MalformedZnodeError
from ...process.settings.node_config import NodeConfig


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
