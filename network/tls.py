"""TLS on a connection, at either end of it: a `Transport` that encrypts what another one carries.

Rule: nothing here waits but for the socket, and what a connection may cost before its handshake is
done is bounded in time and in bytes. OpenSSL works on memory alone; bytes go through the socket in
as few calls as without TLS. An error of TLS is `Disconnected`, with a text that says what to check.
"""

import contextlib
import socket
import ssl
from collections.abc import Coroutine, Iterator
from typing import Any

import trio

from ..protocol.other_protocols import FIRST_BYTES
from .handshake_errors import (
    CLOSED,
    NO_HANDSHAKE,
    Explanation,
    HandshakeError,
    explained_to_client,
    explained_to_server,
)
from .transport import PART_BYTES, READ_BYTES, Disconnected, SocketTransport

HANDSHAKE_SECONDS = 10.0  # as long as Kafka's clients try: socket.connection.setup.timeout.ms
MAX_HANDSHAKE_BYTES = 192 * 1024
"""How many bytes of a handshake are read. OpenSSL takes certificates of 100 KiB at most."""
MOST_HANDSHAKES = 1000
"""How many handshakes of a node's callers may have begun and not be over. OpenSSL takes up to 400
KiB for each.
"""
RECORD_BYTES = 16 * 1024
"""The most bytes in one record of TLS, which OpenSSL encrypts in one call."""
RECORDS_A_READ = 16
"""How many records are decrypted before other connections have their turn. A read takes four of
full size; a stranger may put a single byte into each.
"""
HANDSHAKE_READ_BYTES = 4 * 1024
"""How many bytes of a handshake are read before other connections have their turn."""
MAX_UNASKED_BYTES = 64 * 1024
"""How many bytes that TLS itself wants to send may wait while the other end takes none."""


class Handshakes:
    """The handshakes at the listeners of a node that are not over: they compute in turns, and when
    there are too many, the oldest is given up, so that their memory is bounded and whoever comes
    behind them is let in.
    """

    def __init__(self) -> None:
        self.turn = trio.Lock()
        self._unfinished: dict[trio.CancelScope, None] = {}

    @contextlib.contextmanager
    def one_more(self) -> Iterator[None]:
        """Count a handshake. Raises HandshakeError if it is given up for later ones."""
        with trio.CancelScope() as scope:
            self._unfinished[scope] = None
            if len(self._unfinished) > MOST_HANDSHAKES:
                oldest = next(iter(self._unfinished))
                del self._unfinished[oldest]
                oldest.cancel()
            try:
                yield
            finally:
                self._unfinished.pop(scope, None)
        if scope.cancelled_caught:
            raise HandshakeError(Explanation("too_slow", f"{MOST_HANDSHAKES} later handshakes are not over either"))


class CalledEnd(ssl.SSLObject):
    """The end of a connection that was called by a name, where its context notes it (SNI)."""

    called: str | None = None


