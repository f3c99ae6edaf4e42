"""Takes the requests of one client, each as `treatment.py` decides by its head.

A request that is judged, or that the controller answers, is held as a whole. What the judgement
leaves of it goes to the controller or to the broker, as the request would have gone. A large
request counts as memory of the gateway until it is answered, if it was judged, and otherwise until
it has gone on.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial

import msgspec
import trio

from ..network.failures import ConnectionFailures
from ..network.memory import SMALL_BYTES, Holder, RequestMemory
from ..network.transport import Disconnected
from ..protocol.api_keys import ApiKey
from ..protocol.errors import ProtocolError
from ..protocol.registry import KAFKA
from ..protocol.schema import WireStruct
from .apis import APIS
from .exchange import ExchangeEvent, ReadingState
from .frames import SIZE_BYTES, FrameReader, FrameWriter, size_of
from .identity.forwarding import Forwarding, concerns_brokers
from .identity.login import Stage
from .judging.review import Review, Reviewer
from .replies import Replies
from .requests import RequestHead, read_head
from .responses import Change, Responses
from .treatment import TOO_EARLY, Passage, Service, Treatment, treatment_of
from .upstream_link import UpstreamLink, own_request
from .versions import too_new

ANSWERED_HERE = (Passage.ANSWER, Passage.LOG_IN)
INQUIRY_SECONDS = 30.0  # Kafka's clients: request.timeout.ms
"""How long a broker is waited for that the gateway asks in the name of a client."""


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a gateway that the connections of all its clients share."""

    service: Service
    responses: Responses
    reviewer: Callable[[], Reviewer | None]
    """Returns who judges requests for changes, if anybody does."""
    forwarding: Forwarding | None
    """Has the controller answer requests, with `Service.forwards`."""
    failures: ConnectionFailures
    memory: RequestMemory
    counts: Counter[int]
    """How many requests were read, by API key."""


