"""The server's side of OAUTHBEARER (RFC 7628, KIP-255): one message with a signed token.

A token that is not accepted is answered with `{"status":"invalid_token"}`, which the client has to
acknowledge before the exchange ends, as in Kafka. No text repeats any part of a message.
"""

from collections.abc import Callable

import msgspec

from .bearer_message import read_bearer_message
from .sasl import Challenge, Mechanism, Proved, Rejected, SaslOutcome, invalid_credentials
from .signed_tokens import InvalidTokenError, TokenKeys, TokenRules, verified_token

NAME = "OAUTHBEARER"
NOT_ACCEPTED = '{"status":"invalid_token"}'
ACKNOWLEDGED = b"\x01"


class TokenCheck(msgspec.Struct, frozen=True):
    """The parts that all exchanges at one listener share."""

    keys: TokenKeys
    rules: TokenRules
    clock: Callable[[], float]
    """Returns the seconds since 1970."""

    def exchange(self) -> "BearerExchange":
        return BearerExchange(self)


class BearerExchange:
    """One authentication: a token, and the acknowledgement of its refusal."""

    def __init__(self, check: TokenCheck) -> None:
        self._check = check
        self._refusal = ""

    def step(self, token: bytes) -> SaslOutcome:
        if self._refusal:
            return Rejected(NOT_ACCEPTED, self._refusal) if token == ACKNOWLEDGED else invalid_credentials(NAME)
        message = read_bearer_message(token)
        if message is None:
            return invalid_credentials(NAME)
        check = self._check
        try:
            verified = verified_token(message.token, check.keys, check.rules, check.clock())
        except InvalidTokenError as error:
            self._refusal = str(error)
            return Challenge(NOT_ACCEPTED.encode())
        if message.authorization_id not in ("", verified.subject):
            return Rejected(
                f"Authentication failed: Client requested an authorization id ({message.authorization_id}) "
                f"that is different from the token's principal name ({verified.subject})"
            )
        return Proved(verified.subject, expires_ms=verified.expires_ms)


def bearer_mechanism(keys: TokenKeys, rules: TokenRules, clock: Callable[[], float]) -> Mechanism:
    return TokenCheck(keys, rules, clock).exchange
