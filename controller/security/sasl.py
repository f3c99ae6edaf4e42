"""SASL on one connection (KIP-43, KIP-152, KIP-368): handshake, tokens, and what has been proved so
far.

Rule: no clock and no socket here. A token goes in; a challenge, a proof of who it is, or a refusal
comes out. Secrets are compared in constant time, and no text that leaves this module repeats any
part of a token.
"""

import hmac
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol

import msgspec


class Challenge(msgspec.Struct, frozen=True):
    """Outcome of a token: the exchange goes on with these bytes."""

    token: bytes


class Proved(msgspec.Struct, frozen=True):
    """Outcome of a token: the client is `username`."""

    username: str
    token: bytes = b""


class ProvedNode(msgspec.Struct, frozen=True):
    """Outcome of a token: the client is this node of the cluster."""

    node: int


class Rejected(msgspec.Struct, frozen=True):
    """Outcome of a token: authentication failed. The client reads `message`; `public` texts, which
    are Kafka's, are sent as they are.
    """

    message: str


SaslOutcome = Challenge | Proved | ProvedNode | Rejected


class SaslExchange(Protocol):
    """One authentication by one SASL mechanism."""

    def step(self, token: bytes) -> SaslOutcome: ...


Mechanism = Callable[[], SaslExchange]
"""Starts an exchange. A mechanism is bound to the credentials of its listener: `lambda:
PlainExchange(users)`.
"""


class PlainExchange:
    """Authentication by PLAIN (RFC 4616): one token, `authzid NUL authcid NUL passwd`. The texts
    are Kafka's.
    """

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users

    def step(self, token: bytes) -> SaslOutcome:
        parts = token.decode("utf-8", "replace").split("\0")
        if len(parts) != 3:
            return Rejected(
                "Authentication failed during authentication due to invalid credentials with SASL mechanism PLAIN"
            )
        authorization_id, username, password = parts
        if not username:
            return Rejected("Authentication failed: username not specified")
        if not password:
            return Rejected("Authentication failed: password not specified")
        expected = self._users.get(username)
        # An unknown user costs the same comparison as a known one.
        matches = hmac.compare_digest(password.encode(), (expected or "").encode())
        if expected is None or not matches:
            return Rejected("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != username:
            return Rejected(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        return Proved(username)


class SaslState(Enum):
    START = "nothing shown yet"
    EXCHANGE = "a mechanism is chosen"
    DONE = "authenticated"
    FAILED = "refused: the connection ends"


class SaslSession:
    """The state of authentication on one connection. A handshake after `DONE` begins a
    re-authentication; the old proof holds until the new one.

    The mechanism of nodes proves no user: a listener that wants one is shown one afterwards.
    """

    def __init__(self, mechanisms: Mapping[str, Mechanism]) -> None:
        self.state = SaslState.START
        self.username: str | None = None
        self.raw_tokens = False
        """After a handshake v0: frames are bare tokens until the exchange ends."""
        self._mechanisms = mechanisms
        self._exchange: SaslExchange | None = None
        self._mechanism: str | None = None

    @property
    def enabled_mechanisms(self) -> list[str]:
        return list(self._mechanisms)

    def begin_node_proof(self, start: Mechanism) -> None:
        """Begin the exchange of a client that says that it is a node."""
        self._exchange, self.state, self.raw_tokens = start(), SaslState.EXCHANGE, False

    def handshake(self, mechanism: str, *, raw_tokens: bool) -> bool:
        """Choose a mechanism. False if the listener or a re-authentication does not allow it, which
        ends the connection.
        """
        start = self._mechanisms.get(mechanism)
        if start is None or self._mechanism not in (None, mechanism):
            self.state = SaslState.FAILED
            return False
        self._mechanism, self._exchange = mechanism, start()
        self.state, self.raw_tokens = SaslState.EXCHANGE, raw_tokens
        return True

    def authenticate(self, token: bytes) -> SaslOutcome:
        """Take the next token of the exchange that the handshake began."""
        assert self._exchange is not None
        step = self._exchange.step(token)
        if isinstance(step, Proved) and self.username not in (None, step.username):
            step = Rejected("Cannot change principals during re-authentication")
        if isinstance(step, Proved):
            self.username, self.state, self.raw_tokens = step.username, SaslState.DONE, False
        elif isinstance(step, ProvedNode):
            self.state = SaslState.START if self.username is None else SaslState.DONE
        elif isinstance(step, Rejected):
            self.state = SaslState.FAILED
        return step
