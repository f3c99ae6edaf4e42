"""Who sends the requests of a connection: what the caller has proved, and what it has said about
itself.

`principal` and `from_peer` follow from what was proved on this connection, never from the contents
of a request.
"""

import math
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec
import trio

from ..clock import now_ms
from ..process.observe.logs import log_fields
from ..process.settings.node_config import NodeConfig
from ..protocol.header import REQUEST_START, client_id_of
from ..protocol.registry import KAFKA
from .credentials import Credentials
from .mechanism_keys import OAUTHBEARER
from .principal import user_principal
from .sasl import Mechanism, Proved, SaslSession, SaslState

MAX_SOFTWARE_CHARACTERS = 255
"""How much of a client's software name is kept and logged."""
NO_MECHANISMS: Mapping[str, Mechanism] = {}
NEVER: Mapping[str, int] = {}
LEAST_SECONDS_BETWEEN_AUTHENTICATIONS = 1.0
"""How long after the beginning of a re-authentication the next one may begin, as in Kafka."""


class TlsOfListener(Protocol):
    name: str

    def server_context(self) -> ssl.SSLContext: ...

    def client_context(self) -> ssl.SSLContext:
        """Return the context for connections to such listeners of other nodes."""

    def check(self, config: NodeConfig) -> None:
        """Raise ConfigurationError if the listener could not follow this configuration. Blocks."""

    def seconds_left(self) -> float:
        """Return for how many seconds the certificate of the listener is valid; negative if it has
        expired.
        """

    async def follow(self, current: Callable[[], NodeConfig]) -> None:
        """Follow the stores of the listener, and which those are, until cancelled."""

    def principal_of(self, certificate: bytes) -> str:
        """Return the principal of a client that shows this certificate, in DER. Raises ValueError
        if it names nobody.
        """


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
    node_user: Credentials | None = None
    """The user as which nodes log in to each other here; only at inter-broker listeners with
    `sasl`.
    """
    tls: TlsOfListener | None = None
    """The TLS of a listener with the security protocol SSL or SASL_SSL."""
    reauthenticate_ms: Mapping[str, int] = NEVER
    """`connections.max.reauth.ms` by mechanism; 0 for never."""


