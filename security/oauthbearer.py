"""The server's side of OAUTHBEARER (RFC 7628, KIP-255): one message with a signed token.

A token that is not accepted is answered with `{"status":"invalid_token"}`, which the client has to
acknowledge before the exchange ends, as in Kafka. No text repeats any part of a message.

Kafka's unsecured default, with which a client writes its own token, ends the start.
"""

from collections.abc import Callable

import msgspec

from ..clock import now
from ..cluster.errors import ConfigurationError
from ..process.settings.jaas import JaasConfig
from ..process.settings.node_config import NodeConfig
from .bearer_message import read_bearer_message
from .issuer_keys import EndpointSettings, IssuerKeys
from .mechanism_keys import HANDLER_KEY, OAUTHBEARER, Task, is_of_nodes, key_of_mechanism
from .sasl import Challenge, Mechanism, Proved, Rejected, SaslOutcome, invalid_credentials
from .signed_tokens import InvalidTokenError, KeySetError, TokenKeys, TokenRules, verified_token

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


def token_mechanism(
    config: NodeConfig, listener: str, jaas: JaasConfig | None, follow: Callable[[Task], None]
) -> Mechanism:
    """Return OAUTHBEARER for a listener; `follow` gets the task that follows the issuer's keys.
    Raises ConfigurationError.
    """
    handler = key_of_mechanism(config, listener, HANDLER_KEY, OAUTHBEARER)
    if not config.optional_string(handler):
        raise ConfigurationError(
            f"{handler} is missing: without it Kafka lets in everybody with a token that nobody signed. "
            "Name OAuthBearerValidatorCallbackHandler, which checks signatures."
        )
    if jaas is not None and jaas.options and not is_of_nodes(config, listener, OAUTHBEARER):
        raise ConfigurationError(
            f"{key_of_mechanism(config, listener, 'sasl.jaas.config', OAUTHBEARER)}: options of the login module have no effect "
            "with signed tokens; leave them out."
        )
    address = config.of_listener(listener, "sasl.oauthbearer.jwks.endpoint.url")
    if not config.optional_string(address):
        raise ConfigurationError(f"{address} is missing: it names the keys with which tokens are checked.")
    settings = EndpointSettings(
        config.string(address),
        config.integer(config.of_listener(listener, "sasl.oauthbearer.jwks.endpoint.refresh.ms")),
        config.integer(config.of_listener(listener, "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms")),
        config.integer(config.of_listener(listener, "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms")),
    )
    try:
        keys = IssuerKeys(settings)
    except KeySetError as error:
        raise ConfigurationError(f"{address}: {error}.") from None
    follow(keys.run)
    return bearer_mechanism(keys, _token_rules(config, listener), now)


def _token_rules(config: NodeConfig, listener: str) -> TokenRules:
    audiences = config.of_listener(listener, "sasl.oauthbearer.expected.audience")
    return TokenRules(
        audiences=frozenset(config.strings(audiences)) if config.value(audiences) is not None else frozenset(),
        issuer=config.optional_string(config.of_listener(listener, "sasl.oauthbearer.expected.issuer")),
        scope_claim=config.string(config.of_listener(listener, "sasl.oauthbearer.scope.claim.name")),
        subject_claim=config.string(config.of_listener(listener, "sasl.oauthbearer.sub.claim.name")),
        clock_skew_seconds=config.integer(config.of_listener(listener, "sasl.oauthbearer.clock.skew.seconds")),
    )
