"""What kazoo asks of its surroundings - threads, sockets, waiting - made lean.

Rule: one thread, and no system call that can be saved. kazoo's own handler takes three threads and,
for each request, two selectors of five system calls, a byte through a socket pair that blocks when
some 280 requests are queued, and a condition. Here requests of a burst leave in one send, and
answers that came in one packet are read by one receive. kazoo finds what it needs by name (its
`IHandler` interface); this module does not import it.
"""

import contextlib
import logging
import math
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

log = logging.getLogger("minicontroller.store")

RECEIVE_BYTES = 1 << 16
CORK_BYTES = 1 << 15
"""A burst of small requests is sent when it has grown to this, or ends."""
CONNECT_POLL_SECONDS = 0.1
"""How long a connection attempt may take no notice that the store is being closed."""


class LinkTimeout(Exception):  # noqa: N818 - kazoo knows it as `timeout_exception`
    """Nothing came, or could be sent, in the time that kazoo allows."""


class Doorbell:
    """Tells kazoo's thread that requests are queued: rung once for each, of which only the first
    makes a system call.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self._lock = threading.Lock()
        self._closed = False
        self.rings = 0

    def fileno(self) -> int:
        return self._read

    def send(self, data: bytes) -> int:
        with self._lock:
            if self._closed:
                raise OSError("closed")
            self.rings += 1
            if self.rings == 1:
                os.write(self._write, b"\0")
        return len(data)

    def recv(self, _: int) -> bytes:
        with self._lock:
            if not self.rings:
                raise BlockingIOError
            self.rings -= 1
            if not self.rings:
                os.read(self._read, 1)
        return b"\0"

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._read)
                os.close(self._write)


class Link:
    """The socket to a server, as kazoo's thread uses it: buffered in both directions."""

    def __init__(self, connection: socket.socket, doorbell: Doorbell) -> None:
        self._socket = connection
        self._doorbell = doorbell
        self._received = b""
        self._at = 0
        self._readable = False
        """The last poll said so: no need to ask again before the next receive."""
        self._corked: list[bytes] = []
        self._corked_bytes = 0
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._poll_both = select.poll()
        self._poll_both.register(connection, select.POLLIN)
        self._poll_both.register(doorbell, select.POLLIN)
        self.write_timeout: float | None = None

    def fileno(self) -> int:
        return self._socket.fileno()

    def setblocking(self, flag: int) -> None:
        self._socket.setblocking(bool(flag))

    def pending(self) -> int:
        """Return how many bytes can be read without waiting, at least (kazoo asks before it
        selects).
        """
        return len(self._received) - self._at or self._readable

    def recv(self, size: int) -> bytes:
        at = self._at
        if at == len(self._received):
            self._readable = False
            if size >= RECEIVE_BYTES:
                return self._socket.recv(size)
            self._received = self._socket.recv(RECEIVE_BYTES)
            at = 0
        part = self._received[at : at + size]
        self._at = at + len(part)
        return part

    def send(self, data: memoryview | bytes) -> int:
        """Take all of the data; while more requests wait at the door, hold it back."""
        self._corked.append(bytes(data))
        self._corked_bytes += len(data)
        if self._doorbell.rings <= 1 or self._corked_bytes >= CORK_BYTES:
            self.flush()
        return len(data)

    def flush(self) -> None:
        if not self._corked:
            return
        rest = memoryview(b"".join(self._corked) if len(self._corked) > 1 else self._corked[0])
        self._corked, self._corked_bytes = [], 0
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                self._wait_writable()

    def select(self, timeout: float | None, *, with_doorbell: bool) -> tuple[bool, bool]:
        """Wait, at most until the timeout, and return whether an answer can be read and whether the
        doorbell has rung.
        """
        if with_doorbell and self._doorbell.rings:
            return bool(self.pending()), True
        if self.pending():
            return True, False
        self.flush()
        milliseconds = None if timeout is None else math.ceil(timeout * 1000)
        ready = (self._poll_both if with_doorbell else self._poll).poll(milliseconds)
        bell = self._doorbell.fileno()
        self._readable = any(fd != bell for fd, _ in ready)
        return self._readable, len(ready) > self._readable

    def cut(self) -> None:
        """Make whoever waits here see the end of the connection; called from another thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

    def _wait_writable(self) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT)
        if not poll.poll(None if self.write_timeout is None else self.write_timeout * 1000):
            raise LinkTimeout("The server takes no more bytes")


class LinkHandler:
    """kazoo's handler with one thread, which posts whatever it finds out to the event loop."""

    name = "minicontroller"
    timeout_exception = LinkTimeout
    sleep_func = staticmethod(time.sleep)
    running = True

    def __init__(
        self, post: Callable[[Callable[[], object]], None], on_end: Callable[[Exception | None], None]
    ) -> None:
        self._post = post
        self._on_end = on_end
        self._doorbell = Doorbell()
        self._link: Link | None = None
        self.closing = threading.Event()
        self.pause_seconds = 0.0
        """Before the next thread begins its work."""

    def start(self) -> None:
        """Start nothing: there are no workers."""

    def stop(self) -> None:
        """Stop nothing: there are no workers."""

    def create_socket_pair(self) -> tuple[Doorbell, Doorbell]:
        self._doorbell = Doorbell()
        return self._doorbell, self._doorbell

    def create_connection(self, address: tuple[str, int], timeout: float, **_: object) -> Link:
        deadline = time.monotonic() + timeout
        family, kind, protocol, _name, target = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        connection = socket.socket(family, kind, protocol)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setblocking(False)
            self._connect(connection, target, deadline)
        except BaseException:
            connection.close()
            raise
        self._link = Link(connection, self._doorbell)
        return self._link

    def _connect(self, connection: socket.socket, target: Any, deadline: float) -> None:
        try:
            connection.connect(target)
        except BlockingIOError:
            poll = select.poll()
            poll.register(connection, select.POLLOUT)
            while not poll.poll(CONNECT_POLL_SECONDS * 1000):
                if self.closing.is_set() or time.monotonic() > deadline:
                    raise LinkTimeout("no connection in time") from None
            number = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number:
                raise OSError(number, os.strerror(number)) from None

    def select(
        self, readers: Sequence[Link | Doorbell], writers: Sequence[Link], _: Sequence[object], timeout: float | None
    ) -> tuple[list[Link | Doorbell], list[Link], list[object]]:
        if writers:
            # Optimistic: the link itself waits when the socket takes no more.
            writers[0].write_timeout = timeout
            return [], list(writers), []
        link = readers[0]
        assert isinstance(link, Link)
        readable, rung = link.select(timeout, with_doorbell=len(readers) > 1)
        ready: list[Link | Doorbell] = [link] if readable else []
        if rung:
            ready.append(readers[1])
        return ready, [], []

    def event_object(self) -> threading.Event:
        return threading.Event()

    def lock_object(self) -> Any:
        return threading.Lock()

    def rlock_object(self) -> Any:
        return threading.RLock()

    def dispatch_callback(self, callback: Any) -> None:
        """Run the callback of a watch of kazoo's in the event loop."""
        self._post(lambda: callback.func(*callback.args))

    def spawn(self, function: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=self._run, args=(function,), name="zookeeper", daemon=True)
        thread.start()
        return thread

    def cut(self) -> None:
        """Wake kazoo's thread, whatever it waits for."""
        if self._link is not None:
            self._link.cut()

    def _run(self, function: Callable[[], object]) -> None:
        """Run kazoo's thread; whatever ends it is told, never printed."""
        self.closing.wait(self.pause_seconds)
        failure: Exception | None = None
        try:
            function()
        except Exception as error:  # noqa: BLE001 - a library's thread: what it raises is reported to the loop
            failure = error
        self._on_end(failure)


class Failures:
    """A logger for kazoo, silent but for the reason why no server can be reached, told once in a
    sentence of ours.
    """

    def __init__(self, hosts: str) -> None:
        self._hosts = hosts
        self._connected = False
        self._count = 0
        self._told = False

    def connected(self) -> None:
        self._connected = True
        self._count = 0
        if self._told:
            self._told = False
            log.warning("ZooKeeper at %s answers again", self._hosts)

    def lost(self) -> None:
        """Note that the connection broke: what fails from now on are attempts to make another."""
        self._connected = False

    def log(self, *_: object) -> None:
        """Log nothing: these are the levels below a warning."""

    debug = info = log

    def warning(self, text: str, *arguments: object) -> None:
        if self._connected or not text.startswith(("Connection", "Cannot")):
            return
        self._count += 1
        if self._count == self._hosts.count(",") + 1 and not self._told:
            self._told = True
            reason = (text % arguments).removeprefix("Connection dropped: ").removeprefix("socket connection error: ")
            log.warning("ZooKeeper at %s cannot be reached (%s): trying again until it answers", self._hosts, reason)

    warn = warning

    def exception(self, text: str, *arguments: object) -> None:
        """Log nothing: the end of kazoo's thread tells it."""
