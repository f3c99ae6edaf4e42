"""OAUTHBEARER at a listener, as the configuration describes it.

Rule: Kafka's unsecured default, with which a client writes its own token, ends the start.
"""

from collections.abc import Callable

from ..clock import now
from ..cluster.errors import ConfigurationError
from ..process.settings.jaas import JaasConfig
from ..process.settings.node_config import NodeConfig
from .issuer_keys import EndpointSettings, IssuerKeys
from .mechanism_keys import HANDLER_KEY, OAUTHBEARER, Task, is_of_nodes, key_of_mechanism
from .oauthbearer import bearer_mechanism
from .sasl import Mechanism
from .signed_tokens import KeySetError, TokenRules


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
