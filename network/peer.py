"""A connection to another node, which is made when it is needed and carries many requests at a
time.

A request ends in one of three ways: it gets its answer, it certainly was not read, or its fate is
unknown (`PeerUnavailable.in_doubt`). It is never sent twice from here, because only its sender
knows whether that is safe. Many clients share the connection: a request or an answer that is too
large fails alone.

A node that stops sends GO_AWAY on the connections on which requests were forwarded to it, after its
last answer: it has not read the requests that it has not answered by then. A connection that ends
without a GO_AWAY, because the node was killed, leaves its requests in doubt.
"""

import logging
import math
import os
import ssl
from collections.abc import Callable, Sequence
from functools import partial

import trio

from ..admin.bounds import MAX_BETWEEN_NODES_BYTES
from ..process.observe.logs import RateLimitedLog
from ..protocol.api_keys import ApiKey
from ..protocol.errors import ProtocolError
from ..protocol.frame import FrameBuffer
from ..protocol.header import RequestHeader, RequestOrigin, ResponseHeader
from ..protocol.registry import KAFKA
from ..protocol.schema import WireStruct
from ..security.credentials import Credentials
from .node_frames import GO_AWAY_ID, cancellation
from .peer_login import UnprovedNodeError, log_in
from .transport import Disconnected, Outbox, SocketTransport, Transport, notice_death

log = logging.getLogger("minicontroller.peer")

RECONNECT_BACKOFF_SECONDS = 0.1  # Kafka: the sender threads between brokers pause as long
CONNECT_TIMEOUT_SECONDS = 10.0  # Kafka: socket.connection.setup.timeout.ms
DEAD_AFTER_SECONDS = 10
"""After how many seconds without a sign of the other machine the connection breaks. The kernel's
default is a quarter of an hour.
"""
CLOSED = "the connection was closed"
"""Why a connection ended whose other end said nothing about it. A listener with TLS ends a
connection without TLS so.
"""
CLOSED_DURING_LOGIN = "it closed the connection during authentication"
MAX_LOGIN_BYTES = 64 * 1024
"""The largest answer that is read before the other end has authenticated."""
MAX_UNSENT_BYTES = 1024 * 1024
"""No cancellations are sent while more bytes than this wait to be sent."""
MAX_IDLE_SECONDS = 540.0
"""Kafka's clients: connections.max.idle.ms, a minute below the server's. A connection that the
other end may be about to close is not used: a request on it would be left in doubt for nothing.
"""


class PendingAnswer:
    __slots__ = ("answered", "frame")

    def __init__(self) -> None:
        self.frame: bytes | None = None
        """The answer without its size; None until it came, and for good if the connection ended."""
        self.answered = trio.Event()
        """Set when the answer came or the connection ended."""


class PeerLink:
    """One connection to a node. Answers are matched to requests by correlation id."""

    def __init__(self, transport: Transport, basis: Sequence[object], max_bytes: int) -> None:
        """Take over a transport. `basis` is what the proofs made on it rest on; `max_bytes` limits
        an answer.
        """
        self.transport = transport
        self.basis = basis
        self.outbox = Outbox(transport)
        self.frames = FrameBuffer(max_bytes, skips_too_large=True)
        self.waiters: dict[int, PendingAnswer] = {}
        """By correlation id."""
        self.reason = "the connection was closed"
        self.ended = False
        self.goes_away = False
        """Whether the other end has sent GO_AWAY."""
        self.last_used = trio.current_time()
        self.expires = math.inf
        """trio's time from which on the other end wants a new authentication (KIP-368)."""

    @property
    def is_stale(self) -> bool:
        return not self.waiters and trio.current_time() - self.last_used > MAX_IDLE_SECONDS

    def deliver(self, frame: bytes) -> None:
        """Hand an answer to the request that waits for it, if it still does. Raises Disconnected
        for GO_AWAY.
        """
        correlation_id = int.from_bytes(frame[:4], signed=True)
        if correlation_id == GO_AWAY_ID:
            self.goes_away = True
            raise Disconnected("it stops")
        waiter = self.waiters.pop(correlation_id, None)
        if waiter is not None:
            waiter.frame = frame
            waiter.answered.set()

    def end(self) -> None:
        """Close the connection; the requests that wait get no answer."""
        self.ended = True
        self.transport.close()
        for waiter in self.waiters.values():
            waiter.answered.set()
        self.waiters.clear()


class PeerUnavailable(Exception):  # noqa: N818 - the world's fault, and often nobody's
    """No answer came. With `in_doubt` the request was sent, and may have been carried out.

    With `unproved` it was not sent, because the other end did not prove that it is the node.
    """

    def __init__(self, text: str, *, in_doubt: bool, unproved: bool = False) -> None:
        super().__init__(text)
        self.in_doubt = in_doubt
        self.unproved = unproved


