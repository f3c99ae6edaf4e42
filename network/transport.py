"""Reads and writes the bytes of one socket.

Any error of a socket is raised as `Disconnected`. A read is one checkpoint of trio, and a write is
none unless the kernel's buffer is full. This saves a third of the event loop's turns for each
request, compared with `trio.SocketStream`. Another kind of stream (`tls.py`) implements the methods
of `Transport`.
"""

import socket
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

import trio

READ_BYTES = 64 * 1024
"""How many bytes are read at once. The requests in them are answered in one turn of the event loop.
"""
PART_BYTES = 64 * 1024
"""How many bytes are sent at once after the kernel's buffer was full. A client that takes one part
counts as reading.
"""


_ESTABLISHED = 1
"""The state, in the first byte of Linux's TCP_INFO, of a connection that neither end has closed."""


class Disconnected(Exception):  # noqa: N818 - it happens to every connection once
    """The other end has closed the connection, or it broke."""


class Transport(Protocol):
    """A connection that carries bytes. What reads or writes raises Disconnected."""

    @property
    def has_left(self) -> bool:
        """Whether the other end has closed the connection, though there may be bytes that were not
        read yet.
        """

    async def secure(self) -> bytes | None:
        """Do what comes before the first byte. Return the certificate of the other end in DER, or
        None if it has shown none.
        """

    def receive(self, most: int = READ_BYTES, *, expected: bool = True) -> Coroutine[Any, Any, bytes]:
        """Return some bytes, or none at the end of the stream. Always a checkpoint. If bytes are
        `expected`, it tries to read before it waits.
        """

    def send_nowait(self, data: bytes | memoryview) -> int:
        """Send as many bytes as the kernel takes at once, and return their number."""

    async def send_rest(self, data: memoryview) -> None:
        """Send bytes that `send_nowait` has not sent, waiting for the kernel."""

    def close(self) -> None: ...


class SocketTransport:
    """A connected TCP socket. Trio has set TCP_NODELAY when it accepted or connected."""

    def __init__(self, stream: trio.SocketStream) -> None:
        """Take over the socket of `stream`, which cannot be used afterwards."""
        self._socket = socket.socket(fileno=stream.socket.detach())
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._read = self._socket.recv

    @property
    def raw_socket(self) -> socket.socket:
        return self._socket

    @property
    def has_left(self) -> bool:
        if sys.platform != "linux":
            return False  # what is not read is not noticed
        try:
            return self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != _ESTABLISHED
        except OSError:
            return True

    async def secure(self) -> None:
        """Do nothing: the bytes go as they are."""

    def receive(self, most: int = READ_BYTES, *, expected: bool = True) -> Coroutine[Any, Any, bytes]:
        return self.receive_by(self._read, most, expected=expected)

    async def receive_by(self, read: Callable[[int], bytes], most: int, *, expected: bool) -> bytes:
        """Receive by a function that reads the socket once, and raises BlockingIOError if more has
        to come before it can return anything.
        """
        if expected:
            await trio.lowlevel.checkpoint()
        else:  # waiting is a checkpoint, and saves a failing system call
            await self._wait(trio.lowlevel.wait_readable)
        while True:
            try:
                return read(most)
            except BlockingIOError:
                pass  # to wait here would keep the exception, with its frames, as long as the client is idle
            except OSError as error:
                raise Disconnected(str(error)) from error
            await self._wait(trio.lowlevel.wait_readable)

    def send_nowait(self, data: bytes | memoryview) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise Disconnected(str(error)) from error

    async def send_rest(self, data: memoryview) -> None:
        while data:
            await self._wait(trio.lowlevel.wait_writable)
            try:
                data = data[self._socket.send(data) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise Disconnected(str(error)) from error

    def close(self) -> None:
        """Close the socket. A task that waits for it gets Disconnected."""
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()

    async def _wait(self, ready: Callable[[socket.socket], Awaitable[None]]) -> None:
        try:
            await ready(self._socket)
        except trio.ClosedResourceError as error:
            raise Disconnected("closed from this end") from error


def notice_death(connection: trio.socket.SocketType, seconds: int) -> None:
    """Have the kernel break a connection after these seconds without a sign of the other end."""
    for option, value in (
        ("TCP_KEEPIDLE", max(1, seconds // 2)),
        ("TCP_KEEPINTVL", max(1, seconds // 4)),
        ("TCP_KEEPCNT", 2),
        ("TCP_USER_TIMEOUT", seconds * 1000),
    ):
        if hasattr(socket, option):  # Linux has all of them
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _nobody(_size: int) -> None:
    """Take no note of bytes that are not read."""


class Outbox:
    """The bytes that wait to be sent on one transport. The first task that flushes sends for all;
    bytes that are put meanwhile join its next send.
    """

    __slots__ = ("_on_unread", "_parts", "_sending", "_transport", "queued_bytes")

    def __init__(self, transport: Transport, on_unread: Callable[[int], None] = _nobody) -> None:
        """Make an outbox. `on_unread` is called with the number of bytes that the kernel has not
        taken at once, again for each part that it takes, and with 0 at the end.
        """
        self.queued_bytes = 0
        """How many bytes were put and not yet taken by the kernel."""
        self._parts: list[bytes] = []
        self._sending = False
        self._transport = transport
        self._on_unread = on_unread

    def put(self, data: bytes) -> None:
        self._parts.append(data)
        self.queued_bytes += len(data)

    def forget(self) -> None:
        """Drop what was not sent, and who is called; the connection has ended."""
        self._parts.clear()
        self._on_unread = _nobody

    def flush_nowait(self) -> bool:
        """Send what the kernel takes at once. Return whether nothing is left for `flush`. Raises
        Disconnected.
        """
        if self._sending or not self._parts:
            return True
        data = b"".join(self._parts)
        self._parts.clear()
        sent = self._transport.send_nowait(data)
        self.queued_bytes -= sent
        if sent < len(data):
            self._parts.append(data[sent:])
        return not self._parts

    async def flush(self) -> None:
        """Send all that is queued, unless another task is sending: then return at once. A
        checkpoint only if the kernel's buffer is full. Raises Disconnected.
        """
        if self._sending:
            return
        self._sending = True
        try:
            while self._parts:
                data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
                self._parts.clear()
                sent = self._transport.send_nowait(data)
                if sent < len(data):
                    await self._send_rest(data, sent)
                self.queued_bytes -= len(data)
        finally:
            self._sending = False

    async def _send_rest(self, data: bytes, sent: int) -> None:
        while sent < len(data):
            self._on_unread(len(data))
            await self._transport.send_rest(memoryview(data)[sent : sent + PART_BYTES])
            sent += PART_BYTES
        self._on_unread(0)
