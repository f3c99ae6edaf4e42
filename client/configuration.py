"""A client's configuration, by the keys of Kafka's AdminClientConfig; a file for the option
`--command-config` of Kafka's tools can be read as it is.

Rule: a mistake is a sentence that names the file, the line and the key, and never the value, which
may be a secret. `keys.py` decides which keys are followed, ignored or warned about.
"""

import ssl
from collections.abc import Iterator, Mapping
from functools import partial

import msgspec

from ..cluster.errors import ConfigurationError, Mistakes
from ..policies.configs.values import host_and_port
from ..process.settings.jaas import JaasError, parse_jaas
from ..process.settings.properties import PropertiesError, parse_properties
from ..security.credentials import Credentials, PlainCredentials, ScramCredentials
from .keys import doubt_about
from .properties import ClientProperties, PropertyEntry

CLIENT_ID = "minicontroller"

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SERVERS = "bootstrap.servers"


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


def parse_addresses(text: str, name: str = "") -> tuple[Address, ...]:
    """Read addresses such as `host:port,[::1]:9093`, which messages call `name`. Raises
    ConfigurationError with all mistakes.
    """
    mistakes = Mistakes()
    parts = [part.strip() for part in text.split(",") if part.strip()]
    addresses = [mistakes.read(partial(_address, part, f"{name}: " if name else ""), None) for part in parts]
    if not parts:
        mistakes.note(f"{name or SERVERS} is empty: it lists nodes as HOST:PORT, separated by commas.")
    mistakes.end()
    return tuple(address for address in addresses if address is not None)


def _address(text: str, name: str) -> Address:
    host, port = host_and_port(text) or ("", 0)
    if not port:
        raise ConfigurationError(f"{name}{text!r} is not HOST:PORT (an IPv6 address stands in brackets: [::1]:9092).")
    try:
        host.encode("idna")  # a host that is no name makes Python's look-up fail with an error of another kind
    except UnicodeError:
        raise ConfigurationError(f"{name}{host!r} is no name of a host.") from None
    return Address(host, port)


def configure(settings: Mapping[str, str]) -> ClientConfig:
    """Make a configuration of Kafka's keys; `bootstrap.servers` is required. Raises
    ConfigurationError.
    """
    place = "configuration"
    entries = {key: PropertyEntry(key, text, place) for key, text in settings.items()}
    properties = ClientProperties(entries, place)
    return configured(properties, properties.text(SERVERS))


def load_client_config(text: str, file: str, *, bootstrap: str | None, default_bootstrap: str) -> ClientConfig:
    """Read a properties file, whose text may be empty. `bootstrap` overrides its bootstrap.servers,
    and `default_bootstrap` stands in for them. Raises ConfigurationError.
    """
    try:
        parsed = parse_properties(text, file)
    except PropertiesError as error:
        raise ConfigurationError(str(error)) from None
    entries = {
        key: PropertyEntry(key, entry.value, f"{file}, line {entry.line}") for key, entry in parsed.entries.items()
    }
    properties = ClientProperties(entries, file)
    if bootstrap is None and properties.text(SERVERS):
        return configured(properties, properties.text(SERVERS), properties.placed(SERVERS, SERVERS), parsed.warnings)
    return configured(properties, default_bootstrap if bootstrap is None else bootstrap, "", parsed.warnings)


def configured(
    properties: ClientProperties, servers: str, name: str = "", warnings: tuple[str, ...] = ()
) -> ClientConfig:
    """Make a configuration of entries, with these servers to begin with, which messages call
    `name`. Raises ConfigurationError with all mistakes.
    """
    mistakes = Mistakes()

    def seconds(key: str, default: float) -> float:
        return mistakes.read(lambda: properties.seconds(key, default), default)

    request_timeout = seconds("request.timeout.ms", 30.0)
    protocol = mistakes.read(lambda: _protocol(properties), "")
    logs_in = protocol.startswith("SASL")
    mechanism = mistakes.read(lambda: _mechanism(properties), "") if logs_in else ""
    config = ClientConfig(
        bootstrap_servers=mistakes.read(partial(parse_addresses, servers, name), ()),
        client_id=properties.text("client.id") or CLIENT_ID,
        credentials=mistakes.read(lambda: _credentials(properties, mechanism), None) if logs_in else None,
        tls=mistakes.read(lambda: _tls(properties), None) if protocol.endswith("SSL") else None,
        request_timeout_seconds=request_timeout,
        api_timeout_seconds=max(seconds("default.api.timeout.ms", 60.0), request_timeout),
        retry_backoff_seconds=seconds("retry.backoff.ms", 0.1),
        warnings=(*warnings, *_warnings(properties)),
    )
    mistakes.end()
    return config


def _protocol(properties: ClientProperties) -> str:
    protocol = (properties.text("security.protocol") or "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise properties.fault("security.protocol", f"must be one of {', '.join(PROTOCOLS)}")
    return protocol


def _tls(properties: ClientProperties) -> ssl.SSLContext:
    from .tls import client_context

    return client_context(properties)


def _mechanism(properties: ClientProperties) -> str:
    mechanism = properties.text("sasl.mechanism")
    if mechanism not in MECHANISMS:
        raise properties.fault(
            "sasl.mechanism", f"must be one of {', '.join(MECHANISMS)}: other mechanisms are not supported"
        )
    return mechanism


def _credentials(properties: ClientProperties, mechanism: str) -> Credentials:
    if not properties.text("sasl.jaas.config"):
        raise properties.fault("sasl.jaas.config", "is missing: it has a login module with a username and a password")
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
            yield properties.placed(key, doubt)
