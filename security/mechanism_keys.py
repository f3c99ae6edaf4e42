"""The names by which the configuration speaks of one SASL mechanism at one listener."""

from collections.abc import Awaitable, Callable

from ..process.settings.environment import JAAS_FILE
from ..process.settings.node_config import JAAS_KEY, NodeConfig

OAUTHBEARER = "OAUTHBEARER"
HANDLER_KEY = "sasl.server.callback.handler.class"
Task = Callable[[], Awaitable[None]]
"""Follows a source of keys until it is cancelled."""


def key_of_mechanism(config: NodeConfig, listener: str, key: str, mechanism: str) -> str:
    """Return the name under which a key is set for a mechanism, or that under which it can be."""
    section = config.jaas_section(listener, mechanism) if key == JAAS_KEY else None
    if section is not None:
        return f"{JAAS_FILE}, section {section},"
    name = config.of_listener(listener, key, mechanism)
    return f"listener.name.{listener.lower()}.{mechanism.lower()}.{key}" if name == key else name


def is_of_nodes(config: NodeConfig, listener: str, mechanism: str) -> bool:
    return (
        listener in {config.inter_broker_listener.name, config.control_plane_listener.name}
        and config.string("sasl.mechanism.inter.broker.protocol") == mechanism
    )
