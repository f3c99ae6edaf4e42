"""Binds the sockets of a listener.

Rule: a listener has one port, whatever its addresses are. Each of the wildcard addresses stands for
all addresses of IPv4 and IPv6, as in Java; where the machine has only one of the two families, for
those of that one.
"""

import errno
import socket

import trio

EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - whoever configures a wildcard asks for it
WILDCARDS = frozenset({"", *EVERY_ADDRESS})
OVERLOADED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
"""Errors of accepting a connection that pass: the machine has no room for one at the moment."""
UNSUPPORTED = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
MOST_TRIES = 20
"""How many free ports of one address are tried before one is free at all of them."""


async def open_listeners(host: str, port: int) -> list[trio.SocketListener]:
    """Listen at every address of a host, at the same free port of each if `port` is 0. Raises
    OSError.
    """
    for _ in range(MOST_TRIES - 1):
        try:
            return await _opened(host, port)
        except OSError as error:
            if port or error.errno != errno.EADDRINUSE:
                raise
    return await _opened(host, port)


async def _opened(host: str, port: int) -> list[trio.SocketListener]:
    opened: list[trio.SocketListener] = []
    unsupported: OSError | None = None
    try:
        for address in await _addresses(host, port):
            try:
                opened += await trio.open_tcp_listeners(port, host=address)
            except OSError as error:
                if host not in WILDCARDS or error.errno not in UNSUPPORTED:
                    raise
                unsupported = error
                continue
            port = port_of(opened[0])
    except BaseException:
        for each in opened:
            each.socket.close()
        raise
    if not opened and unsupported is not None:
        raise unsupported
    return opened


def port_of(listener: trio.SocketListener) -> int:
    port: int = listener.socket.getsockname()[1]
    return port


async def _addresses(host: str, port: int) -> list[str]:
    if host in WILDCARDS:
        return list(EVERY_ADDRESS)
    if port:
        return [host]
    found = await trio.socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
