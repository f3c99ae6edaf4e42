"""A node's login by OAUTHBEARER, as the configuration describes it.

Rule: Kafka's unsecured default, with which a node writes its own token, ends the start, as does
every option that would have no effect.
"""

from collections.abc import Mapping

from ..clock import now
from ..cluster.errors import ConfigurationError
from ..process.settings.jaas import OAUTHBEARER_LOGIN_MODULE
from ..process.settings.node_config import NodeConfig
from .fetching import file_of, is_address
from .login_token import RefreshRules
from .mechanism_keys import OAUTHBEARER, key_of_mechanism
from .mechanisms import LoginSources
from .token_login import ClientSecret, TokenLogin, TokenSettings

HANDLER_KEY = "sasl.login.callback.handler.class"
ENDPOINT_KEY = "sasl.oauthbearer.token.endpoint.url"
OPTIONS = ("clientId", "clientSecret", "scope")


def token_user(config: NodeConfig, listener: str, sources: LoginSources) -> TokenLogin:
    """Return the credentials of this node at a listener; `sources` gets the task that keeps its
    token new. Raises ConfigurationError.
    """
    handler = key_of_mechanism(config, listener, HANDLER_KEY, OAUTHBEARER)
    if not config.optional_string(handler):
        raise ConfigurationError(
            f"{handler} is missing: without it Kafka's brokers log in with tokens that nobody signed. "
            "Name OAuthBearerLoginCallbackHandler, which gets signed ones."
        )
    address = config.of_listener(listener, ENDPOINT_KEY)
    url = config.string(address)
    if not url:
        raise ConfigurationError(f"{address} is missing: it names where this node gets the token to log in with.")
    if not is_address(url):
        raise ConfigurationError(
            f"{address}: it is no address of the form file:///path or https://host/path without a password."
        )
    login = TokenLogin(_settings(config, listener, url), now)
    sources.follow(login.run, login.tried)
    return login


def _settings(config: NodeConfig, listener: str, url: str) -> TokenSettings:
    def milliseconds(key: str) -> int:
        return config.integer(config.of_listener(listener, key))

    def seconds(key: str, default: float) -> float:
        value = config.optional_integer(config.of_listener(listener, key))
        return default if value is None or value <= 0 else value / 1000

    return TokenSettings(
        url=url,
        client=_client(config, listener, url),
        subject_claim=config.string(config.of_listener(listener, "sasl.oauthbearer.sub.claim.name")),
        connect_seconds=seconds("sasl.login.connect.timeout.ms", TokenSettings.connect_seconds),
        read_seconds=seconds("sasl.login.read.timeout.ms", TokenSettings.read_seconds),
        retry_ms=milliseconds("sasl.login.retry.backoff.ms"),
        max_retry_ms=milliseconds("sasl.login.retry.backoff.max.ms"),
        refresh=_refresh_rules(config, listener),
    )


def _refresh_rules(config: NodeConfig, listener: str) -> RefreshRules:
    return RefreshRules(
        window_factor=config.decimal(config.of_listener(listener, "sasl.login.refresh.window.factor")),
        window_jitter=config.decimal(config.of_listener(listener, "sasl.login.refresh.window.jitter")),
        min_period_seconds=config.integer(config.of_listener(listener, "sasl.login.refresh.min.period.seconds")),
        buffer_seconds=config.integer(config.of_listener(listener, "sasl.login.refresh.buffer.seconds")),
    )


def _client(config: NodeConfig, listener: str, url: str) -> ClientSecret | None:
    """Return what the node shows to a token endpoint; None for a file."""
    key = key_of_mechanism(config, listener, "sasl.jaas.config", OAUTHBEARER)
    jaas = config.jaas(listener, OAUTHBEARER)
    if jaas is not None and jaas.login_module != OAUTHBEARER_LOGIN_MODULE:
        raise ConfigurationError(
            f"{key} names another login module than that of OAUTHBEARER, {OAUTHBEARER_LOGIN_MODULE}."
        )
    options: Mapping[str, str] = {} if jaas is None else jaas.options
    if file_of(url) is not None:
        if options:
            raise ConfigurationError(
                f"{key}: options of the login module have no effect with a token from a file; leave them out."
            )
        return None
    others = [name for name in options if name not in OPTIONS]
    if others:
        raise ConfigurationError(f"{key}: {', '.join(others)} is not followed; the options are {', '.join(OPTIONS)}.")
    if not options.get("clientId") or not options.get("clientSecret"):
        raise ConfigurationError(
            f"{key} needs a clientId and a clientSecret, for which the token endpoint gives tokens."
        )
    return ClientSecret(
        options["clientId"],
        options["clientSecret"],
        options.get("scope") or None,
        is_url_encoded=config.boolean(config.of_listener(listener, "sasl.oauthbearer.header.urlencode")),
    )
