"""Ports for servers that cannot say which one they got."""

import secrets
import socket

PORTS = range(15_000, 32_000)
"""Below those that systems hand out by themselves, so that no other test's connection sits on one
until it is used.
"""


def free_port() -> int:
    """Return a random free port of 127.0.0.1, since tests run in parallel."""
    while True:
        port = secrets.choice(PORTS)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
