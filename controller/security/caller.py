"""Who is at the other end of a connection: what they have proved, and what they have said of
themselves.

Rule: `principal` and `from_peer` follow from what was proved on this connection, never from what a
request says.
"""

from collections.abc import Mapping

import msgspec
import trio

from .principal import user_principal
from .sasl import Mechanism, SaslSession, SaslState

MAX_SOFTWARE_CHARACTERS = 255
"""Kept with the connection and shown in logs."""
NO_MECHANISMS: Mapping[str, Mechanism] = {}


class Listener(msgspec.Struct, frozen=True, kw_only=True):
    """What one of a node's listeners asks of those who connect to it."""

    name: str
    host: str = ""
    """Where it binds; empty for all interfaces."""
    port: int = 0
    """0 for a free port."""
    inter_broker: bool = False
    """One at which nodes of the cluster meet."""
    node_proof: Mechanism | None = None
    """How nodes of this cluster prove themselves."""
    sasl: bool = False
    mechanisms: Mapping[str, Mechanism] = NO_MECHANISMS
    """Enabled here, by name; ignored without `sasl`."""
    peer_user: str | None = None
    """The user that brokers of this cluster are at this listener. Only where nodes meet, and only
    with `sasl`.
    """
    max_connections: int | None = None
    """`listener.name.<name>.max.connections`."""
    reauthenticate_ms: int = 0
    """`connections.max.reauth.ms`; 0 for never."""


class Caller:
    """Whoever sends the requests of one connection, as far as it has proved its identity."""

    __slots__ = (
        "expires",
        "forwards",
        "from_peer",
        "host",
        "is_ours",
        "is_suspect",
        "listener",
        "port",
        "principal",
        "sasl",
        "software",
    )

    def __init__(self, listener: Listener, host: str, port: int) -> None:
        self.listener = listener
        self.host = host
        self.port = port
        self.principal: str | None = None
        """`User:alice`, or None."""
        self.from_peer = False
        """Whether they are an authenticated node of this cluster: by the proof of nodes, or, where
        SASL is configured between them, as their user.
        """
        self.forwards = False
        """Whether they have asked in the name of others, as only a node of ours does."""
        self.is_ours = False
        """Whether they have proved to be a node of this cluster, whatever user it has."""
        self.is_suspect = False
        """The log has told that they claimed what only nodes may."""
        self.software = ""
        """KIP-511: `name/version`; empty if they did not say."""
        self.sasl = SaslSession(listener.mechanisms) if listener.sasl else None
        """None where the listener authenticates nobody, and they have not said that they are a
        node.
        """
        self.expires = float("inf")
        """trio's time from which on they must have authenticated again (KIP-368)."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port} at {self.listener.name}"

    @property
    def authenticated(self) -> bool:
        return not self.listener.sasl or (self.sasl is not None and self.sasl.username is not None)

    @property
    def must_leave(self) -> bool:
        """Whether authentication has failed, so that the caller is disconnected after a delayed
        answer.
        """
        return self.sasl is not None and self.sasl.state is SaslState.FAILED

    @property
    def may_be_a_node(self) -> bool:
        """Whether the caller is a node, or has not authenticated yet at a listener
        between nodes.
        """
        return self.from_peer or (self.listener.inter_broker and not self.authenticated)

    def says_he_is_a_node(self, proof: Mechanism) -> None:
        """Begin the proof of a caller that says that it is a node, at whichever listener."""
        if self.sasl is None:
            self.sasl = SaslSession(NO_MECHANISMS)
        self.sasl.begin_node_proof(proof)

    def proved_node(self) -> None:
        """Note that the caller is a node of the cluster. Where nodes also have a user, only that
        user makes it a peer, as with Kafka's brokers.
        """
        self.is_ours = True
        if not self.listener.sasl:
            self.from_peer = True
            self.forwards = True  # or will: what it has sent already, and nobody reads any more, is told as not read

    def proved(self, username: str) -> None:
        """Note that the caller has authenticated as this user."""
        self.principal = user_principal(username)
        self.from_peer = self.listener.inter_broker and username == self.listener.peer_user
        self.forwards = self.forwards or (self.from_peer and self.is_ours)
        if self.listener.reauthenticate_ms > 0:
            self.expires = trio.current_time() + self.listener.reauthenticate_ms / 1000
