"""One client's connection, and the connection to the broker that it stands for.

Each connection of a client has one of its own to the broker, so the broker's rules of order hold:
what it reads first it answers first. It is opened when the client's first request has to go there,
so that clients which ask for nothing, or for nothing that passes, cost the broker nothing. Requests
and responses are moved piece by piece. An end that does not read stops the other end, because a
piece is read when the one before it was taken.

An answer of the gateway itself stands in one queue with the requests that the broker has to answer,
so that the client gets all of them in the order of its requests.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import msgspec
import trio

from ..controller.network.connection import await_end, secure
from ..controller.network.failures import ConnectionFailures
from ..controller.network.handshake_errors import HandshakeError
from ..controller.network.memory import SMALL_BYTES, RequestMemory
from ..controller.network.transport import Disconnected, Transport
from ..controller.observe.logs import about_caller
from ..controller.security.caller import Caller
from ..protocol.errors import InvalidFrameSize, MalformedMessage, ProtocolError, UnsupportedApi
from .apis import NEWEST
from .frames import SIZE_BYTES, FrameReader, FrameWriter, size_of
from .requests import RequestHead, read_head

MOST_REVIEWED_BYTES = 8 * 1024 * 1024
"""The largest request that is reviewed, which is held as a whole."""
MOST_PENDING = 1000
"""How many requests of a client may wait for their responses before no more are read."""
LAST_ANSWERS_SECONDS = 10.0
"""How long a client that sends no more gets the responses to what it has sent."""
_CORRELATION_ID_BYTES = 4

Connect = Callable[[], Awaitable[Transport]]
"""Connects to the broker, and passes its responses to the client from now on."""
Change = Callable[[bytes], Awaitable[bytes]]
"""Changes a response, given without its size, and returns it with its size."""
Move = Callable[[FrameReader, FrameWriter], Awaitable[None]]
"""Moves the response that was begun to the client, in whatever form the client gets it."""


class Review(Protocol):
    """The review of one request."""

    @property
    def frame(self) -> bytes:
        """The frame that goes to the broker; empty if nothing does."""

    async def answer(self, frame: bytes | None) -> bytes:
        """Return the response to the client, its size included, given the broker's response without
        its size; None if nothing went there. Raises MalformedMessage.
        """

    def abandon(self) -> None:
        """Note that the connection ended. It means nothing for a request that was answered."""


class Pending(msgspec.Struct):
    """A request that was read and whose response was not sent yet."""

    correlation_id: int
    move: Move | None = None
    """None for a response that passes as it is."""
    answer: bytes | None = None
    """The response of the gateway itself, its size in front; the broker does not see the
    request.
    """


class Broker(Protocol):
    """The other end of a client's connection: one broker, or any of them."""

    async def connect(self, client: Transport) -> Transport:
        """Connect a client to it, as soon as its address is known. Raises Disconnected."""

    def move_of(self, head: RequestHead) -> Move | None:
        """Return what moves the response to a request; None if it passes as it is."""

    def answer_of(self, head: RequestHead) -> bytes | None:
        """Return the response of the gateway itself, or None to have the broker answer."""

    def may_review(self, head: RequestHead) -> bool:
        """Whether requests of an API may be reviewed as a whole before the broker gets them."""

    def change_of(self, head: RequestHead) -> Change | None:
        """Return what changes the response to a request as a whole; None if nothing does."""

    def passes(self, frame: bytes) -> bool:
        """Whether a request that may be reviewed needs no review. Raises ProtocolError."""

    async def review(self, caller: Caller, frame: bytes) -> Review:
        """Review a request, given as its frame without the size. Raises ProtocolError."""


class Login(Protocol):
    """The logins on a client's connection, which tell who the caller is."""

    async def move_of(self, head: RequestHead, frames: FrameReader) -> Move | None:
        """Return what moves the response to a request that is part of a login, without taking it;
        None for any other one. Raises ProtocolError, Disconnected.
        """


