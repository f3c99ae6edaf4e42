"""The surroundings that kazoo asks for, as its `IHandler` interface names them: one thread, and
connections that it shares with the store.

kazoo finds what it needs by name; this module does not import it.
"""

import errno
import logging
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from .server_connection import RECEIVE_BYTES, ServerConnection
from .tls_layer import TlsLayer

log = logging.getLogger("minicontroller.store")

CONNECT_POLL_SECONDS = 0.1
"""How long a connection attempt may take no notice that the session is being ended."""


class KazooTimeout(Exception):  # noqa: N818 - kazoo knows it as `timeout_exception`
    """Nothing came in the time that kazoo allows."""


class KazooHandler:
    """The handler of one client of kazoo's. `deliver` gets the store's frames of each connection;
    `on_end` is the last call of kazoo's thread, with what ended it if that was an error. `tls` is
    what connections are encrypted by; `log_in` is called in kazoo's thread on each connection whose
    session is open, before the store's first request.
    """

    name = "minicontroller"
    timeout_exception = KazooTimeout
    sleep_func = staticmethod(time.sleep)
    running = True

    def __init__(
        self,
        deliver: Callable[[ServerConnection, list[bytes]], None],
        on_end: Callable[[Exception | None], None],
        *,
        pause_seconds: float = 0.0,
        tls: ssl.SSLContext | None = None,
        log_in: Callable[[ServerConnection], None] | None = None,
        on_attempt: Callable[[], None] = lambda: None,
    ) -> None:
        self._deliver = deliver
        self._on_end = on_end
        self._tls = tls
        self._log_in = log_in
        self._on_attempt = on_attempt
        """Called in kazoo's thread before each attempt to connect."""
        self._pause_seconds = pause_seconds
        self._doorbell: socket.socket | None = None
        self.closing = threading.Event()
        """Set when the session is to end: attempts to connect are given up."""
        self.connection: ServerConnection | None = None

    def start(self) -> None:
        pass  # there are no workers

    stop = start

    def create_socket_pair(self) -> tuple[socket.socket, socket.socket]:
        """Return the end that kazoo's thread reads, and the end by which it is woken."""
        reading, self._doorbell = socket.socketpair()
        reading.setblocking(False)
        self._doorbell.setblocking(False)
        return reading, self._doorbell

    def create_connection(
        self, address: tuple[str, int], timeout: float, hostname: str, **_: object
    ) -> ServerConnection:
        self._on_attempt()
        deadline = time.perf_counter() + timeout
        family, kind, protocol, _name, target = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        connection = socket.socket(family, kind, protocol)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setblocking(False)
            self._connect(connection, target, deadline)
            tls = None if self._tls is None else self._shake_hands(connection, TlsLayer(self._tls, hostname), deadline)
        except BaseException:
            connection.close()
            raise
        assert self._doorbell is not None, "kazoo makes the pair first"
        self.connection = ServerConnection(connection, self._doorbell, self._deliver, tls)
        return self.connection

    def _connect(self, connection: socket.socket, target: Any, deadline: float) -> None:
        try:
            connection.connect(target)
        except BlockingIOError:
            self._await(connection, select.POLLOUT, deadline)
            number = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number:
                raise OSError(number, os.strerror(number)) from None

    def _shake_hands(self, connection: socket.socket, tls: TlsLayer, deadline: float) -> TlsLayer:
        received, is_done = b"", False
        while not is_done:
            try:
                is_done = tls.handshake(received)
            finally:  # after a failure this is the alert, by which the server learns the reason
                unsent = tls.outgoing()
                while unsent:
                    self._await(connection, select.POLLOUT, deadline)
                    unsent = unsent[connection.send(unsent) :]
            if not is_done:
                self._await(connection, select.POLLIN, deadline)
                received = connection.recv(RECEIVE_BYTES)
                if not received:
                    raise OSError(errno.ECONNRESET, "the server ended the connection before TLS began")
        return tls

    def _await(self, connection: socket.socket, events: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(connection, events)
        while not poll.poll(CONNECT_POLL_SECONDS * 1000):
            if self.closing.is_set() or time.perf_counter() > deadline:
                raise KazooTimeout("no connection in time")

    def select(
        self,
        readers: Sequence[ServerConnection | socket.socket],
        writers: Sequence[ServerConnection],
        _: Sequence[object],
        timeout: float | None,
    ) -> tuple[list[ServerConnection | socket.socket], list[ServerConnection], list[object]]:
        if writers:
            return [], list(writers), []  # a connection takes whatever it is given
        connection, *others = readers
        assert isinstance(connection, ServerConnection)
        doorbell = others[0] if others else None
        assert not isinstance(doorbell, ServerConnection)
        if doorbell is not None and self._log_in is not None and not connection.is_authenticated:
            self._log_in(connection)
        readable, rung = connection.wait(timeout, doorbell)
        ready: list[ServerConnection | socket.socket] = [connection] if readable else []
        if rung and doorbell is not None:
            ready.append(doorbell)
        return ready, [], []

    def event_object(self) -> threading.Event:
        return threading.Event()

    def spawn(self, function: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=self._run, args=(function,), name="zookeeper", daemon=True)
        thread.start()
        return thread

    def cut(self) -> None:
        """Wake kazoo's thread, whatever it waits for."""
        if self.connection is not None:
            self.connection.cut()

    def _run(self, function: Callable[[], object]) -> None:
        """Run kazoo's thread; an error that ends it is reported, never printed."""
        self.closing.wait(self._pause_seconds)
        failure: Exception | None = None
        try:
            function()
        except Exception as error:  # noqa: BLE001 - a library's thread: what it raises is reported to the loop
            failure = error
        self._on_end(failure)


class ReachabilityLog:
    """A logger for kazoo that writes one line when no server can be reached, and one when a server
    answers again.
    """

    def __init__(self, hosts: str) -> None:
        self._hosts = hosts
        self._connected = False
        self._failures = 0
        self._reported = False
        self._refusal = ""

    def connected(self) -> None:
        self._connected = True
        self._failures = 0
        if self._reported:
            self._reported = False
            log.warning("ZooKeeper at %s answers again", self._hosts)

    def lost(self) -> None:
        """Note that the connection broke: what fails from now on are attempts to make another."""
        self._connected = False

    def log(self, *_: object) -> None:
        """Log nothing: these are the levels below a warning."""

    debug = info = log

    def login_refused(self, sentence: str) -> None:
        """Log that a server refused this node's login, once until one accepts it."""
        if sentence != self._refusal:
            self._refusal = sentence
            log.error("ZooKeeper at %s %s", self._hosts, sentence)

    def logged_in(self) -> None:
        self._refusal = ""

    def warning(self, text: str, *arguments: object) -> None:
        if self._connected or not text.startswith(("Connection", "Cannot")):
            return
        self._failures += 1
        if self._failures == self._hosts.count(",") + 1 and not self._reported:
            self._reported = True
            reason = (text % arguments).removeprefix("Connection dropped: ").removeprefix("socket connection error: ")
            log.warning("ZooKeeper at %s cannot be reached (%s): trying again until it answers", self._hosts, reason)

    warn = warning

    def exception(self, text: str, *arguments: object) -> None:
        """Log nothing: the end of kazoo's thread reports the error."""
