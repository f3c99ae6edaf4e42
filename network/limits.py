"""The limits on connections, by Kafka's keys: `max.connections` in all, for each listener, and for
each address.

A connection of an address that has too many is refused at once. If a node or a listener is full,
idle connections are closed, of the addresses that have the most. While there are none, new
connections wait in the kernel's queue. At the inter-broker listener new connections wait only
for the listener's own limit, as at Kafka, because they may be nodes: connections of clients are
closed for them.

Connections use what is left of the process's limit of file descriptors: those that ZooKeeper, other
nodes, the audit log and the HTTP port need stay reserved.
"""

import contextlib
import resource
from collections import Counter
from collections.abc import Mapping

import msgspec

from ..process.settings.node_config import NodeConfig
from .memory import DEFAULT_BYTES

UNLIMITED = 2**31 - 1  # Kafka's default for all of them
QUIET_SECONDS = 1.0
"""A connection without a running request counts as idle after as many seconds without a byte."""
RESERVED = 192
"""Descriptors reserved for the process: a hundred for its HTTP port, the others for its log,
libraries and files.
"""
RESERVED_FOR_A_NODE = 64
"""Descriptors reserved for each node: for ZooKeeper, connections from and to other nodes, and the
audit log.
"""
MOST_CONNECTIONS = 10_000
"""The default of `max.connections`: connections cost memory, too."""


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one node, with Kafka's defaults. The keys are named beside them."""

    max_request_bytes: int = 100 * 1024 * 1024
    """`socket.request.max.bytes`"""
    max_unauthenticated_bytes: int = 512 * 1024
    """`sasl.server.max.receive.size`"""
    max_unfinished_bytes: int = DEFAULT_BYTES
    """`queued.max.request.bytes`"""
    max_connections: int = UNLIMITED
    """`max.connections`"""
    max_connections_per_ip: int = UNLIMITED
    """`max.connections.per.ip`"""
    per_ip_overrides: Mapping[str, int] = {}
    """`max.connections.per.ip.overrides`, by address"""
    of_listeners: Mapping[str, int] = {}
    """`listener.name.<listener>.max.connections`, by the name of the listener"""
    max_idle_seconds: float = 600.0
    """`connections.max.idle.ms`"""
    failed_authentication_delay_seconds: float = 0.1
    """`connection.failed.authentication.delay.ms`"""


def connection_limits(config: NodeConfig, room: int) -> ConnectionLimits:
    """Return the configured connection limits, lowered to the `room` of file descriptors."""
    wanted = config.integer("max.connections")
    idle_ms = config.integer("connections.max.idle.ms")
    return ConnectionLimits(
        max_request_bytes=config.integer("socket.request.max.bytes"),
        max_unauthenticated_bytes=config.integer("sasl.server.max.receive.size"),
        max_unfinished_bytes=_unfinished_bytes(config),
        max_connections=min(room, MOST_CONNECTIONS if wanted == UNLIMITED else wanted),
        max_connections_per_ip=config.integer("max.connections.per.ip"),
        per_ip_overrides=config.max_connections_per_ip_overrides,
        of_listeners=_of_listeners(config),
        max_idle_seconds=float("inf") if idle_ms < 0 else idle_ms / 1000,
        failed_authentication_delay_seconds=config.integer("connection.failed.authentication.delay.ms") / 1000,
    )


def _of_listeners(config: NodeConfig) -> dict[str, int]:
    """Return the most connections of each listener that has a limit of its own."""
    names = {listener.name: f"listener.name.{listener.name.lower()}.max.connections" for listener in config.listeners}
    return {name: limit for name, key in names.items() if (limit := config.optional_integer(key)) is not None}


def _unfinished_bytes(config: NodeConfig) -> int:
    """Return the most bytes of unfinished requests, which allows at least one request."""
    wanted = config.integer("queued.max.request.bytes")
    return max(wanted if wanted > 0 else DEFAULT_BYTES, config.integer("socket.request.max.bytes"))


class ConnectionQuotas:
    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        """The limits in force, which may change at any time."""
        self._by_listener: Counter[str] = Counter()
        self._by_address: Counter[str] = Counter()

    def of_address(self, address: str) -> int:
        return self._by_address[address]

    def has_its_share(self, address: str) -> bool:
        return self._by_address[address] * len(self._by_address) >= self.total

    @property
    def total(self) -> int:
        return self._by_listener.total()

    def is_full(self) -> bool:
        """Whether new connections at the listeners for clients have to wait."""
        return self.total >= self.limits.max_connections

    def listener_is_full(self, listener: str) -> bool:
        return self._by_listener[listener] >= self.limits.of_listeners.get(listener, UNLIMITED)

    def excess(self) -> int:
        """Return how many there are more than `max.connections`: nodes are accepted beyond it."""
        return max(0, self.total - self.limits.max_connections)

    def add(self, listener: str, address: str) -> bool:
        """Count a connection, and return True; return False if its address has too many already."""
        limit = self.limits.per_ip_overrides.get(address, self.limits.max_connections_per_ip)
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


def raise_limit() -> int:
    """Raise the limit of file descriptors as far as this process may, and return it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # the system has a bound of its own below
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS * 100 if allowed == resource.RLIM_INFINITY else allowed


def room_for_connections(allowed: int, nodes: int) -> int:
    """Return how many connections each of the nodes in this process may hold."""
    reserved = min(RESERVED + nodes * RESERVED_FOR_A_NODE, allowed // 2)
    return max(1, (allowed - reserved) // nodes)
