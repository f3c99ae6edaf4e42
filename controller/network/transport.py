"""Bytes in and out of one socket, and nothing about what they mean.

Rule: whatever a socket raises is `Disconnected` beyond this module. A transport gives each turn of
its reader to the other tasks once (trio's checkpoint) and sends without one unless the kernel's
buffer is full: that is a third fewer turns of the event loop a request than `trio.SocketStream`
takes. Another kind of stream (`tls.py`) needs these four methods, nothing else.
"""

import socket
from collections.abc import Awaitable, Callable
from typing import Protocol

import trio

READ_BYTES = 64 * 1024
"""Of one read: a client that pipelines cannot hold the event loop for longer than the requests in
it take.
"""
PART_BYTES = 64 * 1024
"""Of what the kernel does not take at once: who takes that much has not stopped reading."""


class Disconnected(Exception):  # noqa: N818 - it happens to every connection once
    """The other end is gone, or cannot be written to any more."""


class Transport(Protocol):
    """A connection as bytes. All that reads or writes raises Disconnected."""

    async def receive(self, most: int = READ_BYTES, *, expected: bool = True) -> bytes:
        """Receive some bytes, none at the end of the stream. Always a checkpoint. Bytes that are
        not `expected` to be there are waited for first.
        """

    def send_nowait(self, data: bytes) -> int:
        """Send what the kernel takes at once, and return how many bytes that was."""

    async def send_rest(self, data: memoryview) -> None:
        """Send all that `send_nowait` left over."""

    def close(self) -> None: ...


class SocketTransport:
    """A connected TCP socket of our own (TCP_NODELAY is set: trio does so when it accepts or
    connects).
    """

    def __init__(self, stream: trio.SocketStream) -> None:
        """Take over the socket of `stream`, which is of no use afterwards."""
        self._socket = socket.socket(fileno=stream.socket.detach())
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    async def receive(self, most: int = READ_BYTES, *, expected: bool = True) -> bytes:
        if expected:
            await trio.lowlevel.checkpoint()
        else:  # to wait is a checkpoint, and to ask for what is not there costs a system call and an exception
            await self._wait(trio.lowlevel.wait_readable)
        while True:
            try:
                return self._socket.recv(most)
            except BlockingIOError:
                await self._wait(trio.lowlevel.wait_readable)
            except OSError as error:
                raise Disconnected(str(error)) from error

    def send_nowait(self, data: bytes) -> int:
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
        """Close the socket; whoever waits for it gets Disconnected."""
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()

    async def _wait(self, ready: Callable[[socket.socket], Awaitable[None]]) -> None:
        try:
            await ready(self._socket)
        except trio.ClosedResourceError as error:
            raise Disconnected("closed from this end") from error


def notice_death(connection: trio.socket.SocketType, seconds: int) -> None:
    """Let a connection break after so many seconds without a sign of the machine at
    its other end.
    """
    for option, value in (
        ("TCP_KEEPIDLE", max(1, seconds // 2)),
        ("TCP_KEEPINTVL", max(1, seconds // 4)),
        ("TCP_KEEPCNT", 2),
        ("TCP_USER_TIMEOUT", seconds * 1000),
    ):
        if hasattr(socket, option):  # Linux has all of them
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


class Outbox:
    """The bytes that wait to be sent on one transport. Whoever flushes first sends for all; what
    comes meanwhile joins the next send.
    """

    __slots__ = ("_on_unread", "_parts", "_sending", "_transport", "queued_bytes")

    def __init__(self, transport: Transport, on_unread: Callable[[int], None] = lambda _size: None) -> None:
        """Queue for a transport. `on_unread` is told how much is kept of what the kernel does not
        take at once, whenever it takes a part, and 0 at the end.
        """
        self.queued_bytes = 0
        """Put and not yet taken by the kernel."""
        self._parts: list[bytes] = []
        self._sending = False
        self._transport = transport
        self._on_unread = on_unread

    def put(self, data: bytes) -> None:
        self._parts.append(data)
        self.queued_bytes += len(data)

    def flush_nowait(self) -> bool:
        """Send what the kernel takes; True if nothing is left for `flush`. Raises Disconnected."""
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
        """Send all that is queued; at once a no-op if somebody else is at it. A checkpoint only if
        the kernel's buffer is full.
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