class TooLargeForPeer(PeerUnavailable):
    """The request is too large for a connection between nodes. It was not sent."""


class _Attempt:
    """An attempt to connect. All requests that come meanwhile wait for it; cancelling one of them
    does not cancel the attempt.
    """

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.over = trio.Event()
        self.link: PeerLink | None = None
        self.failure: Exception = Disconnected("closed from this end")


class PeerConnection:
    """The connection to one address, made when it is first needed, and again after a failure."""

    def __init__(
        self,
        nursery: trio.Nursery,
        host: str,
        port: int,
        *,
        client_id: str,
        logins: Sequence[Credentials] = (),
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
        max_bytes: int = MAX_BETWEEN_NODES_BYTES,
    ) -> None:
        """Prepare a connection. `logins` are the credentials that are used in this order on each
        new connection, and `tls` returns the context of TLS for each, or None; `max_bytes` limits a
        request and an answer.
        """
        self.host = host
        self.port = port
        self._nursery = nursery
        self._client_id = client_id
        self._logins = logins
        self._tls = tls
        self._max_bytes = max_bytes
        self._link: PeerLink | None = None
        self._attempt: _Attempt | None = None
        self._not_before = -math.inf
        self._correlation_id = 0
        self._unreachable, self._ended = RateLimitedLog(log), RateLimitedLog(log)
        """Of a node that is down for long, and of one that ends each new connection."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    async def request(
        self,
        api_key: ApiKey,
        version: int,
        message: WireStruct,
        *,
        client_id: str | None = None,
        origin: RequestOrigin | None = None,
    ) -> WireStruct:
        """Send a request, and wait for the answer for as long as the caller's cancel scope allows.
        Raises PeerUnavailable.
        """
        return (await self.ask(api_key, version, message, client_id=client_id, origin=origin))[1]

    async def ask(
        self,
        api_key: ApiKey,
        version: int,
        message: WireStruct,
        *,
        client_id: str | None = None,
        origin: RequestOrigin | None = None,
    ) -> tuple[ResponseHeader, WireStruct]:
        """Do as `request` does, and return the header of the answer as well."""
        link = self._usable_link() or await self._connect()
        link.last_used = trio.current_time()
        header = self._header(api_key, version)
        if origin is not None:
            header.client_id = client_id
            header.origin = origin
        request = KAFKA.encode_request(header, message)
        if len(request) > self._max_bytes:
            text = f"The request has {len(request)} bytes on its way between nodes, {self._max_bytes} are allowed."
            raise TooLargeForPeer(text, in_doubt=False)
        frame = await self._exchange(link, header.correlation_id, request, is_forwarded=origin is not None)
        try:
            return KAFKA.decode_response(api_key, version, frame)
        except ProtocolError as error:
            raise PeerUnavailable(f"{self} answers what cannot be read: {error}", in_doubt=True) from error

    def close(self) -> None:
        """Close the connection; whoever waits is told that the outcome is unknown."""
        if self._attempt is not None:
            self._attempt.scope.cancel()
        if self._link is not None:
            self._end(self._link, "closed from this end")

    # ------------------------------------------------------------------ one exchange

    def _header(self, api_key: ApiKey, version: int) -> RequestHeader:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        return RequestHeader(
            api_key=api_key, api_version=version, correlation_id=self._correlation_id, client_id=self._client_id
        )

    async def _exchange(self, link: PeerLink, correlation_id: int, request: bytes, *, is_forwarded: bool) -> bytes:
        if link.ended:
            raise PeerUnavailable(f"{self} is gone: {link.reason}", in_doubt=False)
        waiter = link.waiters[correlation_id] = PendingAnswer()
        try:
            link.outbox.put(request)
            try:
                if not link.outbox.flush_nowait():
                    # The connection's own task sends the rest, so that cancelling the requester
                    # cannot leave half a request on the wire.
                    self._nursery.start_soon(self._flush, link)
            except Disconnected as error:
                self._end(link, str(error))
                raise PeerUnavailable(f"{self} is gone: {error}", in_doubt=False) from error
            await waiter.answered.wait()
        except trio.Cancelled:
            if is_forwarded:
                self._give_up(link, correlation_id)
            raise
        finally:
            link.waiters.pop(correlation_id, None)
            if link is not self._link and not link.waiters:
                link.end()  # it was replaced, and this was its last request
        if waiter.frame is None:
            text = f"{self} did not answer: {link.reason}"
            raise PeerUnavailable(text, in_doubt=not link.goes_away)
        return waiter.frame

    def _give_up(self, link: PeerLink, correlation_id: int) -> None:
        """Tell the other end that the client is gone or its timeout over, so that it can drop the
        request.
        """
        if link.ended or link.outbox.queued_bytes > MAX_UNSENT_BYTES:
            return
        link.outbox.put(cancellation(correlation_id))
        try:
            link.outbox.flush_nowait()  # what is left goes with the next request
        except Disconnected as error:
            self._end(link, str(error))

    async def _flush(self, link: PeerLink) -> None:
        try:
            await link.outbox.flush()
        except Disconnected as error:
            self._end(link, str(error))

    # ------------------------------------------------------------------ the connection

    def _usable_link(self) -> PeerLink | None:
        link = self._link
        if link is None:
            return None
        if link.is_stale:
            self._end(link, "it was idle for too long")
        elif link.basis != self._basis() or trio.current_time() >= link.expires:
            self._replace(link)
        return self._link

    def _basis(self) -> Sequence[object]:
        return [login.basis for login in self._logins]

    def _replace(self, link: PeerLink) -> None:
        """Stop using a link whose proof no longer holds. Its requests are still answered."""
        self._link = None
        if not link.waiters:
            link.end()

    async def _connect(self) -> PeerLink:
        if self._attempt is None:
            self._attempt = _Attempt()
            self._nursery.start_soon(self._try, self._attempt)
        attempt = self._attempt
        await attempt.over.wait()
        if attempt.link is not None:
            return attempt.link
        error = attempt.failure
        text = f"cannot reach {self}: {_why(error)}"
        raise PeerUnavailable(text, in_doubt=False, unproved=isinstance(error, UnprovedNodeError)) from error

    async def _try(self, attempt: _Attempt) -> None:
        try:
            with attempt.scope:
                await trio.sleep_until(self._not_before)
                self._not_before = trio.current_time() + RECONNECT_BACKOFF_SECONDS
                with trio.fail_after(CONNECT_TIMEOUT_SECONDS):
                    self._link = attempt.link = await self._open()
                self._nursery.start_soon(self._read, self._link)
        except (OSError, Disconnected, ProtocolError, trio.TooSlowError) as error:
            attempt.failure = error
            self._unreachable.say(logging.WARNING, "cannot reach %s: %s", self, _why(error))
        finally:
            self._attempt = None
            attempt.over.set()

    async def _open(self) -> PeerLink:
        link = PeerLink(await self._transport(), self._basis(), MAX_LOGIN_BYTES)
        try:
            for credentials in self._logins:
                lifetime = await log_in(partial(self._ask_alone, link), credentials)
                link.expires = min(link.expires, trio.current_time() + lifetime)
            link.frames.max_bytes = self._max_bytes
        except BaseException:
            link.end()
            raise
        return link

    async def _transport(self) -> Transport:
        try:
            stream = await trio.open_tcp_stream(self.host, self.port)
        except (ValueError, OverflowError) as error:  # the address comes from another node, and may be anything
            raise Disconnected("this is no address") from error
        notice_death(stream.socket, DEAD_AFTER_SECONDS)
        context = self._tls()
        if context is None:
            return SocketTransport(stream)
        from .tls import start_tls

        return await start_tls(stream, context, self.host)

    async def _read(self, link: PeerLink) -> None:
        reason = CLOSED
        try:
            while True:
                while (frame := link.frames.next_frame()) is not None:
                    link.deliver(frame)  # first what came with the last answer of the login, which may be a go-away
                data = await link.transport.receive()
                if not data:
                    break
                link.frames.feed(data)
        except (Disconnected, ProtocolError) as error:
            reason = str(error)
        finally:
            self._end(link, reason)

    def _end(self, link: PeerLink, reason: str) -> None:
        if self._link is link:
            self._link = None
            link.reason = reason
            self._ended.say(logging.INFO, "the connection to %s ended: %s", self, reason)
        link.end()

    # ------------------------------------------------------------------ authentication

    async def _ask_alone(self, link: PeerLink, api_key: ApiKey, version: int, message: WireStruct) -> WireStruct:
        link.outbox.put(KAFKA.encode_request(self._header(api_key, version), message))
        await link.outbox.flush()
        while (frame := link.frames.next_frame()) is None:
            data = await link.transport.receive()
            if not data:
                raise Disconnected(CLOSED_DURING_LOGIN)
            link.frames.feed(data)
        _, response = KAFKA.decode_response(api_key, version, frame)
        return response


def _why(error: Exception) -> str:
    """Return why a connection failed, without error numbers. A host with several addresses may have
    failed for several reasons.
    """
    if isinstance(error, trio.TooSlowError):
        return "no answer in time"
    if not isinstance(error, OSError):
        return str(error)
    cause = error.__cause__
    tried = cause.exceptions if isinstance(cause, BaseExceptionGroup) else [cause or error]
    return ", ".join(dict.fromkeys(_words(each) for each in tried))


def _words(error: BaseException) -> str:
    number = getattr(error, "errno", None) or 0
    return os.strerror(number) if number > 0 else str(getattr(error, "strerror", None) or error)