class Caller:
    """The sender of the requests of one connection."""

    __slots__ = (
        "by_token",
        "expires",
        "forwards",
        "from_peer",
        "has_valid_token",
        "host",
        "is_ours",
        "is_suspect",
        "listener",
        "may_authenticate_again_at",
        "port",
        "principal",
        "sasl",
        "software",
        "throttled_until",
    )

    def __init__(self, listener: Listener, host: str, port: int) -> None:
        self.listener = listener
        self.host = host
        self.port = port
        self.principal: str | None = None
        """`User:alice`, or None."""
        self.by_token = False
        """Whether the principal was authenticated by a delegation token."""
        self.has_valid_token: Callable[[], bool] | None = None
        """Returns whether this token is still valid; None for a caller without one."""
        self.from_peer = False
        """Whether it has authenticated as a node of this cluster: by the proof between nodes, or as
        `node_user` where SASL is configured between brokers.
        """
        self.forwards = False
        """Whether it forwards requests, as only nodes of this program do."""
        self.is_ours = False
        """Whether it has given the proof between nodes, whatever its user."""
        self.is_suspect = False
        """Whether the log has a warning that it pretended to be a node."""
        self.software = ""
        """`name/version` (KIP-511); empty if it did not say."""
        self.throttled_until = 0.0
        """trio's time until which none of its further requests is taken."""
        self.sasl = SaslSession(listener.mechanisms) if listener.sasl else None
        """None at a listener without SASL, until the caller begins the proof between nodes."""
        self.expires = math.inf
        """trio's time by which it must authenticate again (KIP-368)."""
        self.may_authenticate_again_at = math.inf
        """trio's time from which on a re-authentication may begin: at once where the session has an
        end, and never where it has none.
        """

    def __str__(self) -> str:
        return f"{self.host}:{self.port} at {self.listener.name}"

    @property
    def authenticated(self) -> bool:
        return not self.listener.sasl or (self.sasl is not None and self.sasl.username is not None)

    @property
    def has_to_choose_a_mechanism(self) -> bool:
        """Whether SaslHandshake has to come before SaslAuthenticate."""
        return self.listener.sasl and self.sasl is not None and self.sasl.state is SaslState.START

    @property
    def rests_on_proof(self) -> bool:
        """Whether the caller is a node by the proof between nodes alone, and not also as the user
        of the nodes.
        """
        user = self.listener.node_user
        return self.from_peer and (user is None or self.sasl is None or self.sasl.username != user.username)

    @property
    def is_amid_authentication(self) -> bool:
        """Whether an authentication at a listener with SASL has begun and is not over."""
        return self.listener.sasl and self.sasl is not None and self.sasl.state is SaslState.EXCHANGE

    @property
    def must_leave(self) -> bool:
        """Whether authentication has failed, so that the connection ends after the answer."""
        return self.sasl is not None and self.sasl.state is SaslState.FAILED

    @property
    def may_be_a_node(self) -> bool:
        """Whether the caller is a node, or can still authenticate as one at this listener."""
        return self.from_peer or (self.listener.inter_broker and not self.authenticated)

    def begin_node_proof(self, mechanism: str, proof: Mechanism) -> None:
        """Begin the proof between nodes, which a caller may ask for at every listener."""
        if self.sasl is None:
            self.sasl = SaslSession(NO_MECHANISMS)
        self.sasl.begin_node_proof(mechanism, proof)

    def showed_certificate(self, certificate: bytes) -> None:
        """Note the certificate, in DER, with which the caller has opened the connection. With SASL
        its user is who it is. Raises ValueError for a certificate that names nobody.
        """
        if self.listener.tls is not None and not self.listener.sasl:
            self.principal = self.listener.tls.principal_of(certificate)

    def proved_node(self) -> None:
        """Note that the caller has given the proof between nodes. At a listener with SASL it must
        also authenticate as `node_user`, as Kafka's brokers do.
        """
        self.is_ours = True
        if not self.listener.sasl:
            self.from_peer = True
            self.forwards = True  # so that it learns of requests that were not read when this node stops

    def authenticated_as(self, proved: Proved) -> int:
        """Note that the caller has authenticated, and return the lifetime of its session in
        milliseconds: until `connections.max.reauth.ms` or the end of its credential, whichever
        comes first, or 0 if there is neither.
        """
        username = proved.username
        self.principal, self.by_token = user_principal(username), proved.by_token
        self.has_valid_token = proved.is_valid
        self.from_peer = self.listener.inter_broker and not proved.by_token and self._is_user_of_nodes(username)
        self.forwards = self.forwards or (self.from_peer and self.is_ours)
        ends = [self._reauthenticate_ms()] if self._reauthenticate_ms() > 0 else []
        if proved.expires_ms is not None:
            ends.append(max(0, proved.expires_ms - now_ms()))
        if not ends:
            self.expires = math.inf
            return 0
        now = trio.current_time()
        self.expires = now + min(ends) / 1000
        if math.isinf(self.may_authenticate_again_at):
            self.may_authenticate_again_at = now
        return min(ends)

    def _is_user_of_nodes(self, username: str) -> bool:
        """Return whether the nodes log in as this user. With OAUTHBEARER each node may have a
        subject of its own; the proof between nodes says then which callers are nodes.
        """
        user = self.listener.node_user
        if user is None or self.sasl is None or not username:
            return False
        logs_in_by_token = user.mechanism == OAUTHBEARER == self.sasl.mechanism
        return username == user.username or (self.is_ours and logs_in_by_token)

    def _reauthenticate_ms(self) -> int:
        mechanism = None if self.sasl is None else self.sasl.mechanism
        return 0 if mechanism is None else self.listener.reauthenticate_ms.get(mechanism, 0)

    def break_off_authentication(self) -> None:
        """End the connection for a message in a wrong order, after its answer."""
        assert self.sasl is not None
        self.sasl.state, self.sasl.failure = SaslState.FAILED, "another request came before the exchange was over"

    def begin_authentication(self) -> bool:
        """Return whether an authentication by SASL may begin now. A client that has authenticated
        may begin another one only if its session has an end, once a second at most.
        """
        if self.sasl is None or not self.listener.sasl or self.sasl.state is SaslState.EXCHANGE:
            return False
        if self.sasl.state is SaslState.DONE:
            now = trio.current_time()
            if now < self.may_authenticate_again_at:
                return False
            self.may_authenticate_again_at = now + LEAST_SECONDS_BETWEEN_AUTHENTICATIONS
        return True


def about_frame(caller: Caller, frame: bytes) -> dict[str, dict[str, Any]]:
    """Return the argument `extra` of a log call about a request that could not be decoded. It has
    whatever fields the header yields.
    """
    if len(frame) < REQUEST_START.size:
        return about_caller(caller)
    api_key, _, correlation_id = REQUEST_START.unpack_from(frame)
    return log_fields(
        principal=caller.principal,
        client=client_id_of(frame),
        host=caller.host,
        software=caller.software,
        correlation=correlation_id,
        api=KAFKA.name(api_key),
    )


def about_caller(caller: Caller) -> dict[str, dict[str, Any]]:
    """Return the argument `extra` of a log call about a connection."""
    return log_fields(principal=caller.principal, host=caller.host, software=caller.software)
