"""One client's connection, and the connection to the broker that it stands for.

Each connection of a client has one of its own to the broker, so the broker's rules of order hold:
what it reads first it answers first. It is opened when the client's first request has to go there,
so that clients which ask for nothing, or for nothing that passes, cost the broker nothing. Requests
and responses are moved piece by piece. An end that does not read stops the other end, because a
piece is read when the one before it was taken.

An answer of the gateway itself stands in one queue with the requests that the broker has to answer,
so that the client gets all of them in the order of its requests.
"""

import math
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
import trio

from ..network.connection import await_end, secure
from ..network.failures import ConnectionFailures
from ..network.handshake_errors import HandshakeError
from ..network.memory import SMALL_BYTES, RequestMemory
from ..network.transport import Disconnected, Transport
from ..protocol.api_keys import ApiKey
from ..protocol.errors import InvalidFrameSize, MalformedMessage, ProtocolError, UnsupportedApi
from ..protocol.header import RequestHeader
from ..protocol.registry import KAFKA
from ..protocol.schema import WireStruct
from ..security.caller import Caller, about_caller
from .apis import APIS
from .frames import SIZE_BYTES, FrameReader, FrameWriter, size_of
from .parties import Broker, Change, Login, Move, Review
from .requests import RequestHead, read_head

CLIENT_ID = "minicontroller"
"""The client id of what the gateway itself asks brokers on the connection of a client."""
OWN_CORRELATION_ID = 0
MOST_WHOLE_BYTES = 8 * 1024 * 1024
"""The largest request that is reviewed, or goes to the controller, which is held as a whole."""
MOST_PENDING = 1000
"""How many requests of a client may wait for their responses before no more are read."""
INQUIRY_SECONDS = 30.0  # Kafka's clients: request.timeout.ms
"""How long a broker is waited for that the gateway asks in the name of a client."""
LAST_ANSWERS_SECONDS = 10.0
"""How long a client that sends no more gets the responses to what it has sent."""
_CORRELATION_ID_BYTES = 4

Connect = Callable[[], Awaitable[Transport]]
"""Connects to the broker, and passes its responses to the client from now on."""


