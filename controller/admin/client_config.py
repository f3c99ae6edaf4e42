"""A client's configuration, by Kafka's own keys: a file that Kafka's tools take with `--command-config` serves here too.

Rule: what is wrong is a sentence that names the file, the line and the key, never the value: it may be a secret. A key of Kafka's
that changes nothing here is taken in silence; a key that nobody knows is a warning, as in Kafka.
"""

from collections.abc import Mapping

import msgspec

from ...policies.properties import PropertiesError, Property, parse_properties
from ..config.jaas import JaasError, parse_jaas
from ..errors import ConfigurationError
from ..peer import PlainCredentials

MAX_PORT = 65535
CLIENT_ID = "minicontroller"

TIMES = ("request.timeout.ms", "default.api.timeout.ms", "retry.backoff.ms")
WITHOUT_EFFECT = frozenset(
    {"metadata.max.age.ms", "send.buffer.bytes", "receive.buffer.bytes", "connections.max.idle.ms"}
)
WITHOUT_EFFECT |= {
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "retries",
    "client.dns.lookup",
    "retry.backoff.max.ms",
}
WITHOUT_EFFECT |= {
    "metric.reporters",
    "enable.metrics.push",
    "socket.connection.setup.timeout.ms",
    "metadata.recovery.strategy",
}
KNOWN = {"bootstrap.servers", "client.id", "security.protocol", "sasl.mechanism", "sasl.jaas.config", *TIMES}
FAMILIES = ("ssl.", "sasl.", "metrics.", "auto.", "config.providers")
"""Of Kafka's keys, too many to list."""


class Address(msgspec.Struct, frozen=True):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ClientConfig(msgspec.Struct, frozen=True):
    """All that a client needs to know before it connects."""

    bootstrap_servers: tuple[Address, ...]
    client_id: str = CLIENT_ID
    credentials: PlainCredentials | None = None
    request_timeout_seconds: float = 30.0  # Kafka: request.timeout.ms
    api_timeout_seconds: float = 60.0  # Kafka: default.api.timeout.ms
    retry_backoff_seconds: float = 0.1  # Kafka: retry.backoff.ms
    warnings: tuple[str, ...] = ()


def parse_addresses(text: str) -> tuple[Address, ...]:
    """`host:port,[::1]:9093`. Raises ConfigurationError."""
    addresses = tuple(_address(part.strip()) for part in text.split(",") if part.strip())
    if not addresses:
        raise ConfigurationError("bootstrap.servers is empty: it lists nodes as HOST:PORT, separated by commas.")
    return addresses


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if text.startswith("["):
        host = host.removeprefix("[").removesuffix("]") if host.endswith("]") else ""
    elif ":" in host:
        host = ""  # an IPv6 address without brackets does not tell where its port begins
    if not (host and port.isascii() and port.isdigit() and 0 < int(port) <= MAX_PORT):
        raise ConfigurationError(f"{text!r} is not HOST:PORT (an IPv6 address stands in brackets: [::1]:9092).")
    try:
        host.encode("idna")  # what is no name by its form makes Python's look-up fail in a way of its own
    except UnicodeError:
        raise ConfigurationError(f"{host!r} is no name of a host.") from None
    return Address(host, int(port))


def load(text: str, file: str, *, bootstrap: str | None, default_bootstrap: str) -> ClientConfig:
    """Of a properties file (`text` is empty if there is none). `bootstrap` goes before the file's. Raises ConfigurationError."""
    try:
        properties = parse_properties(text, file)
    except PropertiesError as error:
        raise ConfigurationError(str(error)) from None
    reader = _Reader(properties.entries, file)
    servers = bootstrap or reader.text("bootstrap.servers") or default_bootstrap
    request_timeout = reader.seconds("request.timeout.ms", 30.0)
    return ClientConfig(
        bootstrap_servers=parse_addresses(servers),
        client_id=reader.text("client.id") or CLIENT_ID,
        credentials=reader.credentials(),
        request_timeout_seconds=request_timeout,
        api_timeout_seconds=max(reader.seconds("default.api.timeout.ms", 60.0), request_timeout),
        retry_backoff_seconds=reader.seconds("retry.backoff.ms", 0.1),
        warnings=(*properties.warnings, *reader.unknown()),
    )


class _Reader:
    def __init__(self, entries: Mapping[str, Property], file: str) -> None:
        self._entries = entries
        self._file = file

    def text(self, key: str) -> str:
        entry = self._entries.get(key)
        return "" if entry is None else entry.value.strip()

    def seconds(self, key: str, default: float) -> float:
        text = self.text(key)
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and int(text) < 2**31):
            raise self._fault(key, "is a number of milliseconds")
        return int(text) / 1000

    def credentials(self) -> PlainCredentials | None:
        protocol = self.text("security.protocol") or "PLAINTEXT"
        if protocol.upper() == "PLAINTEXT":
            return None
        if protocol.upper() != "SASL_PLAINTEXT":
            raise self._fault("security.protocol", "must be PLAINTEXT or SASL_PLAINTEXT: TLS is not spoken here yet")
        if self.text("sasl.mechanism") != "PLAIN":
            raise self._fault("sasl.mechanism", "must be PLAIN where security.protocol is SASL_PLAINTEXT")
        try:
            jaas = parse_jaas(self.text("sasl.jaas.config"))
        except JaasError as error:
            raise self._fault("sasl.jaas.config", f"cannot be read: {error}") from None
        if jaas.username is None or jaas.password is None:
            raise self._fault("sasl.jaas.config", "lacks a username or a password")
        return PlainCredentials(jaas.username, jaas.password)

    def unknown(self) -> tuple[str, ...]:
        taken = KNOWN | WITHOUT_EFFECT
        return tuple(
            f"{self._file}, line {entry.line}: no client knows the key {key}."
            for key, entry in self._entries.items()
            if key not in taken and not key.startswith(FAMILIES)
        )

    def _fault(self, key: str, text: str) -> ConfigurationError:
        entry = self._entries.get(key)
        where = self._file if entry is None else f"{self._file}, line {entry.line}"
        return ConfigurationError(f"{where}: {key} {text}.")
