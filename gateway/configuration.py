"""The configuration of a gateway: options of the command, and keys in Kafka's names.

Keys that begin with `upstream.` are those of a client of the cluster, as `client/keys.py` lists
them: the gateway asks the cluster with them, and its connections to brokers have their TLS. The
keys of the listeners are those of a node.

Rule: a mistake is a sentence that names the file, the line and the key, and never the value.
"""

import difflib
from collections.abc import Mapping, Sequence

import msgspec

from ..client.configuration import Address, ClientConfig, configure, parse_addresses
from ..controller.config.keys import KEYS
from ..controller.config.loading import config_from_mapping
from ..controller.config.node_config import NodeConfig
from ..controller.errors import ConfigurationError
from ..text.properties import PropertiesError, Property, parse_properties

UPSTREAM = "upstream."
ADVERTISED_HOST = "advertised.host"
SECURITY_PROTOCOL = "security.protocol"
PROTOCOLS = ("PLAINTEXT", "SSL")
"""A login passes on to the broker, so that the listeners decide on nothing but TLS."""
NODE_KEYS = frozenset(
    {
        "connections.max.idle.ms",
        "log.format",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        *(key for key in KEYS if key.startswith("ssl.")),
    }
)
"""The keys of a node that a gateway follows, too."""
GATEWAY_KEYS = frozenset({ADVERTISED_HOST, SECURITY_PROTOCOL})
BOOTSTRAP_SERVERS = "bootstrap.servers"
EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - addresses to recognise, not to bind


class GatewayConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Where the gateway listens, and which cluster it stands for."""

    upstream: ClientConfig
    node: NodeConfig
    """The configuration of a node whose listener CLIENTS is like those of the gateway."""
    listen: Address
    """The address where clients begin. The listeners of the brokers take the ports after it, or
    free ones if its port is 0.
    """
    advertised_host: str
    """The host that clients are given."""


def load_gateway_config(
    text: str, file: str, settings: Sequence[str], *, upstream: str, listen: Address
) -> GatewayConfig:
    """Read a properties file, whose text may be empty; `settings` (KEY=VALUE) override it, and
    `upstream` is the list of brokers to begin with. Raises ConfigurationError.
    """
    try:
        entries = dict(parse_properties(text, file).entries)
    except PropertiesError as error:
        raise ConfigurationError(str(error)) from None
    for setting in settings:
        key, _, value = setting.partition("=")
        entries[key.strip()] = Property(key.strip(), value.strip(), 0)
    for key, entry in entries.items():
        _check_key(key, f"{file}, line {entry.line}" if entry.line else f"--set {key}")
    parse_addresses(upstream)  # so that a mistake is not told of a key that was not written
    return GatewayConfig(
        upstream=_upstream(entries, upstream),
        node=_node(entries),
        listen=listen,
        advertised_host=_advertised_host(entries, listen.host),
    )


def _check_key(key: str, place: str) -> None:
    if key.startswith(UPSTREAM):
        if key == UPSTREAM + BOOTSTRAP_SERVERS:
            raise ConfigurationError(f"{place}: the brokers to begin with are the option --upstream.")
        return
    known = GATEWAY_KEYS | NODE_KEYS
    if key not in known:
        near = difflib.get_close_matches(key, known, 1)
        hint = f" Do you mean {near[0]}?" if near else ""
        raise ConfigurationError(f"{place}: {key} is no key of a gateway.{hint}")


def _upstream(entries: Mapping[str, Property], servers: str) -> ClientConfig:
    own = {key.removeprefix(UPSTREAM): entry.value for key, entry in entries.items() if key.startswith(UPSTREAM)}
    return configure({**own, BOOTSTRAP_SERVERS: servers})


def _node(entries: Mapping[str, Property]) -> NodeConfig:
    protocol = entries[SECURITY_PROTOCOL].value.strip().upper() if SECURITY_PROTOCOL in entries else "PLAINTEXT"
    if protocol not in PROTOCOLS:
        hint = " A login passes on to the broker." if protocol.startswith("SASL_") else ""
        raise ConfigurationError(f"{SECURITY_PROTOCOL} must be one of {', '.join(PROTOCOLS)}.{hint}")
    own = {key: entry.value for key, entry in entries.items() if key in NODE_KEYS}
    return config_from_mapping(
        {
            "broker.id": "0",
            "listeners": "CLIENTS://127.0.0.1:0,INTERNAL://127.0.0.1:0",
            "listener.security.protocol.map": f"CLIENTS:{protocol},INTERNAL:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "zookeeper.connect": "memory",
            **own,
        }
    )


def _advertised_host(entries: Mapping[str, Property], listen: str) -> str:
    entry = entries.get(ADVERTISED_HOST)
    if entry is not None and entry.value.strip():
        return entry.value.strip()
    if listen in EVERYWHERE:
        raise ConfigurationError(
            f"{ADVERTISED_HOST} is missing: clients cannot connect to {listen}, so name the host that they are given."
        )
    return listen