class Intake:
    __slots__ = ("_exchange", "_holder", "_link", "_replies", "_review", "_shared")

    def __init__(self, shared: Shared, holder: Holder, replies: Replies, link: UpstreamLink) -> None:
        """Take the requests of a connection, for which `holder` stands in the memory of all."""
        self._shared = shared
        self._holder = holder
        self._exchange = replies.exchange
        self._replies = replies
        self._link = link
        self._review: Review | None = None
        """The review of the request that was judged last, until that is answered."""

    async def begins(self, frames: FrameReader) -> bool:
        """Wait for the next request. Return False at the end of the client, of its login, or of
        this gateway. Raises ProtocolError, Disconnected.
        """
        size, login = None, self._link.login
        if self._exchange.reading is ReadingState.IDLE and not login.is_over:
            size = await frames.begin()
        if self._exchange.reading is ReadingState.ENDED:
            return False
        if size is None or login.is_over:
            self._exchange.read(ExchangeEvent.STOPPED)
            return False
        self._exchange.read(ExchangeEvent.BEGUN)
        return True

    async def take(self, frames: FrameReader) -> None:
        """Take the request that was begun, and pass it on or answer it. Raises ProtocolError,
        Disconnected.
        """
        head, login, shared = await read_head(frames), self._link.login, self._shared
        if head.api_key in APIS:
            shared.counts[head.api_key] += 1
        reviewer = shared.reviewer()
        is_judged = reviewer is not None and reviewer.takes(head.api_key)
        treatment = treatment_of(head, frames.left, shared.service, login.state, is_judged=is_judged)
        if treatment.is_held:
            await self._link.flush()
            self._exchange.read(ExchangeEvent.HOLD)
            await self._hold(head, treatment, frames)
        elif treatment.passage in ANSWERED_HERE:
            await self._link.flush()
            self._exchange.read(ExchangeEvent.ANSWER)
            await self._replies.answer(head.correlation_id, await self._answer(head, treatment, frames))
        else:
            await self._pass(head, treatment, frames)
        self._exchange.taken()
        if self._exchange.reading is ReadingState.FULL:
            await self._link.flush()
            await self._replies.until(lambda: self._exchange.reading is not ReadingState.FULL)

    def abandon(self) -> None:
        """Note that the connection has ended."""
        if self._review is not None:
            self._review.abandon()

    async def _answer(self, head: RequestHead, treatment: Treatment, frames: FrameReader) -> bytes:
        if treatment.passage is Passage.LOG_IN:
            return await self._link.login.answer(head, await frames.whole())
        await frames.drop()  # a client decides how large it is
        return too_new(head)

    async def _pass(self, head: RequestHead, treatment: Treatment, frames: FrameReader) -> None:
        to_broker = await self._link.opened()
        if treatment.passage is Passage.WATCH:
            move = self._link.login.watch(head, await frames.look(frames.left))
        else:
            move = self._shared.responses.move_of(treatment.api, head)
        self._exchange.read(ExchangeEvent.PASS)
        if head.has_answer:
            self._exchange.await_broker(head.correlation_id, move)
        await to_broker.pass_on(frames)

    async def _hold(self, head: RequestHead, treatment: Treatment, frames: FrameReader) -> None:
        """Hold a request, judge it if that is due, and have it answered. Raises ProtocolError,
        Disconnected.
        """
        size = frames.left
        if size > SMALL_BYTES:
            await self._replies.until(lambda: self._review is None)  # it holds the room of its request
            await self._shared.memory.room_for(self._holder, size)
        try:
            frame = await frames.whole()
            review = await self._reviewed(frame) if treatment.is_judged else None
            if review is None:
                await self._send_on(head, treatment, size_of(frame) + frame, None)
            elif review.frame:
                await self._send_on(head, treatment, review.frame, review)
            else:
                await self._replies.answer(head.correlation_id, await self._completed(review, None))
        finally:
            if self._review is None:
                self._shared.memory.give_back(self._holder)

    async def _reviewed(self, frame: bytes) -> Review | None:
        """Judge a request; return None if it changes nothing."""
        reviewer = self._shared.reviewer()
        if reviewer is None or reviewer.passes(frame):
            return None
        await self._replies.until_quiet()
        if self._link.login.state.stage is not Stage.DONE:
            raise ProtocolError(TOO_EARLY)
        self._review = review = await reviewer.review(self._holder.caller, frame)
        if review is not None:
            await review.inquire(self._ask)
        return review

    async def _send_on(self, head: RequestHead, treatment: Treatment, request: bytes, review: Review | None) -> None:
        """Have the controller or the broker answer a request, or what its review leaves of it."""
        if treatment.passage is Passage.FORWARD and not concerns_brokers(request[SIZE_BYTES:]):
            await self._replies.until_quiet()
            awaited = self._exchange.await_controller(head.correlation_id)
            try:
                answer = await self._forwarded(request[SIZE_BYTES:])
                if review is not None:
                    answer = await self._completed(review, answer[SIZE_BYTES:])
            except ProtocolError:
                self._exchange.forget()  # no answer will come
                raise
            self._exchange.controller_answered(awaited, answer)
            await self._replies.send_answers()
            return
        to_broker = await self._link.opened()
        move = self._shared.responses.move_of(treatment.api, head)
        if review is not None:
            sent_head = msgspec.structs.replace(head, version=review.version)
            move = partial(self._move_judged, review, self._shared.responses.change_of(treatment.api, sent_head))
        self._exchange.await_broker(head.correlation_id, move)
        await to_broker.send(request)

    async def _forwarded(self, frame: bytes) -> bytes:
        assert self._shared.forwarding is not None
        return await self._shared.forwarding.answer(self._holder.caller, frame)

    async def _completed(self, review: Review, frame: bytes | None) -> bytes:
        """Return the response to a judged request, whose review is over."""
        answer = await review.answer(frame)
        self._review = None
        return answer

    async def _move_judged(
        self, review: Review, change: Change | None, frames: FrameReader, client: FrameWriter
    ) -> None:
        frame = await frames.whole()
        if change is not None:  # before the review, which may add very many rows
            frame = (await change(frame))[SIZE_BYTES:]
        await client.send(await self._completed(review, frame))
        self._shared.memory.give_back(self._holder)

    async def _ask(self, api_key: ApiKey, version: int, message: WireStruct) -> WireStruct:
        """Have a request of the gateway itself answered where it would go if the client had sent
        it. Raises ProtocolError, Disconnected.
        """
        service = self._shared.service
        frame = own_request(api_key, version, message)[SIZE_BYTES:]
        if service.is_forwarded(service.apis[api_key]) and not concerns_brokers(frame):
            answer = await self._forwarded(frame)
            return KAFKA.decode_response(api_key, version, answer[SIZE_BYTES:])[1]
        try:
            with trio.fail_after(INQUIRY_SECONDS):  # nobody notices meanwhile that the client has gone
                return await self._link.ask(api_key, version, message)
        except trio.TooSlowError as error:
            raise Disconnected("the broker does not answer") from error
