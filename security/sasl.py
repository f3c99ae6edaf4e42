"""The server's side of SASL on one connection (KIP-43, KIP-152, KIP-368).

There is no clock and no socket here: a token comes in, and its outcome is returned. Secrets are
compared in constant time, and no text repeats any part of a token.
"""

import hmac
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol

import msgspec

from .principal import MAX_NAME_BYTES, USER


class Challenge(msgspec.Struct, frozen=True):
    """The outcome of a token: the exchange continues with these bytes."""

    token: bytes


class Proved(msgspec.Struct, frozen=True):
    """The outcome of a token: the client is `username`."""

    username: str
    token: bytes = b""
    expires_ms: int | None = None
    """The time at which the credential that was shown ends, in milliseconds since 1970; None for
    one that does not end.
    """
    by_token: bool = False
    """Whether the credential was a delegation token of the user (KIP-48)."""
    is_valid: Callable[[], bool] | None = None
    """Returns whether the credential is still valid, so that it can be revoked; None for one that
    counts at the login alone.
    """


class ProvedNode(msgspec.Struct, frozen=True):
    """The outcome of a token: the client is this node of the cluster."""

    node: int


class Rejected(msgspec.Struct, frozen=True):
    """The outcome of a token: authentication failed, and `message` is sent to the client."""

    message: str
    reason: str = ""
    """The text for the node's log in place of the message, where that says less."""


SaslOutcome = Challenge | Proved | ProvedNode | Rejected


class SaslExchange(Protocol):
    def step(self, token: bytes) -> SaslOutcome: ...


def invalid_credentials(mechanism: str) -> Rejected:
    """Return the rejection with which Kafka answers whatever its mechanisms give no reason for."""
    return Rejected(
        f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    )


Mechanism = Callable[[], SaslExchange]
"""Begins an exchange with the credentials of its listener, such as `partial(PlainExchange, users)`.
"""


class PlainExchange:
    """Authentication by PLAIN (RFC 4616): one token, `authzid NUL authcid NUL passwd`. The error
    texts are those of Kafka's PlainSaslServer.
    """

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users

    def step(self, token: bytes) -> SaslOutcome:
        parts = token.decode("utf-8", "replace").split("\0", 3)  # Kafka counts no further either
        if len(parts) != 3:
            return Rejected(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
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
    re-authentication, during which the client remains the user that it was.

    The proof between nodes authenticates no user. At a listener with SASL, a user follows.
    """

    def __init__(self, mechanisms: Mapping[str, Mechanism]) -> None:
        self.state = SaslState.START
        self.username: str | None = None
        self.raw_tokens = False
        """Whether frames are tokens without a request around them: from a SaslHandshake of version
        0 until the exchange ends.
        """
        self.failure = ""
        """Why the last exchange failed, for the log."""
        self.attempted: str | None = None
        """The mechanism of the last exchange, also of a proof between nodes; None if the client
        asked for one that is not offered.
        """
        self._mechanisms = mechanisms
        self._exchange: SaslExchange | None = None
        self._mechanism: str | None = None

    @property
    def mechanism(self) -> str | None:
        """The mechanism by which the client authenticates; None before it chose one that is
        offered.
        """
        return self._mechanism

    @property
    def enabled_mechanisms(self) -> list[str]:
        return list(self._mechanisms)

    def begin_node_proof(self, mechanism: str, start: Mechanism) -> None:
        self.attempted, self._exchange = mechanism, start()
        self.state, self.raw_tokens = SaslState.EXCHANGE, False

    def handshake(self, mechanism: str, *, raw_tokens: bool) -> bool:
        """Choose a mechanism. Return False, and fail, if the listener does not offer it or a
        re-authentication changes it.
        """
        start = self._mechanisms.get(mechanism)
        self.attempted = None if start is None else mechanism
        if start is None or self._mechanism not in (None, mechanism):
            self.state = SaslState.FAILED
            return False
        self._mechanism, self._exchange = mechanism, start()
        self.state, self.raw_tokens = SaslState.EXCHANGE, raw_tokens
        return True

    def authenticate(self, token: bytes) -> SaslOutcome:
        """Process the next token of the exchange that the handshake began."""
        assert self._exchange is not None
        step = self._exchange.step(token)
        if isinstance(step, Proved) and len(step.username.encode()) > MAX_NAME_BYTES:
            step = Rejected(f"Authentication failed: the name of the user has more than {MAX_NAME_BYTES} bytes")
        if isinstance(step, Proved) and self.username not in (None, step.username):
            step = Rejected(
                f"Cannot change principals during re-authentication from {USER}.{self.username}: {USER}.{step.username}"
            )
        if isinstance(step, Proved):
            self.username, self.state, self.raw_tokens = step.username, SaslState.DONE, False
        elif isinstance(step, ProvedNode):
            self.state = SaslState.START if self.username is None else SaslState.DONE
        elif isinstance(step, Rejected):
            self.state, self.failure = SaslState.FAILED, step.reason or step.message
        return step
