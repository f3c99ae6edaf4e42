"""Reads from the configuration how callers authenticate at the listeners of a node, and how the
node authenticates at other brokers.

Nodes of this program prove themselves to each other at every listener, without configuration. If
SASL is configured between brokers it follows, so that a password is sent only to a proved node. A
broker whose registration says that it is not a node of this program gets SASL alone, as from
another Kafka broker.

Rule: what a node needs to log in and does not have ends the start with a sentence that has no
secret. Only a token may be missing, because tokens come and go while nodes run.
"""

import logging
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import msgspec

from ..cluster.entities import Broker, Endpoint
from ..cluster.errors import ConfigurationError
from ..process.settings.listeners import ConfiguredListener
from ..process.settings.node_config import NodeConfig
from .caller import Listener, TlsOfListener
from .credentials import Credentials, PlainCredentials, ScramCredentials
from .mechanism_keys import OAUTHBEARER, is_of_nodes, key_of_mechanism
from .mechanisms import PLAIN, LoginSources, listener_mechanism, listener_mechanisms
from .node_proof import Membership
from .scram_credentials import HASHES, FindUser

log = logging.getLogger("minicontroller.security")

MISSING_USER = (
    "this node logs in to other nodes as user '{user}' by {mechanism}, and the cluster has no such credential: make it "
    "with kafka-configs.sh --zookeeper HOST:PORT/CHROOT --alter --entity-type users --entity-name {user} "
    "--add-config '{mechanism}=[password=...]', or with minicontroller users set {user} at the active controller's listener for clients"
)
KNOWN_BY = {PLAIN: ", and user_<that name> with the same password"}


class NodeLogins:
    """The credentials of this node at other brokers."""

    def __init__(self, membership: Membership, listeners: Sequence[Listener]) -> None:
        """`listeners` are this node's own: as they are, it expects those of other nodes to be."""
        self._tls = {each.name: each.tls for each in listeners if each.tls is not None}
        self._membership = membership
        self._users = {each.name: each.node_user for each in listeners}

    def warn_of_missing_users(self, find_user: FindUser) -> None:
        """Log an error for each SCRAM user of this node that has no credential: it cannot reach
        other nodes until somebody makes one.
        """
        for user in {user for user in self._users.values() if isinstance(user, ScramCredentials)}:
            if find_user(user.username, user.mechanism) is None:
                log.error(MISSING_USER.format(user=user.username, mechanism=user.mechanism))

    def at(self, broker: Broker, endpoint: Endpoint) -> Sequence[Credentials]:
        """Return the credentials for a broker that must prove first that it is a node of this
        cluster, whatever its registration says.
        """
        proof = self._membership.credentials(broker.broker_id, endpoint.address)
        user = self._users.get(endpoint.listener)
        return (proof,) if user is None else (proof, user)

    def tls_at(self, endpoint: Endpoint) -> ssl.SSLContext | None:
        """Return the context of TLS for a new connection, or None without TLS."""
        tls = self._tls.get(endpoint.listener)
        return None if tls is None else tls.client_context()

    def at_any(self, broker: Broker, endpoint: Endpoint) -> Sequence[Credentials]:
        """Return the credentials for a broker. It must prove first that it is a node of this
        cluster, unless its registration says that it cannot.
        """
        logins = self.at(broker, endpoint)
        return logins if broker.proves_itself else logins[1:]


def server_listeners(config: NodeConfig, sources: LoginSources) -> list[Listener]:
    """Return the listeners that the configuration names, whose mechanisms look up `sources`. Raises
    ConfigurationError for what this version does not support.
    """
    return [server_listener(config, listener, sources) for listener in config.listeners]


def checks_of_listeners(config: NodeConfig) -> Iterator[Callable[[], object]]:
    """Yield what is done to make the listeners, piece by piece; each raises ConfigurationError for
    its own mistakes.
    """
    sources = LoginSources()
    for listener in config.listeners:
        if listener.needs_sasl:
            for name in config.strings(config.of_listener(listener.name, "sasl.enabled.mechanisms")):
                yield partial(listener_mechanism, config, listener.name, name, sources)
            yield partial(node_user, config, listener, sources)
        if listener.needs_tls:
            yield partial(_tls, config, listener, between_nodes=_is_inter_broker(config, listener))


def with_proof(listeners: Iterable[Listener], membership: Membership) -> list[Listener]:
    """Return the listeners with the proof between nodes added to each."""
    return [msgspec.structs.replace(listener, node_proof=membership.exchange) for listener in listeners]


def server_listener(config: NodeConfig, listener: ConfiguredListener, sources: LoginSources) -> Listener:
    """Return one listener, whose mechanisms look up `sources`. Raises ConfigurationError."""
    mechanisms = listener_mechanisms(config, listener.name, sources) if listener.needs_sasl else {}
    inter_broker = _is_inter_broker(config, listener)
    return Listener(
        name=listener.name,
        host=listener.host,
        port=listener.port,
        inter_broker=inter_broker,
        sasl=listener.needs_sasl,
        mechanisms=mechanisms,
        node_user=node_user(config, listener, sources),
        tls=_tls(config, listener, between_nodes=inter_broker) if listener.needs_tls else None,
        reauthenticate_ms={
            name: config.integer(config.of_listener(listener.name, "connections.max.reauth.ms", name))
            for name in mechanisms
        },
    )


def _is_inter_broker(config: NodeConfig, listener: ConfiguredListener) -> bool:
    return listener.name in {config.inter_broker_listener.name, config.control_plane_listener.name}


def _tls(config: NodeConfig, listener: ConfiguredListener, *, between_nodes: bool) -> TlsOfListener:
    from .listener_tls import ListenerTls  # which loads a library that nodes without TLS do not need

    return ListenerTls(config, listener, between_nodes=between_nodes)


def node_user(config: NodeConfig, listener: ConfiguredListener, sources: LoginSources) -> Credentials | None:
    """Return the credentials of this node's user at a listener, or None if nodes do not log in
    there; `sources` gets the task that keeps a token new. Raises ConfigurationError.
    """
    mechanism = config.string("sasl.mechanism.inter.broker.protocol")
    if not listener.needs_sasl or not is_of_nodes(config, listener.name, mechanism):
        return None
    if mechanism == OAUTHBEARER:
        from .token_login import token_user  # its library takes long to import

        return token_user(config, listener.name, sources)
    if mechanism != PLAIN and mechanism not in HASHES:
        raise ConfigurationError(
            f"sasl.mechanism.inter.broker.protocol: nodes log in to each other by {PLAIN}, {', '.join(HASHES)} or {OAUTHBEARER}, "
            f"and not by {mechanism}."
        )
    return _user_with_password(config, listener.name, mechanism)


def _user_with_password(config: NodeConfig, listener: str, mechanism: str) -> Credentials:
    key = key_of_mechanism(config, listener, "sasl.jaas.config", mechanism)
    jaas = config.jaas(listener, mechanism)
    if jaas is None or jaas.username is None or jaas.password is None:
        raise ConfigurationError(
            f"{key} needs a username and a password{KNOWN_BY.get(mechanism, '')}: "
            f"nodes authenticate to each other at the listener {listener} by {mechanism}."
        )
    if jaas.options.get("tokenauth"):
        raise ConfigurationError(f"{key}: a node logs in as a user, and not by a delegation token.")
    if mechanism == PLAIN:
        return PlainCredentials(jaas.username, jaas.password)
    return ScramCredentials(jaas.username, jaas.password, mechanism)
