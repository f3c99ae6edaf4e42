"""Who sends the requests of a connection: what the caller has proved, and what it has said about
itself.

`principal` and `from_peer` follow from what was proved on this connection, never from the contents
of a request.
"""

from collections.abc import Mapping

import msgspec
import trio

from .principal import user_principal
from .sasl import Mechanism, SaslSession, SaslState

MAX_SOFTWARE_CHARACTERS = 255
"""How much of a client's software name is kept and logged."""
NO_MECHANISMS: Mapping[str, Mechanism] = {}


class Listener(msgspec.Struct, frozen=True, kw_only=True):
    """One listener of a node: its address, and how callers authenticate at it."""

    name: str
    host: str = ""
    """The address that it binds; empty for all interfaces."""
    port: int = 0
    """0 for a free port."""
    inter_broker: bool = False
    """Whether nodes of the cluster connect here."""
    node_proof: Mechanism | None = None
    """The mechanism by which nodes of the cluster prove that they belong to it."""
    sasl: bool = False
    mechanisms: Mapping[str, Mechanism] = NO_MECHANISMS
    """The enabled SASL mechanisms by name; ignored without `sasl`."""
    peer_user: str | None = None
    """The user name of the cluster's brokers; only at inter-broker listeners with `sasl`."""
    max_connections: int | None = None
    """`listener.name.<name>.max.connections`."""
    reauthenticate_ms: int = 0
    """`connections.max.reauth.ms`; 0 for never."""


class Caller:
    """The sender of the requests of one connection."""

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
        """Whether it has authenticated as a node of this cluster: by the proof between nodes, or as
        `peer_user` where SASL is configured between brokers.
        """
        self.forwards = False
        """Whether it forwards requests, as only nodes of this program do."""
        self.is_ours = False
        """Whether it has given the proof between nodes, whatever its user."""
        self.is_suspect = False
        """Whether the log has a warning that it pretended to be a node."""
        self.software = ""
        """`name/version` (KIP-511); empty if it did not say."""
        self.sasl = SaslSession(listener.mechanisms) if listener.sasl else None
        """None at a listener without SASL, until the caller begins the proof between nodes."""
        self.expires = float("inf")
        """trio's time by which it must authenticate again (KIP-368)."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port} at {self.listener.name}"

    @property
    def authenticated(self) -> bool:
        return not self.listener.sasl or (self.sasl is not None and self.sasl.username is not None)

    @property
    def must_leave(self) -> bool:
        """Whether authentication has failed, so that the connection ends after the answer."""
        return self.sasl is not None and self.sasl.state is SaslState.FAILED

    @property
    def may_be_a_node(self) -> bool:
        """Whether the caller is a node, or can still authenticate as one at this listener."""
        return self.from_peer or (self.listener.inter_broker and not self.authenticated)

    def begin_node_proof(self, proof: Mechanism) -> None:
        """Begin the proof between nodes, which a caller may ask for at every listener."""
        if self.sasl is None:
            self.sasl = SaslSession(NO_MECHANISMS)
        self.sasl.begin_node_proof(proof)

    def proved_node(self) -> None:
        """Note that the caller has given the proof between nodes. At a listener with SASL it must
        also authenticate as `peer_user`, as Kafka's brokers do.
        """
        self.is_ours = True
        if not self.listener.sasl:
            self.from_peer = True
            self.forwards = True  # so that it learns of requests that were not read when this node stops

    def authenticated_as(self, username: str) -> None:
        """Note that the caller has authenticated as this user."""
        self.principal = user_principal(username)
        self.from_peer = self.listener.inter_broker and username == self.listener.peer_user
        self.forwards = self.forwards or (self.from_peer and self.is_ours)
        if self.listener.reauthenticate_ms > 0:
            self.expires = trio.current_time() + self.listener.reauthenticate_ms / 1000
