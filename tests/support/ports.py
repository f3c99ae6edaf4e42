"""Ports for servers that cannot say which one they got.

No port is given twice, so that two servers of one test never want the same, and a server that is
down finds its own free when it comes back. Processes that run tests side by side draw from parts of
their own.
"""

import os
import secrets
import socket

PORTS = range(15_000, 32_000)
"""Below those that systems hand out by themselves, so that no other test's connection sits on one
until it is used.
"""
PARTS = 8
"""So many processes have ports of their own."""

_given: set[int] = set()


def free_port() -> int:
    """Return a random free port of 127.0.0.1 that this process was never given before."""
    part = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % PARTS
    while True:
        port = secrets.choice(PORTS[part::PARTS])
        if port in _given:
            continue
        try:
            with socket.create_server(("127.0.0.1", port)):
                _given.add(port)
                return port
        except OSError:
            continue
