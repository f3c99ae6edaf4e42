"""Serves one accepted connection: reads frames, and sends the answers.

A client's requests are handled one after the other, as in Kafka: a request begins when the one
before it is answered, and so sees its effect. The cost of a connection is bounded. It is not read
while enough of its requests wait, or while too many bytes of its answers are not taken. When the
client disconnects, its requests are cancelled.

An answer that is ready at once costs neither a task nor a channel, and the answers to all requests
of one read leave in one send. A connection of a node carries the requests of many clients, one of
each at a time. They run concurrently and are answered as they complete: nodes match answers by
correlation id, and one slow request holds up no other. A node cancels requests for which nobody
waits any more. When this end stops, nodes that forward requests are sent GO_AWAY: it has read no
more of their requests, and they send them elsewhere.
"""

import contextlib
import logging
from collections.abc import Awaitable
from typing import Protocol

import trio

from ..admin.bounds import MAX_BETWEEN_NODES_BYTES
from ..protocol.errors import ProtocolError
from ..protocol.frame import FrameBuffer
from ..security.caller import Caller, about_caller, about_frame
from ..security.sasl import Challenge, Proved, ProvedNode, Rejected
from .failures import ConnectionFailures
from .handshake_errors import Explanation, HandshakeError
from .memory import SMALL_BYTES, RequestMemory
from .node_frames import CANCELLATION_BYTES, GO_AWAY
from .transport import Disconnected, Outbox, Transport

log = logging.getLogger("minicontroller.connection")

MAX_RUNNING_OF_NODE = 10_000
"""How many requests on the connection of a node may run at the same time."""
READ_AHEAD_BYTES = SMALL_BYTES
"""How many bytes of further requests are read while one of a client runs. Reading on is how a
disconnection is noticed.
"""
MAX_QUEUED_BYTES = 1024 * 1024
"""The connection is not read while more bytes of answers than this wait to be sent."""
FRAMES_A_TURN = 16
"""How many requests are answered before other connections have their turn."""
FAREWELL_SECONDS = 1.0
"""How long the other end has to close first: to close with unread bytes would be a reset, which may
overtake GO_AWAY, or the alert of a failed handshake.
"""


class UnreadableRequestError(Exception):
    """A request cannot be read, and the connection ends without an answer. It has been logged."""


class FrameHandler(Protocol):
    """Answers the requests of a connection."""

    def answer(self, caller: Caller, frame: bytes) -> bytes | Awaitable[bytes]:
        """Return the response to a request, or an awaitable of it, with its size in front. `frame`
        has no size. Raises ProtocolError where the connection has to end without an answer.
        """


async def secure(transport: Transport, caller: Caller) -> None:
    """Do the handshake of an accepted connection, if there is one, and note whose certificate the
    other end has shown. Raises Disconnected; HandshakeError if that is what failed.
    """
    certificate = await transport.secure()
    if certificate is not None:
        try:
            caller.showed_certificate(certificate)
        except ValueError as error:
            raise HandshakeError(Explanation("unnamed", str(error))) from error


async def await_end(transport: Transport) -> None:
    """Let the other end close first, so that what was sent to it arrives."""
    with trio.move_on_after(FAREWELL_SECONDS), contextlib.suppress(Disconnected):
        while await transport.receive():
            pass


