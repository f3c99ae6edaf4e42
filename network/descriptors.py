"""The limit of file descriptors of this process, and how many of them connections of clients may
use.

The descriptors that ZooKeeper, other nodes, the audit log and the HTTP port need stay reserved.
"""

import contextlib
import resource

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
