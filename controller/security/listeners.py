"""From a node's configuration to what its listeners ask of those who connect, and to who the node is among its peers."""

from collections.abc import Mapping
from functools import partial

from ..config.listeners import Listener as ConfiguredListener
from ..config.node_config import NodeConfig
from ..errors import ConfigurationError
from .caller import Listener
from .credentials import PlainCredentials
from .sasl import Mechanism, PlainExchange

PLAIN = "PLAIN"


def server_listeners(config: NodeConfig) -> list[Listener]:
    """Raises ConfigurationError for what this node cannot do."""
    return [_server_listener(config, listener) for listener in config.listeners]


def _server_listener(config: NodeConfig, listener: ConfiguredListener) -> Listener:
    if listener.needs_tls:
        raise ConfigurationError(
            f"listeners: {listener.name} has the security protocol {listener.security_protocol}, "
            "and this version serves PLAINTEXT and SASL_PLAINTEXT only."
        )
    inter_broker = listener.name == config.inter_broker_listener.name
    credentials = peer_credentials(config) if inter_broker and listener.needs_sasl else None
    return Listener(
        name=listener.name,
        host=listener.host,
        port=listener.port,
        inter_broker=inter_broker,
        sasl=listener.needs_sasl,
        mechanisms=_mechanisms(config, listener) if listener.needs_sasl else {},
        peer_user=None if credentials is None else credentials.username,
        max_connections=_max_connections(config, listener.name),
        reauthenticate_ms=config.integer("connections.max.reauth.ms"),
    )


def _max_connections(config: NodeConfig, listener: str) -> int | None:
    name = f"listener.name.{listener.lower()}.max.connections"
    return config.integer(name) if name in config.static else None


def _mechanisms(config: NodeConfig, listener: ConfiguredListener) -> Mapping[str, Mechanism]:
    mechanisms: dict[str, Mechanism] = {}
    for name in config.strings(config.of_listener(listener.name, "sasl.enabled.mechanisms")):
        if name != PLAIN:
            raise ConfigurationError(
                f"sasl.enabled.mechanisms: {name} is not offered by this version, which knows {PLAIN}."
            )
        jaas = config.jaas(listener.name, name)
        if jaas is None:
            raise ConfigurationError(
                f"listener.name.{listener.name.lower()}.plain.sasl.jaas.config is missing: "
                f"the listener {listener.name} authenticates by {PLAIN} and has nobody to let in."
            )
        mechanisms[name] = partial(PlainExchange, jaas.users)
    return mechanisms


def peer_credentials(config: NodeConfig) -> PlainCredentials | None:
    """Who this node is at the listener where nodes meet; None if nobody authenticates there."""
    listener = config.inter_broker_listener
    if not listener.needs_sasl:
        return None
    mechanism = config.string("sasl.mechanism.inter.broker.protocol")
    jaas = config.jaas(listener.name, mechanism)
    if mechanism != PLAIN or jaas is None or jaas.username is None or jaas.password is None:
        raise ConfigurationError(
            f"The nodes authenticate to each other at the listener {listener.name}: it needs "
            f"sasl.mechanism.inter.broker.protocol={PLAIN} and, in listener.name.{listener.name.lower()}.plain.sasl.jaas.config, "
            "a username, a password, and user_<that name> with the same password."
        )
    return PlainCredentials(jaas.username, jaas.password)
