"""Ports for servers that cannot say which one they got.

No port is given twice while the process lives that was given it, neither to this process nor to
another one that runs tests on this machine: two servers never want the same, and a server that is
down finds its own free when it comes back.
"""

import secrets
import socket

PORTS = range(15_000, 32_000)
"""Below those that systems hand out by themselves, so that no other test's connection sits on one
until it is used.
"""


def free_port() -> int:
    """Return a random port of 127.0.0.1 that is free, and reserved for this process."""
    while True:
        port = secrets.choice(PORTS)
        try:
            with socket.create_server(("127.0.0.1", port)):
                pass
            _reserve(port)
        except OSError:
            continue
        return port


def _reserve(port: int) -> None:
    """Take the port's name among Linux's abstract addresses, which the system frees at the end of
    the process. Raises OSError if another process has it.
    """
    with socket.socket(socket.AF_UNIX) as mark:
        mark.bind(f"\0minicontroller-tests-port-{port}")
        mark.detach()
