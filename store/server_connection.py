"""The connection to one ZooKeeper server, shared by kazoo and the store.

kazoo sees a socket that carries nothing but its session: the exchange that opens it,
authentication, heartbeats and the close. The store's requests are written to the same socket by the
event loop, with transaction numbers (xid) that kazoo never reaches; so their answers, and the
events of watches, are told apart and handed to the store.

Rule: only kazoo's thread reads and waits, and the event loop never waits for the socket. What
belongs to kazoo and what belongs to the store stays in order on the wire.
"""

import contextlib
import math
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable

from .jute import FRAME_SIZE, REPLY_HEADER, REQUEST_HEADER, WATCH_XID
from .replies import Reply
from .tls_layer import TlsLayer

RECEIVE_BYTES = 1 << 16
FIRST_XID, LAST_XID = 1 << 30, (1 << 31) - 1
"""The transaction numbers of the store's requests. kazoo counts its own from 1, and has one a
session: the close.
"""


class ServerConnection:
    """A connected socket that does not block. `deliver` is called in kazoo's thread with the frames
    of the store, without their sizes; `doorbell` wakes kazoo's thread when a byte is sent to it.
    `tls` has finished its handshake; without it nothing is encrypted.
    """

    def __init__(
        self,
        connection: socket.socket,
        doorbell: socket.socket,
        deliver: Callable[["ServerConnection", list[bytes]], None],
        tls: TlsLayer | None = None,
    ) -> None:
        self._socket = connection
        self._tls = tls
        self._doorbell = doorbell
        self._deliver = deliver
        self._lock = threading.Lock()
        self._authenticated = False
        self._held: list[bytes] = []
        """Requests of the store that wait until kazoo has authenticated."""
        self._unsent: deque[bytes] = deque()
        """The bytes, encrypted already, that the socket did not take at once."""
        self._received = bytearray()
        self._needed_bytes = FRAME_SIZE.size
        """How much must have been received before a frame is complete."""
        self._for_kazoo = bytearray()
        self._session_is_open = False
        self._ended = False
        self._last_xid = FIRST_XID - 1
        self.unanswered: deque[tuple[int, Reply]] = deque()
        """The store's requests with their numbers, in their order; used by the event loop only."""
        self.last_zxid = 0
        """The newest transaction that an answer carried; used by kazoo's thread only."""

    # ------------------------------------------------------------------ the event loop's side

    def request(self, kind: int, body: bytes, reply: Reply) -> None:
        """Send a request of the store. If the connection has ended, the reply stays in `unanswered`
        until the session's loss is announced.
        """
        xid = self._last_xid + 1 if self._last_xid < LAST_XID else FIRST_XID
        self._last_xid = xid
        self.unanswered.append((xid, reply))
        frame = REQUEST_HEADER.pack(len(body) + 8, xid, kind) + body
        with self._lock:
            if not self._authenticated:
                self._held.append(frame)
            elif self._unsent:
                self._unsent.append(self._encrypted(frame))
            elif rest := self._send_some(self._encrypted(frame)):
                self._unsent.append(rest)
                with contextlib.suppress(OSError):
                    self._doorbell.send(b"\0")  # so that kazoo's thread waits until the socket takes more

    def take_reply(self, xid: int) -> Reply | None:
        """Return the reply that a frame answers, or None if the server does not keep the order."""
        if not self.unanswered or self.unanswered[0][0] != xid:
            return None
        return self.unanswered.popleft()[1]

    def cut(self) -> None:
        """End the connection, so that kazoo's thread sees its end. May be called in any thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    # ------------------------------------------------------------------ kazoo's side: a socket

    @property
    def is_authenticated(self) -> bool:
        """Whether kazoo has waited with a doorbell before, which it does behind authentication."""
        return self._authenticated

    def fileno(self) -> int:
        return self._socket.fileno()

    def setblocking(self, _flag: int) -> None:
        """Do nothing: the socket never blocks."""

    def send(self, data: memoryview | bytes) -> int:
        """Take all of the data; what the socket does not take at once is sent while kazoo waits."""
        with self._lock:
            self._unsent.append(self._encrypted(bytes(data)))
            self._flush()
        return len(data)

    def recv(self, size: int) -> bytes:
        """Return bytes of kazoo's frames; nothing at the end of the connection."""
        part = bytes(self._for_kazoo[:size])
        del self._for_kazoo[:size]
        return part

    def close(self) -> None:
        with self._lock:
            self._socket.close()

    def wait(self, timeout_seconds: float | None, doorbell: socket.socket | None) -> tuple[bool, bool]:
        """Wait until kazoo can read something, or the doorbell can be read, and return which; both
        False after the timeout. Meanwhile the store's frames are sent and delivered.

        With a doorbell kazoo has opened the session and authenticated: what was held back is sent.
        """
        deadline = math.inf if timeout_seconds is None else time.perf_counter() + timeout_seconds
        with self._lock:
            if doorbell is not None and not self._authenticated:
                self._authenticated = True
                self._unsent.extend(map(self._encrypted, self._held))
                self._held.clear()
            self._flush()
        poll = select.poll()
        poll.register(self._socket, self._awaited_events())
        if doorbell is not None:
            poll.register(doorbell, select.POLLIN)
        while True:
            remaining = 0.0 if self._for_kazoo or self._ended else max(0.0, deadline - time.perf_counter())
            rung = False
            for descriptor, events in poll.poll(None if remaining == math.inf else math.ceil(remaining * 1000)):
                if doorbell is not None and descriptor == doorbell.fileno():
                    rung = True
                elif events & ~select.POLLOUT:
                    self._receive()
                else:
                    with self._lock:
                        self._flush()
                    poll.modify(self._socket, self._awaited_events())
            readable = bool(self._for_kazoo) or self._ended
            if readable or rung or time.perf_counter() >= deadline:
                return readable, rung

    def _awaited_events(self) -> int:
        return select.POLLIN | select.POLLOUT if self._unsent else select.POLLIN

    def _flush(self) -> None:
        unsent = self._unsent
        while unsent:
            data = b"".join(unsent)
            unsent.clear()
            if rest := self._send_some(data):
                unsent.append(rest)
                return

    def _send_some(self, data: bytes) -> bytes:
        """Send what the socket takes and return the rest. Where the connection has ended nothing is
        left, and kazoo's thread finds the end.
        """
        try:
            return data[self._socket.send(data) :]
        except BlockingIOError:
            return data
        except OSError:
            self.cut()
            return b""

    def _encrypted(self, data: bytes) -> bytes:
        """Encrypt what is sent next; nothing is left of it where TLS has failed."""
        if self._tls is None:
            return data
        try:
            return self._tls.encrypt(data)
        except OSError:
            self.cut()
            return b""

    def _decrypted(self, chunk: bytes, tls: TlsLayer) -> bytes:
        with self._lock:
            data = tls.decrypt(chunk)
            if answer := tls.outgoing():  # such as new keys that the server asked for
                self._unsent.append(answer)
                self._flush()
        self._ended = tls.ended
        return data

    def _receive(self) -> None:
        """Read what has come. Raises OSError if the connection broke or carries no frames."""
        try:
            chunk = self._socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self._ended = True
            return
        self._received += chunk if self._tls is None else self._decrypted(chunk, self._tls)
        if len(self._received) >= self._needed_bytes:
            self._split(bytes(self._received))

    def _split(self, received: bytes) -> None:
        """Deliver the frames that are complete, and keep the beginning of the next."""
        at, ours = 0, []
        self._needed_bytes = FRAME_SIZE.size
        while len(received) - at >= FRAME_SIZE.size:
            length = FRAME_SIZE.unpack_from(received, at)[0]
            if length < REPLY_HEADER.size:
                raise OSError(f"a frame of {length} bytes")
            end = at + FRAME_SIZE.size + length
            if end > len(received):
                self._needed_bytes = end - at
                break
            if self._is_ours(received, at + FRAME_SIZE.size):
                ours.append(received[at + FRAME_SIZE.size : end])
            else:
                self._for_kazoo += received[at:end]
            at = end
        self._received = bytearray(received[at:])
        if ours:
            self._deliver(self, ours)

    def _is_ours(self, received: bytes, at: int) -> bool:
        if not self._session_is_open:
            self._session_is_open = True  # the first frame opens the session, and has no header
            return False
        xid, zxid, _ = REPLY_HEADER.unpack_from(received, at)
        if xid >= FIRST_XID:
            self.last_zxid = max(self.last_zxid, zxid)
            return True
        return bool(xid == WATCH_XID)
