"""Which address stands for which broker, as the configuration says it: a host for all or one for
each id, and fixed ports for ranges of ids.

Rule: whatever is read here is the same for every gateway with the same keys, so that several of
them tell clients the same addresses.
"""

import msgspec

from ..client.configuration import Address
from ..cluster.errors import ConfigurationError
from ..policies.configs.values import MAX_PORT

NODE_ID = "$(nodeId)"
MAX_BROKER_ID = 2**31 - 1
MOST_PORTS = 1000
"""How many ports may be bound for brokers that are not there yet."""
_DIGITS = frozenset("0123456789")
_DIGITS_OF_AN_ID = len(str(MAX_BROKER_ID))
_IN_ADDRESSES = frozenset(":%")  # of IPv6, with a scope
_IN_NAMES = _DIGITS | frozenset("abcdefghijklmnopqrstuvwxyz-._")


class HostPattern(msgspec.Struct, frozen=True):
    """The host that stands for each broker, and the port if it says one."""

    text: str
    """The host, in which `$(nodeId)` stands for the id of a broker."""
    port: int | None = None

    @property
    def differs(self) -> bool:
        return NODE_ID in self.text

    def host_of(self, broker_id: int) -> str:
        return self.text.replace(NODE_ID, str(broker_id))

    def broker_called(self, name: str) -> int | None:
        """Return the id of the broker whose name this is, in capitals or not; None for any other
        name.
        """
        before, _, after = self.text.lower().partition(NODE_ID.lower())
        name = name.lower()
        if not (name.startswith(before) and name.endswith(after)):
            return None
        digits = name[len(before) : len(name) - len(after)]
        return int(digits) if _is_id(digits) else None


class PortRange(msgspec.Struct, frozen=True):
    """The ports of brokers whose ids follow each other."""

    first_id: int
    last_id: int
    first_port: int
    """The port of the first id; 0 for a free one for each."""

    def port_of(self, broker_id: int) -> int:
        return self.first_port and self.first_port + broker_id - self.first_id


def parse_host(key: str, text: str, *, with_port: bool) -> HostPattern:
    """Read a host, with a pattern or without, and if it may have one with a port behind it. Raises
    ConfigurationError.
    """
    host, colon, port = text.partition(":") if with_port else (text, "", "")
    if text.count(NODE_ID) > 1:
        raise ConfigurationError(f"{key} has {NODE_ID} twice.")
    of_address = set() if with_port or NODE_ID in text else _IN_ADDRESSES
    if not set(host.replace(NODE_ID, "").lower()) <= _IN_NAMES | of_address:
        raise ConfigurationError(
            f"{key} must be a name of letters, digits, dots and hyphens, which may contain {NODE_ID}."
        )
    if not colon:
        return HostPattern(host)
    if not _is_number(port) or not 0 < int(port) <= MAX_PORT:
        raise ConfigurationError(f"{key} has a port that is not a number from 1 to {MAX_PORT}.")
    return HostPattern(host, int(port))


def parse_ranges(key: str, text: str) -> tuple[PortRange, ...]:
    """Read ranges such as `0-2:19093,100:19200`. Raises ConfigurationError."""
    ranges = tuple(_range(key, part.strip()) for part in text.split(",") if part.strip())
    if sum(each.last_id - each.first_id + 1 for each in ranges) > MOST_PORTS:
        raise ConfigurationError(f"{key} has more than {MOST_PORTS} ports, all of which would be bound.")
    ids = [number for each in ranges for number in range(each.first_id, each.last_id + 1)]
    ports = [
        port for each in ranges for number in range(each.first_id, each.last_id + 1) if (port := each.port_of(number))
    ]
    for numbers, what in ((ids, "id"), (ports, "port")):
        if len(set(numbers)) < len(numbers):
            twice = next(number for number in numbers if numbers.count(number) > 1)
            raise ConfigurationError(f"{key} has the {what} {twice} twice.")
    if ports and max(ports) > MAX_PORT:
        raise ConfigurationError(f"{key} needs the port {max(ports)}, and {MAX_PORT} is the highest one.")
    return ranges


def _range(key: str, text: str) -> PortRange:
    ids, _, port = text.partition(":")
    first, _, last = ids.partition("-")
    last = last or first
    if not (_is_id(first) and _is_id(last) and _is_number(port) and int(first) <= int(last)):
        raise ConfigurationError(
            f"{key} lists ids of brokers with the port of the first one, as in 0-2:19093,100:19200."
        )
    return PortRange(int(first), int(last), int(port))


def _is_id(text: str) -> bool:
    """Whether it is the id of a broker as it is usually written."""
    if not 0 < len(text) <= _DIGITS_OF_AN_ID or not set(text) <= _DIGITS:
        return False
    return str(int(text)) == text and int(text) <= MAX_BROKER_ID


def _is_number(text: str) -> bool:
    return 0 < len(text) <= len(str(MAX_PORT)) and set(text) <= _DIGITS


def with_port(pattern: HostPattern, host: str, port: int) -> Address:
    """Return an address of clients: the port of the pattern, or the one that was bound."""
    return Address(host, pattern.port or port)
