"""Takes the requests of one client, each as `treatment.py` decides by its head."""

from ..network.memory import Holder
from .apis import APIS
from .exchange import ExchangeEvent, ReadingState
from .frames import FrameReader
from .held_requests import HeldRequests, Shared
from .replies import Replies
from .requests import RequestHead, read_head
from .treatment import Passage, Treatment, treatment_of
from .upstream_link import UpstreamLink
from .versions import too_new

ANSWERED_HERE = (Passage.ANSWER, Passage.LOG_IN)


class Intake:
    def __init__(self, shared: Shared, holder: Holder, replies: Replies, link: UpstreamLink) -> None:
        self._shared = shared
        self._exchange = replies.exchange
        self._replies = replies
        self._link = link
        self.held = HeldRequests(shared, holder, replies, link)

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
            await self.held.take(head, treatment, frames)
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