class Connection:
    """Serves one transport until either end closes it."""

    def __init__(
        self,
        transport: Transport,
        caller: Caller,
        handler: FrameHandler,
        *,
        max_request_bytes: int,
        memory: RequestMemory,
        failures: ConnectionFailures,
        max_unauthenticated_bytes: int,
        failed_authentication_delay: float,
    ) -> None:
        self.caller = caller
        self.handler = handler
        self.last_active = trio.current_time()
        self.running = 0
        """How many of its requests wait for something."""
        self.is_secure = False
        """Whether the TLS handshake is over, if there is one."""
        self._transport = transport
        self._outbox = Outbox(transport, self._on_unread)
        self._memory = memory
        self._taken = 0
        """How many bytes it holds of the node's memory, for a large request that comes in or runs.
        """
        self._scopes: dict[int, trio.CancelScope] = {}
        """The running requests of a node, by correlation id."""
        self._busy = False
        """Whether a request of a client waits for something. The task that waits also takes the
        requests after it.
        """
        self._fed = False
        """Whether something was read since frames were last looked for."""
        self._frames = FrameBuffer(max_request_bytes)
        self._failures = failures
        self._max_unauthenticated_bytes = max_unauthenticated_bytes
        self._failed_authentication_delay = failed_authentication_delay
        self._room = trio.lowlevel.ParkingLot()
        self._draining = False
        self._receiving = False
        self._reading = trio.CancelScope()
        self._throttled = trio.CancelScope()
        """Cancelled where nobody waits for a quota any more."""
        self._life = trio.CancelScope()
        self._nursery: trio.Nursery

    async def run(self) -> None:
        """Serve until the connection ends. Raises only for defects of this program."""
        try:
            with self._life:
                async with trio.open_nursery() as self._nursery:
                    with self._reading:
                        await self._serve()
                        if not self._draining:
                            self._life.cancel()
                if self.caller.forwards:
                    await self._send_go_away()
        finally:
            self._transport.close()
            self._frames.forget()
            self._outbox.forget()  # it leads back here; no garbage may wait for the collector, which comes seldom

    def drain(self) -> None:
        """Read no more, and end when the running requests are answered."""
        self._draining = True
        self._throttled.cancel()
        if self._receiving:  # anywhere else a cancellation could cut an answer in two
            self._reading.cancel()

    def cancel(self) -> None:
        self._life.cancel()

    @property
    def is_leaving(self) -> bool:
        return self._life.cancel_called

    @property
    def is_waiting_for_us(self) -> bool:
        """Whether a request runs and the other end has taken all answers that were ready."""
        return self.running > 0 and self._outbox.queued_bytes == 0

    async def _send_go_away(self) -> None:
        self._outbox.put(GO_AWAY)
        await self._await_end()

    async def _await_end(self) -> None:
        """Send what is left, and let the other end close first."""
        with trio.move_on_after(FAREWELL_SECONDS), contextlib.suppress(Disconnected):
            await self._outbox.flush()
            await await_end(self._transport)

    # ------------------------------------------------------------------ reading

    async def _serve(self) -> None:
        try:
            await self._secure()
            while not self._draining and (data := await self._receive()):
                self.last_active = trio.current_time()
                self._frames.feed(data)
                self._fed = True
                if not self._busy and (pending := await self._answer_frames()) is not None:
                    self._busy = True
                    self._nursery.start_soon(self._answer_in_order, pending)
        except HandshakeError as error:
            self._failures.failed_handshake(self.caller, error)
            if error.was_told:
                await self._await_end()
        except Disconnected:
            pass
        except UnreadableRequestError:
            await self._flush()

    async def _secure(self) -> None:
        self._receiving = True  # so that `drain` need not wait for a handshake
        await secure(self._transport, self.caller)
        self._receiving = False
        self.is_secure = True
        self.last_active = trio.current_time()

    async def _receive(self) -> bytes:
        self._receiving = True
        while self._busy and self._frames.buffered_bytes >= READ_AHEAD_BYTES:
            await self._room.park()
        if (self._taken or self._frames.needed > SMALL_BYTES) and not self._busy:
            await self._take_memory(self._frames.needed)
        # A client that waits for an answer seldom sends more before it comes.
        data = await self._transport.receive(self._memory.read_bytes, expected=not self._busy)
        self._receiving = False
        return data

    async def _take_memory(self, size: int) -> None:
        """Reserve memory for the whole of a frame that has begun to come."""
        if size == self._taken:
            return
        self._memory.give_back(self)
        self._taken = 0 if size <= SMALL_BYTES or self.caller.from_peer else size
        if self._taken:
            await self._memory.room_for(self, size)
            self.last_active = trio.current_time()

    def _on_unread(self, size: int) -> None:
        if not self.caller.from_peer:
            self._memory.unread(self, size)

    async def _answer_frames(self) -> Awaitable[bytes] | None:
        """Answer the requests that were read. Return the first answer that has to be awaited,
        before which a client's further requests do not begin.
        """
        if self.caller.from_peer and self._frames.max_bytes < MAX_BETWEEN_NODES_BYTES:
            self._frames.max_bytes = (
                MAX_BETWEEN_NODES_BYTES  # forwarded requests have an origin, and the newest version
            )
        budget = FRAMES_A_TURN
        while True:
            self._fed = False
            while (frame := self._next_frame()) is not None:
                pending = self._take(frame)
                if pending is not None:
                    await self._flush()
                    return pending
                if self.caller.sasl is not None and self.caller.must_leave:
                    await self._after_failed_authentication()
                budget -= 1
                if budget <= 0 or self._is_full():
                    budget = FRAMES_A_TURN
                    await self._make_room()
            await self._flush()
            if not self._fed:
                return None

    def _next_frame(self) -> bytes | None:
        try:
            frame = self._frames.next_frame()
            if frame is None and not self.caller.authenticated:
                self._check_unauthenticated()
        except ProtocolError as error:
            self._failures.protocol_error(self.caller, error, about_caller(self.caller))
            raise UnreadableRequestError from error
        return frame

    def _check_unauthenticated(self) -> None:
        allowed = self._max_unauthenticated_bytes
        if max(self._frames.buffered_bytes, self._frames.needed) > allowed:
            raise ProtocolError(f"a request of more than {allowed} bytes before authentication")

    def _take(self, frame: bytes) -> Awaitable[bytes] | None:
        """Answer one request. Return the answer if it has to be awaited before a client's next
        request begins.
        """
        sasl = self.caller.sasl
        if sasl is not None and sasl.raw_tokens:
            self._outbox.put(self._raw_token(frame))
            return None
        if self.caller.from_peer and len(frame) == CANCELLATION_BYTES:
            self._cancel_request(int.from_bytes(frame))
            return None
        try:
            answer = self.handler.answer(self.caller, frame)
        except ProtocolError as error:
            self._failures.protocol_error(self.caller, error, about_frame(self.caller, frame))
            raise UnreadableRequestError from error
        if isinstance(answer, bytes):
            self._outbox.put(answer)
            return None
        self.running += 1
        if not self.caller.from_peer:
            if len(frame) > SMALL_BYTES:
                self._taken = len(frame)
                self._memory.keep(self, len(frame))
            return answer
        correlation_id = int.from_bytes(frame[4:8])
        self._scopes[correlation_id] = trio.CancelScope()
        self._nursery.start_soon(self._answer_as_it_comes, correlation_id, answer)
        return None

    async def _answer_in_order(self, pending: Awaitable[bytes] | None) -> None:
        """Answer a client's request, then those after it."""
        try:
            while pending is not None:
                try:
                    await self._answer(pending)
                except ProtocolError as error:
                    self._failures.protocol_error(self.caller, error, about_caller(self.caller))
                    raise UnreadableRequestError from error
                if self.caller.throttled_until:
                    await self._wait_for_quota()
                pending = await self._answer_frames()
        except UnreadableRequestError:
            await self._flush()
            self._life.cancel()
        self._busy = False
        self._look_for_room()

    async def _wait_for_quota(self) -> None:
        """Send the answer, and take no further request while the client is throttled (Kafka mutes
        the channel).
        """
        await self._flush()
        with self._throttled:
            if not self._draining:
                await trio.sleep_until(self.caller.throttled_until)
        self._throttled = trio.CancelScope()
        self.caller.throttled_until = 0.0

    async def _answer_as_it_comes(self, correlation_id: int, pending: Awaitable[bytes]) -> None:
        with self._scopes[correlation_id]:
            await self._answer(pending)
        self._scopes.pop(correlation_id, None)
        await self._flush()

    def _cancel_request(self, correlation_id: int) -> None:
        """Cancel a request that a node forwarded for a client that no longer waits."""
        scope = self._scopes.get(correlation_id)
        if scope is not None:
            scope.cancel()

    async def _answer(self, pending: Awaitable[bytes]) -> None:
        try:
            answer = await pending
        finally:
            self.running -= 1
            self.last_active = trio.current_time()
            if self._taken:
                self._taken = 0
                self._memory.give_back(self)
        self._outbox.put(answer)

    async def _flush(self) -> None:
        try:
            await self._outbox.flush()
        except Disconnected:
            self._life.cancel()
        self._look_for_room()

    def _look_for_room(self) -> None:
        if self._room:  # unparking costs something even if nobody is parked
            self._room.unpark_all()

    # ------------------------------------------------------------------ bounds

    def _is_full(self) -> bool:
        return self.running >= MAX_RUNNING_OF_NODE or self._outbox.queued_bytes >= MAX_QUEUED_BYTES

    async def _make_room(self) -> None:
        """Let other connections have their turn, and wait until this one may take a request."""
        await self._flush()
        await trio.lowlevel.checkpoint()
        while self._is_full():
            await self._room.park()

    # ------------------------------------------------------------------ authentication

    def _raw_token(self, token: bytes) -> bytes:
        """Return the reply to a token after a SaslHandshake of version 0, which has no request
        around it. A refusal cannot be expressed, and the connection ends.
        """
        sasl = self.caller.sasl
        assert sasl is not None
        match sasl.authenticate(token):
            case Challenge(token=reply):
                return len(reply).to_bytes(4) + reply
            case Proved(token=reply) as proved:
                self.caller.authenticated_as(proved)
                return len(reply).to_bytes(4) + reply
            case Rejected() | ProvedNode():  # nodes use SaslHandshake version 1
                return b""

    async def _after_failed_authentication(self) -> None:
        """End the connection of a client that the last request failed to authenticate."""
        self._failures.failed_authentication(self.caller)
        # The client waits, to slow down guessing (connection.failed.authentication.delay.ms).
        await trio.sleep(self._failed_authentication_delay)
        await self._flush()
        self._life.cancel()
        await trio.lowlevel.checkpoint()
