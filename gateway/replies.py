"""Sends a client its responses in the order of its requests: those that the broker sends, and the
answers of the gateway between them.

Two tasks send: the one that reads the client's requests, and the one that reads the broker's
responses. The exchange lets one of them send at a time, and the other one goes on.
"""

from collections.abc import Callable

import trio

from .exchange import Exchange, SendingState
from .frames import FrameReader, FrameWriter

_CORRELATION_ID_BYTES = 4


class Replies:
    __slots__ = ("_client", "_sent", "exchange")

    def __init__(self, exchange: Exchange, client: FrameWriter) -> None:
        self.exchange = exchange
        self._client = client
        self._sent = trio.lowlevel.ParkingLot()

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until something holds that can change when the client was sent a response."""
        while not reached():
            await self._sent.park()

    async def until_quiet(self) -> None:
        """Wait until all requests were answered. Kafka begins none before those before it are."""
        await self.until(lambda: self.exchange.is_quiet)

    async def answer(self, correlation_id: int, answer: bytes) -> None:
        """Answer a request, in its turn. Raises Disconnected."""
        self.exchange.answer(correlation_id, answer)
        await self.send_answers()

    async def send_answers(self) -> None:
        """Send the answers of the gateway that stand before whatever else is awaited. Raises
        Disconnected.
        """
        while (answer := self.exchange.next_answer()) is not None:
            await self._client.send(answer)
            self._was_sent()

    async def pass_on(self, frames: FrameReader) -> None:
        """Send the responses of the broker, until it ends. Raises ProtocolError, Disconnected."""
        exchange = self.exchange
        while await frames.begin() is not None:
            correlation_id = await frames.look(_CORRELATION_ID_BYTES)
            if exchange.is_answer_next:
                await self.send_answers()
                await self.until(lambda: exchange.sending is SendingState.IDLE)
            move = exchange.response_begun(correlation_id)
            if move is None:
                await self._client.pass_on(frames)
            else:
                await move(frames, self._client)
            self._was_sent()
            if exchange.is_answer_next:
                await self.send_answers()

    def _was_sent(self) -> None:
        self.exchange.sent()
        if self._sent:  # unparking costs something even if nobody is parked
            self._sent.unpark_all()