class Pending(msgspec.Struct):
    """A request that was read and whose response was not sent yet."""

    correlation_id: int
    move: Move | None = None
    """None for a response that passes as it is."""
    answer: bytes | None = None
    """The response of the gateway itself, its size in front; the broker does not see the
    request.
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
        counts: Counter[int],
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
        self._counts = counts
        self._review: Review | None = None
        """The review of the request that is being answered, if it was reviewed. Until it is over,
        the request keeps its room in memory.
        """
        self._pending: deque[Pending] = deque()
        self._to_client = FrameWriter(client, self._notice_life)
        self._answered = trio.Event()
        """Set when a response was sent."""
        self._own_answers = trio.Lock()
        self._to_broker: FrameWriter | None = None
        self._logged_in_until = -math.inf
        """trio's time until which the connection to the broker need not log in again."""
        self._upstream: Transport | None = None
        """The connection to the broker, once there is one."""
        self._life = trio.CancelScope()
        self._draining = False
        self._reading = trio.CancelScope()
        self._is_between_requests = False
        self._is_amid_request = False
        """Whether a part of a request has passed on, and the rest has not come yet."""

    @property
    def running(self) -> int:
        """How many requests wait for their responses."""
        return len(self._pending)

    @property
    def is_leaving(self) -> bool:
        return self._life.cancel_called

    @property
    def is_waiting_for_us(self) -> bool:
        """Whether the broker owes the client a response, and the client has sent all of its request
        and takes what there is.
        """
        return bool(self._pending) and not self._is_amid_request and not self._to_client.is_blocked

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
            self._pending.clear()  # they and the writer lead back here, and the garbage collector comes seldom
            self._to_client.forget()

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
                    nursery.start_soon(until_it_ends, partial(self._read_responses, upstream))
                    return upstream

                await until_it_ends(partial(self._pass_requests, connect))  # a task less for who is idle
        finally:
            if self._review is not None:
                self._review.abandon()
            if self._upstream is not None:
                self._upstream.close()
        if failures:
            raise failures.pop(0)  # it leads here, and nothing here leads back to it

    # ------------------------------------------------------------------ requests

    async def _pass_requests(self, connect: Connect) -> None:
        with self._reading:
            await self._read_requests(FrameReader(self._client, self._max_bytes, self._notice_life), connect)
        with trio.move_on_after(LAST_ANSWERS_SECONDS):
            await self._until(lambda: not self._pending)

    async def _read_requests(self, frames: FrameReader, connect: Connect) -> None:
        """Read requests, and pass them on or answer them, until the client or this gateway comes to
        an end.
        """
        while await self._begins(frames):
            head = await read_head(frames)
            if head.api_key not in APIS:
                raise UnsupportedApi(head.api_key, head.version, head.correlation_id, None)
            self._counts[head.api_key] += 1
            answer = await self._answer_of(head, frames)
            if answer is not None:
                self._pending.append(Pending(head.correlation_id, answer=answer))
                await self._send_own_answers()
            elif self._login.may_forward(head) or self._broker.may_review(head):
                await self._pass_whole(head, frames, connect)
            else:
                to_broker = await self._open(connect)
                if head.has_answer:
                    move = await self._login.move_of(head, frames) or self._broker.move_of(head)
                    self._pending.append(Pending(head.correlation_id, move))
                self._is_amid_request = True
                await to_broker.pass_on(frames)
                self._is_amid_request = False
            if len(self._pending) >= MOST_PENDING:
                await self._flush()
                await self._until(lambda: len(self._pending) < MOST_PENDING)

    async def _answer_of(self, head: RequestHead, frames: FrameReader) -> bytes | None:
        """Take a request that the gateway answers itself, and return the response; None if the
        cluster answers it.
        """
        answer = self._broker.answer_of(head)
        if answer is None:
            if APIS[head.api_key].is_login:
                await self._flush()
            return await self._login.answer_of(head, frames)
        await self._flush()
        await frames.drop()  # a client decides how large it is
        return answer

    async def _open(self, connect: Connect) -> FrameWriter:
        """Return what sends to the broker, once it is connected and knows the user."""
        if self._to_broker is None:
            self._to_broker = FrameWriter(await connect())
        await self._log_in(self._to_broker)
        return self._to_broker

    async def _flush(self) -> None:
        if self._to_broker is not None:
            await self._to_broker.flush()

    async def _log_in(self, to_broker: FrameWriter) -> None:
        """Log in at the broker if that is due, before the next request goes there."""
        credentials = self._login.credentials
        if credentials is None or trio.current_time() < self._logged_in_until:
            return

        ask = partial(self._ask_broker, to_broker)
        self._logged_in_until = trio.current_time() + await self._broker.log_in(ask, credentials)

    async def _ask_broker(
        self, to_broker: FrameWriter, api_key: ApiKey, version: int, message: WireStruct
    ) -> WireStruct:
        """Have the broker answer a request of the gateway itself."""
        answered = trio.Event()
        answers: list[WireStruct] = []

        async def take(frames: FrameReader, _client: FrameWriter) -> None:
            answers.append(KAFKA.decode_response(api_key, version, await frames.whole())[1])
            answered.set()

        self._pending.append(Pending(OWN_CORRELATION_ID, take))
        await to_broker.send(_own_request(api_key, version, message))
        await answered.wait()
        return answers[0]

    async def _ask_for_client(self, connect: Connect, api_key: ApiKey, version: int, message: WireStruct) -> WireStruct:
        """Have a request of the gateway itself answered where it would go if the client had sent
        it. Raises ProtocolError, Disconnected.
        """
        frame = _own_request(api_key, version, message)[SIZE_BYTES:]
        head = RequestHead(api_key, version, OWN_CORRELATION_ID)
        if self._login.may_forward(head) and self._login.forwards(frame):
            answer = (await self._login.forward(frame))[SIZE_BYTES:]
            return KAFKA.decode_response(api_key, version, answer)[1]
        try:
            with trio.fail_after(INQUIRY_SECONDS):  # nobody notices meanwhile that the client has gone
                return await self._ask_broker(await self._open(connect), api_key, version, message)
        except trio.TooSlowError as error:
            raise Disconnected("the broker does not answer") from error

    async def _pass_whole(self, head: RequestHead, frames: FrameReader, connect: Connect) -> None:
        """Take a request as a whole, review it if that is due, and have it answered."""
        await self._flush()
        size = frames.left
        if size > MOST_WHOLE_BYTES:
            text = f"a request of {size} bytes is announced, {MOST_WHOLE_BYTES} are allowed for this API"
            raise InvalidFrameSize(text)
        if size > SMALL_BYTES:
            await self._until(lambda: self._review is None)  # it holds the room of its request
            await self._memory.room_for(self, size)
        try:
            frame = await frames.whole()
            review = None
            if self._broker.may_review(head) and not self._broker.passes(frame):
                await self._until(lambda: not self._pending)  # Kafka begins none before those before it are answered
                self._login.check()
                self._review = review = await self._broker.review(self.caller, frame)
                if review is not None:
                    await review.inquire(partial(self._ask_for_client, connect))
            if review is not None and not review.frame:
                self._pending.append(Pending(head.correlation_id, answer=await review.answer(None)))
                self._review = None
                await self._send_own_answers()
            else:
                await self._pass_on_whole(head, frame, review, connect)
        finally:
            if self._review is None:
                self._memory.give_back(self)

    async def _pass_on_whole(self, head: RequestHead, frame: bytes, review: Review | None, connect: Connect) -> None:
        """Have the controller or the broker answer a request, or what its review leaves of it."""
        sent = size_of(frame) + frame if review is None else review.frame
        if self._login.may_forward(head) and self._login.forwards(sent[SIZE_BYTES:]):
            await self._until(lambda: not self._pending)  # Kafka begins none before that
            self._pending.append(pending := Pending(head.correlation_id))
            answer = await self._login.forward(sent[SIZE_BYTES:])
            pending.answer = answer if review is None else await review.answer(answer[SIZE_BYTES:])
            self._review = None
            await self._send_own_answers()
            return
        to_broker = await self._open(connect)
        move = self._broker.move_of(head)
        if review is not None:
            sent_head = msgspec.structs.replace(head, version=review.version)
            move = partial(self._move_reviewed, review, self._broker.change_of(sent_head))
        self._pending.append(Pending(head.correlation_id, move))
        await to_broker.send(sent)

    async def _begins(self, frames: FrameReader) -> bool:
        if self._draining or self._login.is_over:
            return False
        self._is_between_requests = True
        size = await frames.begin()
        self._is_between_requests = False
        self.last_active = trio.current_time()
        return size is not None and not self._login.is_over

    def _notice_life(self) -> None:
        self.last_active = trio.current_time()

    async def _until(self, reached: Callable[[], bool]) -> None:
        """Wait until something holds that can change when a response was sent."""
        while not reached():
            self._answered = trio.Event()
            await self._answered.wait()

    # ------------------------------------------------------------------ responses

    async def _read_responses(self, broker: Transport) -> None:
        try:
            await self._pass_responses(broker)
        except ProtocolError as error:
            raise MalformedMessage(f"the gateway cannot read a response of the broker: {error}") from error

    async def _pass_responses(self, broker: Transport) -> None:
        frames = FrameReader(broker, self._max_bytes)
        while await frames.begin() is not None:
            self.last_active = trio.current_time()
            correlation_id = await frames.look(_CORRELATION_ID_BYTES)
            await self._send_own_answers()
            pending = self._pending[0] if self._pending else None
            if pending is None or correlation_id != pending.correlation_id.to_bytes(4, "big", signed=True):
                raise MalformedMessage("it answers a request that the client has not sent")
            move = pending.move or _pass_on
            await move(frames, self._to_client)
            self._pending.popleft()
            await self._send_own_answers()
            self._answered.set()

    async def _move_reviewed(
        self, review: Review, change: Change | None, frames: FrameReader, client: FrameWriter
    ) -> None:
        frame = await frames.whole()
        if change is not None:  # before the review, which may add very many rows
            frame = (await change(frame))[SIZE_BYTES:]
        await client.send(await review.answer(frame))
        self._review = None
        self._memory.give_back(self)

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


def _own_request(api_key: ApiKey, version: int, message: WireStruct) -> bytes:
    return KAFKA.encode_request(RequestHeader(api_key, version, OWN_CORRELATION_ID, CLIENT_ID), message)


async def _pass_on(frames: FrameReader, client: FrameWriter) -> None:
    await client.pass_on(frames)
