"""How many connections a node takes, by Kafka's keys: `max.connections` in all, per listener, and per address.

Rule: an address that has too many is refused at once; a full node keeps newcomers waiting in the kernel's queue, except at the
inter-broker listener, where the connection of a client that has been quiet the longest makes room for a node.
"""

from collections import Counter
from collections.abc import Mapping

import msgspec

UNLIMITED = 2**31 - 1  # Kafka's default for all of them


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Kafka's keys and defaults."""

    max_request_bytes: int = 100 * 1024 * 1024
    """`socket.request.max.bytes`"""
    max_connections: int = UNLIMITED
    """`max.connections`"""
    max_connections_per_ip: int = UNLIMITED
    """`max.connections.per.ip`"""
    per_ip_overrides: Mapping[str, int] = {}
    """`max.connections.per.ip.overrides`, by address"""
    max_idle_seconds: float = 600.0
    """`connections.max.idle.ms`"""
    failed_authentication_delay_seconds: float = 0.1
    """`connection.failed.authentication.delay.ms`"""


class ConnectionQuotas:
    """Counts the connections of a node."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._by_listener: Counter[str] = Counter()
        self._by_address: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return self._by_listener.total()

    def is_full(self, listener: str, max_of_listener: int | None) -> bool:
        """A newcomer at this listener has to wait."""
        return self.total >= self._limits.max_connections or self.listener_is_full(listener, max_of_listener)

    def listener_is_full(self, listener: str, max_of_listener: int | None) -> bool:
        return max_of_listener is not None and self._by_listener[listener] >= max_of_listener

    def exceeds(self) -> bool:
        """More than the node should have: a node of the cluster came to a full house."""
        return self.total > self._limits.max_connections

    def add(self, listener: str, address: str) -> bool:
        """False, and nothing counted, if the address has too many already."""
        limit = self._limits.per_ip_overrides.get(address, self._limits.max_connections_per_ip)
        if self._by_address[address] >= limit:
            if limit <= 0:
                del self._by_address[address]
            return False
        self._by_listener[listener] += 1
        self._by_address[address] += 1
        return True

    def remove(self, listener: str, address: str) -> None:
        self._by_listener[listener] -= 1
        self._by_address[address] -= 1
        if self._by_address[address] <= 0:
            del self._by_address[address]
