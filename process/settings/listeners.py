"""Parses the listeners of a node: the bound and advertised addresses, and the protocols.

Rule: whatever Kafka refuses at startup is refused here, and each fault names the key to correct.
Invalid ports are refused too, which Kafka notices only when it binds.
"""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address

import msgspec

from ...policies.configs.values import MAX_PORT

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - to refuse it
EVERY_IPV6_ADDRESS = "::"
"""Kafka advertises this one, though a client that connects to it reaches its own machine."""
LISTENER_KEYS = frozenset(
    {
        "listeners",
        "advertised.listeners",
        "listener.security.protocol.map",
        "inter.broker.listener.name",
        "security.inter.broker.protocol",
        "control.plane.listener.name",
    }
)
"""The keys that decide together which listeners there are."""
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_NAME = re.compile(r"[^:/\s]++")
_HOST = re.compile(r"\[[0-9a-zA-Z\-%._:]*+\]|[0-9a-zA-Z\-%._:]*+")
_PORT = re.compile(r"-?[0-9]++")
_COUNT = re.compile(r"[0-9]{1,10}")


class ConfiguredListener(msgspec.Struct, frozen=True):
    name: str
    host: str
    """The host to bind. Empty means every interface; an IPv6 address has no brackets."""
    port: int
    """The port to bind, or 0 for any free one."""
    security_protocol: str
    advertised_host: str | None
    """The registered host. Empty means the name of this machine, and None that the listener is not
    advertised.
    """
    advertised_port: int | None

    @property
    def address(self) -> tuple[str, str, int, str]:
        """The name, host, port and security protocol; a listener that differs in one of them is
        another listener.
        """
        return self.name, self.host, self.port, self.security_protocol

    @property
    def needs_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL_")

    @property
    def needs_tls(self) -> bool:
        return self.security_protocol.endswith("SSL")


class ListenerFault(ValueError):  # noqa: N818 - one of several that make a ConfigurationError
    """Listeners are configured wrongly. It holds a sentence and the key to correct."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key


class ListenerAddress(msgspec.Struct, frozen=True):
    name: str
    host: str
    port: int


def parse_endpoints(key: str, text: str) -> tuple[ListenerAddress, ...]:
    """Parse the endpoints `NAME://host:port,...` of a key. Raises ListenerFault."""
    return tuple(_endpoint(key, part) for part in _parts(text))


def parse_protocol_map(text: str) -> dict[str, str]:
    """Parse the security protocol of each listener name, both in upper case. Raises
    ListenerFault.
    """
    key, protocols = "listener.security.protocol.map", {}
    for part in _parts(text):
        name, colon, protocol = part.rpartition(":")
        if not colon or not name.strip():
            raise ListenerFault(key, f"'{part}' is not of the form NAME:PROTOCOL")
        if protocol.strip().upper() not in SECURITY_PROTOCOLS:
            raise ListenerFault(key, f"'{protocol.strip()}' is none of {', '.join(SECURITY_PROTOCOLS)}")
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def parse_counts(key: str, text: str) -> dict[str, int]:
    """Parse the counts `address:count,...` of a key; addresses may contain colons. Raises
    ListenerFault.
    """
    counts = {}
    for part in _parts(text):
        address, colon, count = part.rpartition(":")
        digits = count.strip()  # of more than `int` takes away, such as U+001D
        if not colon or not address.strip() or not _COUNT.fullmatch(digits):
            raise ListenerFault(key, f"'{part}' is not of the form address:count")
        counts[address.strip().strip("[]")] = int(digits)
    return counts


def make_listeners(
    listeners: str, advertised: str | None, protocols: Mapping[str, str]
) -> tuple[ConfiguredListener, ...]:
    """Return the listeners in the order of `listeners`. Raises ListenerFault."""
    bound = parse_endpoints("listeners", listeners)
    if not bound:
        raise ListenerFault("listeners", "there must be at least one listener")
    _check_distinct(bound)
    told = bound if not advertised else parse_endpoints("advertised.listeners", advertised)
    _check_advertised(bound, told, "advertised.listeners" if advertised else "listeners")
    by_name = {endpoint.name: endpoint for endpoint in told}
    return tuple(_listener(endpoint, by_name.get(endpoint.name), protocols) for endpoint in bound)


def _listener(bound: ListenerAddress, told: ListenerAddress | None, protocols: Mapping[str, str]) -> ConfiguredListener:
    protocol = protocols.get(bound.name)
    if protocol is None:
        known = ", ".join(protocols)
        reason = (
            f"no security protocol is defined for listener {bound.name}: listener.security.protocol.map has {known}"
        )
        raise ListenerFault("listeners", reason)
    return ConfiguredListener(
        name=bound.name,
        host=bound.host,
        port=bound.port,
        security_protocol=protocol,
        advertised_host=None if told is None else told.host,
        advertised_port=None if told is None else told.port,
    )


def _endpoint(key: str, text: str) -> ListenerAddress:
    name, _, address = text.partition("://")
    host, colon, digits = address.rpartition(":")
    if not (colon and _NAME.fullmatch(name) and _HOST.fullmatch(host) and _PORT.fullmatch(digits)):
        raise ListenerFault(key, f"'{text}' is not of the form NAME://host:port")
    port = int(digits) if len(digits) <= 6 else -1
    if not 0 <= port <= MAX_PORT:
        raise ListenerFault(key, f"the port of '{text}' is not within 0 to {MAX_PORT}")
    return ListenerAddress(name.upper(), host.strip("[]"), port)


def _check_distinct(endpoints: tuple[ListenerAddress, ...]) -> None:
    names = [endpoint.name for endpoint in endpoints]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ListenerFault("listeners", f"each listener must have a different name, and {twice} stands there twice")
    ports: dict[int, list[ListenerAddress]] = {}
    for endpoint in endpoints:
        ports.setdefault(endpoint.port, []).append(endpoint)
    for port, sharing in ports.items():
        if port and len(sharing) > 1 and not _are_both_families(sharing):
            shared = " and ".join(endpoint.name for endpoint in sharing)
            reason = f"each listener must have a different port, and {shared} have {port} (only an IPv4 and an IPv6 address may share one)"
            raise ListenerFault("listeners", reason)


def _are_both_families(endpoints: list[ListenerAddress]) -> bool:
    families = [type(_address(endpoint.host)) for endpoint in endpoints]
    return len(families) == 2 and set(families) == {IPv4Address, IPv6Address}


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _check_advertised(bound: tuple[ListenerAddress, ...], told: tuple[ListenerAddress, ...], key: str) -> None:
    names, told_names = {endpoint.name for endpoint in bound}, [endpoint.name for endpoint in told]
    for endpoint in told:
        if endpoint.host == ANY_ADDRESS:
            reason = f"{ANY_ADDRESS} is every interface and nobody can connect to it: set advertised.listeners to addresses that clients reach"
            raise ListenerFault(key, reason)
        if endpoint.name not in names:
            valid = ", ".join(sorted(names))
            raise ListenerFault(key, f"listener {endpoint.name} is advertised, but listeners has only {valid}")
        if told_names.count(endpoint.name) > 1:
            raise ListenerFault(key, f"listener {endpoint.name} stands there twice")


def _parts(text: str) -> list[str]:
    return [part for part in (part.strip() for part in text.split(",")) if part]
