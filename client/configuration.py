"""A client's configuration, by the keys of Kafka's AdminClientConfig; a file for the option
`--command-config` of Kafka's tools can be read as it is.

Rule: a mistake is a sentence that names the file, the line and the key, and never the value, which
may be a secret. `keys.py` decides which keys are followed, ignored or warned about.
"""

import ssl
from collections.abc import Iterator, Mapping

import msgspec

from ..controller.config.jaas import JaasError, parse_jaas
from ..controller.errors import ConfigurationError
from ..controller.security.credentials import Credentials, PlainCredentials, ScramCredentials
from ..policies.configs.values import host_and_port
from ..text.properties import PropertiesError, Property, parse_properties
from .keys import doubt_about
from .properties import ClientProperties

CLIENT_ID = "minicontroller"

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
NO_SERVERS = Property("bootstrap.servers", "", 0)


class Address(msgspec.Struct, frozen=True):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ClientConfig(msgspec.Struct, frozen=True):
    """Where a client connects, as whom, and how long it waits; `configure` makes one of keys."""

    bootstrap_servers: tuple[Address, ...]
    client_id: str = CLIENT_ID
    credentials: Credentials | None = None
    tls: ssl.SSLContext | None = None
    request_timeout_seconds: float = 30.0  # Kafka: request.timeout.ms
    api_timeout_seconds: float = 60.0  # Kafka: default.api.timeout.ms
    retry_backoff_seconds: float = 0.1  # Kafka: retry.backoff.ms
    warnings: tuple[str, ...] = ()


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Read addresses such as `host:port,[::1]:9093`. Raises ConfigurationError."""
    addresses = tuple(_address(part.strip()) for part in text.split(",") if part.strip())
    if not addresses:
        raise ConfigurationError("bootstrap.servers is empty: it lists nodes as HOST:PORT, separated by commas.")
    return addresses


def _address(text: str) -> Address:
    host, port = host_and_port(text) or ("", 0)
    if not port:
        raise ConfigurationError(f"{text!r} is not HOST:PORT (an IPv6 address stands in brackets: [::1]:9092).")
    try:
        host.encode("idna")  # a host that is no name makes Python's look-up fail with an error of another kind
    except UnicodeError:
        raise ConfigurationError(f"{host!r} is no name of a host.") from None
    return Address(host, port)


def configure(settings: Mapping[str, str]) -> ClientConfig:
    """Make a configuration of Kafka's keys; `bootstrap.servers` is required. Raises
    ConfigurationError.
    """
    entries = {key: Property(key, value, 0) for key, value in settings.items()}
    return _configured(ClientProperties(entries, "configuration"), entries.get("bootstrap.servers", NO_SERVERS).value)


def load_client_config(text: str, file: str, *, bootstrap: str | None, default_bootstrap: str) -> ClientConfig:
    """Read a properties file, whose text may be empty. `bootstrap` overrides its bootstrap.servers,
    and `default_bootstrap` stands in for them. Raises ConfigurationError.
    """
    try:
        parsed = parse_properties(text, file)
    except PropertiesError as error:
        raise ConfigurationError(str(error)) from None
    properties = ClientProperties(parsed.entries, file)
    servers = properties.text("bootstrap.servers") or default_bootstrap if bootstrap is None else bootstrap
    return _configured(properties, servers, parsed.warnings)


def _configured(properties: ClientProperties, servers: str, warnings: tuple[str, ...] = ()) -> ClientConfig:
    request_timeout = properties.seconds("request.timeout.ms", 30.0)
    protocol = _protocol(properties)
    return ClientConfig(
        bootstrap_servers=parse_addresses(servers),
        client_id=properties.text("client.id") or CLIENT_ID,
        credentials=_credentials(properties) if protocol.startswith("SASL") else None,
        tls=_tls(properties) if protocol.endswith("SSL") else None,
        request_timeout_seconds=request_timeout,
        api_timeout_seconds=max(properties.seconds("default.api.timeout.ms", 60.0), request_timeout),
        retry_backoff_seconds=properties.seconds("retry.backoff.ms", 0.1),
        warnings=(*warnings, *_warnings(properties)),
    )


def _protocol(properties: ClientProperties) -> str:
    protocol = (properties.text("security.protocol") or "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise properties.fault("security.protocol", f"must be one of {', '.join(PROTOCOLS)}")
    return protocol


def _tls(properties: ClientProperties) -> ssl.SSLContext:
    from .tls import client_context

    return client_context(properties)


def _credentials(properties: ClientProperties) -> Credentials:
    mechanism = properties.text("sasl.mechanism")
    if mechanism not in MECHANISMS:
        raise properties.fault(
            "sasl.mechanism", f"must be one of {', '.join(MECHANISMS)}: other mechanisms are not supported"
        )
    try:
        jaas = parse_jaas(properties.text("sasl.jaas.config"))
    except JaasError as error:
        raise properties.fault("sasl.jaas.config", f"cannot be read: {error}") from None
    if jaas.username is None or jaas.password is None:
        raise properties.fault("sasl.jaas.config", "lacks a username or a password")
    if mechanism == "PLAIN":
        return PlainCredentials(jaas.username, jaas.password)
    by_token = jaas.options.get("tokenauth", "").lower() == "true"
    return ScramCredentials(jaas.username, jaas.password, mechanism, by_token=by_token)


def _warnings(properties: ClientProperties) -> Iterator[str]:
    for key in properties.entries:
        doubt = doubt_about(key)
        if doubt:
            yield f"{properties.place(key)}: {doubt}"
