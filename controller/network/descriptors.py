"""How many files and connections this process may have open at once, and how many of them strangers
may hold.

Rule: strangers never get the last ones. What ZooKeeper, the other nodes, the audit log and the HTTP
port need stays free for them.
"""

import contextlib
import resource

RESERVED = 192
"""For the process: its HTTP port may hold a hundred connections, its log, libraries and files the
rest.
"""
RESERVED_FOR_A_NODE = 64
"""ZooKeeper, the other nodes' connections and ours to them, the audit log."""
MOST_CONNECTIONS = 10_000
"""Of a node whose configuration names no number: they cost memory too, and hardly any cluster's
administrators are as many.
"""


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
