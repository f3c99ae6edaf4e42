"""A wire that a test can cut: between a client in this process and a server.

It runs in threads of its own, so that a test may block the event loop meanwhile.
"""

import contextlib
import math
import socket
import threading
import time
from types import TracebackType
from typing import Self

CHUNK_BYTES = 1 << 16


class Proxy:
    """A TCP proxy that forwards everything until it is cut or made to swallow bytes."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._cut = False
        self._swallowed: bool | None = None
        """Answers (True), requests (False), or nothing."""
        self._delay_seconds = 0.0
        self._bytes_left: float = math.inf
        """Of requests, before they are lost."""
        self._threads: list[threading.Thread] = []
        self._spawn(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def connect(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """Break open connections and refuse new ones until `mend`."""
        with self._lock:
            self._cut = True
            self._swallowed = None
            self._bytes_left = math.inf
            for end in self._open:
                shut(end)

    def mend(self) -> None:
        with self._lock:
            self._cut = False

    def swallow_answers(self) -> None:
        """From now on the server hears everything, and its answers go nowhere, until `cut`."""
        with self._lock:
            self._swallowed = True

    def swallow_requests(self) -> None:
        """From now on the server hears nothing, and nobody is told, until `cut`."""
        with self._lock:
            self._swallowed = False

    def swallow_requests_after(self, count: int) -> None:
        """The server hears so many bytes more, and nothing behind them, until `cut`."""
        with self._lock:
            self._bytes_left = count

    def delay(self, seconds: float) -> None:
        """Each way takes so much longer from now on."""
        self._delay_seconds = seconds

    def close(self) -> None:
        self.cut()
        shut(self._listener)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _spawn(self, function: object, *arguments: object) -> None:
        thread = threading.Thread(target=function, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._join(client)

    def _join(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        for end in (client, server):  # as both of them have it: no write waits for an acknowledgement
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            if self._cut:
                client.close()
                server.close()
                return
            self._open |= {client, server}
        both = threading.Barrier(2)
        self._spawn(self._pump, client, server, both, False)
        self._spawn(self._pump, server, client, both, True)

    def _pump(self, source: socket.socket, sink: socket.socket, both: threading.Barrier, answers: bool) -> None:
        lost = False
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                if self._delay_seconds:
                    time.sleep(self._delay_seconds)
                # A wire that has lost something carries nothing that comes behind it, also while it
                # is being cut.
                if not answers:
                    self._bytes_left -= len(data)
                lost = lost or self._swallowed is answers or (not answers and self._bytes_left < 0)
                if not lost:
                    sink.sendall(data)
        shut(source)
        shut(sink)
        both.wait()
        # Each thread closes its own end, once nobody uses it any more.
        with self._lock:
            self._open.discard(source)
        source.close()


def shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