class TlsTransport:
    """A transport over TLS. `secure` comes before everything else."""

    def __init__(
        self,
        stream: trio.SocketStream,
        context: ssl.SSLContext,
        *,
        host: str | None = None,
        handshakes: Handshakes | None = None,
    ) -> None:
        """Take over a stream. `host` is the server that a client has called, None for a server.
        Handshakes that are counted together compute one after the other, and everybody else has a
        turn between two of them.
        """
        self._socket = SocketTransport(stream)
        self._read_socket = self._socket.raw_socket.recv
        self._context = context
        self._host = host
        self._handshakes = handshakes or Handshakes()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._first = b""
        """The first bytes of the other end, which name its protocol if it is not TLS."""
        self._is_secure = False
        self._is_over = False
        """Whether the other end has said that it sends no more."""
        self._may_have_more = False
        """Whether there may be bytes to decrypt without reading the socket."""
        self._left = b""
        """The bytes that were encrypted and not yet taken by the kernel."""
        self._promised = 0
        """How many of the bytes that have to be sent next are encrypted already, in `_left`."""
        self._is_flushing = False

    @property
    def raw_socket(self) -> socket.socket:
        return self._socket.raw_socket

    @property
    def has_left(self) -> bool:
        return self._socket.has_left

    @property
    def buffered_bytes(self) -> int:
        """How many bytes were read from the socket and not yet given to the reader."""
        return self._incoming.pending + (0 if self._tls is None else self._tls.pending())

    @property
    def called(self) -> str | None:
        """The name by which the other end called, where the context notes it."""
        return self._tls.called if isinstance(self._tls, CalledEnd) else None

    # ------------------------------------------------------------------ the handshake

    async def secure(self) -> bytes | None:
        """Do the handshake. Return the certificate of the other end in DER, or None if it has shown
        none. Raises HandshakeError.
        """
        try:
            with trio.fail_after(HANDSHAKE_SECONDS):
                tls = await self._shake_hands()
        except trio.TooSlowError:
            raise HandshakeError(Explanation("too_slow", "the handshake did not end in time")) from None
        except ssl.SSLError as error:
            with contextlib.suppress(Disconnected):
                self._socket.send_nowait(self._outgoing.read())
            raise HandshakeError(self._explained(error), was_told=True) from error
        except ValueError as error:  # a host whose name OpenSSL does not take
            raise HandshakeError(Explanation("other", "no certificate can name this host")) from error
        self._is_secure = self._may_have_more = True
        return tls.getpeercert(binary_form=True)

    def _explained(self, error: ssl.SSLError) -> Explanation:
        return explained_to_server(error, self._first) if self._host is None else explained_to_client(error)

    async def _shake_hands(self) -> ssl.SSLObject:
        if self._host is None:  # who says nothing costs nothing but the socket
            await self._read_handshake(0)
        with self._handshakes.one_more():
            return await self._finish_handshake()

    async def _finish_handshake(self) -> ssl.SSLObject:
        tls = self._tls = self._context.wrap_bio(
            self._incoming, self._outgoing, server_side=self._host is None, server_hostname=self._host
        )
        size = self._incoming.pending
        while not await self._advance(tls):
            size = await self._read_handshake(size)
        return tls

    async def _advance(self, tls: ssl.SSLObject) -> bool:
        async with self._handshakes.turn:
            try:
                tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                done = False
            await trio.lowlevel.checkpoint()
        await self._socket.send_rest(memoryview(self._outgoing.read()))
        return done

    async def _read_handshake(self, size: int) -> int:
        data = await self._socket.receive(HANDSHAKE_READ_BYTES, expected=False)
        if not data:
            raise HandshakeError(Explanation("closed", CLOSED if self._host is None else NO_HANDSHAKE))
        if size + len(data) > MAX_HANDSHAKE_BYTES:
            raise HandshakeError(Explanation("other", f"the handshake has more than {MAX_HANDSHAKE_BYTES} bytes"))
        self._first += data[: FIRST_BYTES - len(self._first)]
        self._incoming.write(data)
        return size + len(data)

    # ------------------------------------------------------------------ reading

    def receive(self, most: int = READ_BYTES, *, expected: bool = True) -> Coroutine[Any, Any, bytes]:
        if not self._is_secure:  # after a handshake that failed: what still comes, for nobody
            return self._socket.receive(most, expected=expected)
        expected = expected or self._may_have_more or self._is_over
        return self._socket.receive_by(self._read, most, expected=expected)

    def _read(self, most: int) -> bytes:
        """Read the socket at most once, and decrypt. Raises BlockingIOError if nothing came of it,
        so that other tasks run before the next attempt.
        """
        if self._may_have_more and (data := self._decrypted(most)):
            return data
        if self._is_over or not (data := self._read_socket(most)):
            return b""
        self._incoming.write(data)
        data = self._decrypted(most)
        if not data and not self._is_over:
            raise BlockingIOError
        return data

    def _decrypted(self, most: int) -> bytes:
        tls, incoming = self._opened(), self._incoming
        parts: list[bytes] = []
        try:
            while most > 0 and len(parts) < RECORDS_A_READ:
                # Encrypted bytes are more than plain ones: OpenSSL gives a record at a time, and
                # all of it if so much is asked for. Whoever asks for more has it allocated.
                asked = min(most, incoming.pending or most)
                part = tls.read(asked)
                if not part:
                    self._is_over = True
                    break
                parts.append(part)
                most -= len(part)
                self._may_have_more = len(part) == asked or incoming.pending > 0
                if not self._may_have_more:
                    break
        except ssl.SSLWantReadError:
            self._may_have_more = False
        except ssl.SSLZeroReturnError:
            self._is_over, self._may_have_more = True, False
        except ssl.SSLError as error:
            self._send_unasked()
            raise Disconnected(self._explained(error).sentence) from error
        if self._outgoing.pending:
            self._send_unasked()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _opened(self) -> ssl.SSLObject:
        """Return what encrypts. Raises Disconnected if this end has closed."""
        if self._tls is None:
            raise Disconnected("closed from this end")
        return self._tls

    def _send_unasked(self) -> None:
        """Send what TLS itself wants to send, unless other bytes wait before it."""
        if not self._left:
            self._left = self._outgoing.read()
            self._push()
        if self._outgoing.pending > MAX_UNASKED_BYTES:
            raise Disconnected("it asks TLS for more and more, and takes no answer")

    # ------------------------------------------------------------------ sending

    def send_nowait(self, data: bytes | memoryview) -> int:
        """Send what the kernel takes at once. Of the bytes after these some may be encrypted
        already, so that the next call has to begin with the same bytes.
        """
        if self._left or self._promised or len(data) > RECORD_BYTES:
            return self._send_parts(data)
        try:
            self._opened().write(data)
        except ssl.SSLError as error:
            raise Disconnected(self._explained(error).sentence) from error
        self._left = self._outgoing.read()
        if not self._push():
            self._promised = len(data)
            return 0
        return len(data)

    def _send_parts(self, data: bytes | memoryview) -> int:
        """Send what is left and then one part after the other, as far as the kernel takes them."""
        if not self._push():
            return 0
        sent, self._promised = self._promised, 0
        view = memoryview(data)
        while sent < len(view):
            end = self._encrypt(view, sent)
            if not self._push():
                self._promised = end - sent
                break
            sent = end
        return sent

    def _encrypt(self, view: memoryview, start: int) -> int:
        tls = self._opened()
        end = min(start + PART_BYTES, len(view))
        try:
            while start < end:
                start += tls.write(view[start:end])
        except ssl.SSLError as error:
            raise Disconnected(self._explained(error).sentence) from error
        self._left = self._outgoing.read()
        return end

    def _push(self) -> bool:
        """Send what is encrypted, as far as the kernel takes it. Return whether nothing is left."""
        if self._left and not self._is_flushing:
            self._left = self._left[self._socket.send_nowait(self._left) :]
        return not self._left

    async def send_rest(self, data: memoryview) -> None:
        while data:
            if self._left:
                self._is_flushing = True
                try:
                    await self._socket.send_rest(memoryview(self._left))
                finally:
                    self._is_flushing = False
                self._left = b""
            data = data[self.send_nowait(data) :]

    def close(self) -> None:
        """Close the socket, with a close_notify before if the kernel takes it at once. A task that
        waits for the socket gets Disconnected.
        """
        if self._is_secure and self._tls is not None:
            self._is_secure = False
            with contextlib.suppress(OSError):  # TLS's errors are such, and that the other end has not closed yet
                self._tls.unwrap()
            with contextlib.suppress(Disconnected):
                if not self._left:
                    self._socket.send_nowait(self._outgoing.read())
        self._socket.close()
        # The transport itself may live until the next garbage collection.
        self._tls, self._left = None, b""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()


async def start_tls(stream: trio.SocketStream, context: ssl.SSLContext, host: str) -> TlsTransport:
    """Begin TLS as a client, and take the stream over. The certificate must name `host` if the
    context checks names. Raises Disconnected.
    """
    transport = TlsTransport(stream, context, host=host)
    try:
        await transport.secure()
    except BaseException:
        transport.close()
        raise
    return transport