class Channel:
    """Serves one client until either end closes its connection."""

    def __init__(
        self,
        client: Transport,
        caller: Caller,
        broker: Broker,
        login: Login,
        *,
        max_bytes: int,
        failures: ConnectionFailures,
        memory: RequestMemory,
    ) -> None:
        self.caller = caller
        self.last_active = trio.current_time()
        self.is_secure = False
        """Whether the TLS handshake is over, if there is one."""
        self._client = client
        self._broker = broker
        self._login = login
        self._max_bytes = max_bytes
        self._failures = failures
        self._memory = memory
        self._review: Review | None = None
        """The review of the request that the broker has to answer, if it was reviewed."""
        self._pending: deque[Pending] = deque()
        self._to_client = FrameWriter(client, self._on_taken)
        self._answered = trio.Event()
        """Set when a response was sent."""
        self._own_answers = trio.Lock()
        self._upstream: Transport | None = None
        """The connection to the broker, once there is one."""
        self._life = trio.CancelScope()
        self._draining = False
        self._reading = trio.CancelScope()
        self._is_between_requests = False

    @property
    def running(self) -> int:
        """How many requests wait for their responses."""
        return len(self._pending)

    @property
    def is_leaving(self) -> bool:
        return self._life.cancel_called

    @property
    def is_waiting_for_us(self) -> bool:
        """Whether the broker owes the client a response, and the client takes what there is."""
        return bool(self._pending) and not self._to_client.is_blocked

    def cancel(self) -> None:
        """End both connections now."""
        self._life.cancel()

    def drain(self) -> None:
        """Read no more requests, and end when the broker has answered those that were read."""
        self._draining = True
        if self._is_between_requests:  # anywhere else a cancellation could cut a request in two
            self._reading.cancel()

    async def run(self) -> None:
        """Serve until the connection ends. Raises only for defects of this program."""
        try:
            with self._life:
                await self._serve()
        finally:
            self._client.close()

    async def _serve(self) -> None:
        try:
            await secure(self._client, self.caller)
            self.is_secure = True
            await self._pump()
        except HandshakeError as error:
            self._failures.failed_handshake(self.caller, error)
            if error.was_told:  # a reset would overtake the alert
                await await_end(self._client)
        except Disconnected:
            pass
        except ProtocolError as error:
            self._failures.protocol_error(self.caller, error, about_caller(self.caller))

    async def _pump(self) -> None:
        failures: list[Exception] = []
        try:
            async with trio.open_nursery() as nursery:

                async def until_it_ends(pump: Callable[[], Awaitable[None]]) -> None:
                    try:
                        await pump()
                    except (Disconnected, ProtocolError) as error:
                        failures.append(error)
                    nursery.cancel_scope.cancel()

                async def connect() -> Transport:
                    self._upstream = upstream = await self._broker.connect(self._client)
                    nursery.start_soon(until_it_ends, partial(self._pass_responses, upstream))
                    return upstream

                nursery.start_soon(until_it_ends, partial(self._pass_requests, connect))
        finally:
            if self._review is not None:
                self._review.abandon()
            if self._upstream is not None:
                self._upstream.close()
        if failures:
            raise failures[0]

    # ------------------------------------------------------------------ requests

    async def _pass_requests(self, connect: Connect) -> None:
        with self._reading:
            await self._read_requests(FrameReader(self._client, self._max_bytes), connect)
        with trio.move_on_after(LAST_ANSWERS_SECONDS):
            await self._until(lambda: not self._pending)

    async def _read_requests(self, frames: FrameReader, connect: Connect) -> None:
        """Read requests, and pass them on or answer them, until the client or this gateway comes to
        an end.
        """
        to_broker: FrameWriter | None = None
        while await self._begins(frames):
            head = await read_head(frames)
            if head.api_key not in NEWEST:
                raise UnsupportedApi(head.api_key, head.version, head.correlation_id, None)
            answer = self._broker.answer_of(head)
            if answer is not None:
                if to_broker is not None:
                    await to_broker.flush()
                await frames.drop()  # a client decides how large it is
                self._pending.append(Pending(head.correlation_id, answer=answer))
                await self._send_own_answers()
            elif self._broker.may_review(head):
                if to_broker is None:
                    to_broker = FrameWriter(await connect())
                await self._pass_reviewed(head, frames, to_broker)
            else:
                if to_broker is None:
                    to_broker = FrameWriter(await connect())
                if head.has_answer:
                    move = await self._login.move_of(head, frames) or self._broker.move_of(head)
                    self._pending.append(Pending(head.correlation_id, move))
                await to_broker.pass_on(frames)
            if len(self._pending) >= MOST_PENDING:
                if to_broker is not None:
                    await to_broker.flush()
                await self._until(lambda: len(self._pending) < MOST_PENDING)

    async def _pass_reviewed(self, head: RequestHead, frames: FrameReader, to_broker: FrameWriter) -> None:
        """Review a request as a whole, and pass it on, or answer it, as the review says."""
        await to_broker.flush()
        size = frames.left
        if size > MOST_REVIEWED_BYTES:
            text = f"a request of {size} bytes is announced, {MOST_REVIEWED_BYTES} are allowed for this API"
            raise InvalidFrameSize(text)
        if size > SMALL_BYTES:
            await self._memory.room_for(self, size)
        try:
            frame = await frames.whole()
            if self._broker.passes(frame):
                self._pending.append(Pending(head.correlation_id, self._broker.move_of(head)))
                await to_broker.send(size_of(frame) + frame)
            else:
                await self._review_next(head, frame, to_broker)
        finally:
            self._memory.give_back(self)

    async def _review_next(self, head: RequestHead, frame: bytes, to_broker: FrameWriter) -> None:
        """Review a request when those before it were answered: Kafka begins none before that."""
        await self._until(lambda: not self._pending)
        self._review = review = await self._broker.review(self.caller, frame)
        if review.frame:
            move = partial(_move_reviewed, review, self._broker.change_of(head))
            self._pending.append(Pending(head.correlation_id, move))
            await to_broker.send(review.frame)
        else:
            self._pending.append(Pending(head.correlation_id, answer=await review.answer(None)))
            await self._send_own_answers()

    async def _begins(self, frames: FrameReader) -> bool:
        if self._draining:
            return False
        self._is_between_requests = True
        size = await frames.begin()
        self._is_between_requests = False
        self.last_active = trio.current_time()
        return size is not None

    def _on_taken(self) -> None:
        self.last_active = trio.current_time()

    async def _until(self, reached: Callable[[], bool]) -> None:
        """Wait until something holds that can change when a response was sent."""
        while not reached():
            self._answered = trio.Event()
            await self._answered.wait()

    # ------------------------------------------------------------------ responses

    async def _pass_responses(self, broker: Transport) -> None:
        frames = FrameReader(broker, self._max_bytes)
        while await frames.begin() is not None:
            self.last_active = trio.current_time()
            correlation_id = await frames.look(_CORRELATION_ID_BYTES)
            await self._send_own_answers()
            pending = self._pending[0] if self._pending else None
            if pending is None or correlation_id != pending.correlation_id.to_bytes(4, "big", signed=True):
                raise MalformedMessage("the broker answered what the client had not asked")
            move = pending.move or _pass_on
            await move(frames, self._to_client)
            self._pending.popleft()
            await self._send_own_answers()
            self._answered.set()

    async def _send_own_answers(self) -> None:
        """Send the answers of the gateway that stand before whatever the broker has to answer."""
        while self._is_own_answer_next():
            async with self._own_answers:
                if self._is_own_answer_next():
                    await self._to_client.send(self._pending[0].answer or b"")
                    self._pending.popleft()
                    self._answered.set()

    def _is_own_answer_next(self) -> bool:
        return bool(self._pending) and self._pending[0].answer is not None


async def _move_reviewed(review: Review, change: Change | None, frames: FrameReader, client: FrameWriter) -> None:
    answer = await review.answer(await frames.whole())
    await client.send(answer if change is None else await change(answer[SIZE_BYTES:]))


async def _pass_on(frames: FrameReader, client: FrameWriter) -> None:
    await client.pass_on(frames)
