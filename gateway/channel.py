"""One client's connection, and the connection to the broker that it stands for.

Each connection of a client has one of its own to the broker, so the broker's rules of order hold:
what it reads first it answers first. Requests and responses are moved piece by piece. An end that
does not read stops the other end, because a piece is read when the one before it was taken. This
module moves bytes as `exchange.py` allows and `treatment.py` decides.
"""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial

import trio

from ..network.connection import await_end, secure
from ..network.handshake_errors import HandshakeError
from ..network.transport import Disconnected, Transport
from ..protocol.errors import MalformedMessage, ProtocolError
from ..security.caller import Caller, about_caller
from .broker import OfferedBroker
from .exchange import Exchange, ExchangeEvent, ReadingState
from .frames import FrameReader, FrameWriter
from .identity.login import Login
from .intake import Intake, Shared
from .replies import Replies
from .upstream_link import UpstreamLink

MAX_FRAME_BYTES = 2**31 - 1
"""A frame is not kept in memory, so that only the broker decides how large one may be."""
LAST_ANSWERS_SECONDS = 10.0
"""How long a client that sends no more gets the responses to what it has sent."""


class ClientChannel:
    """Serves one client until either end closes its connection."""

    def __init__(self, client: Transport, caller: Caller, broker: OfferedBroker, login: Login, shared: Shared) -> None:
        self.caller = caller
        self.last_active = trio.current_time()
        self._client = client
        self._broker = broker
        self._login = login
        self._shared = shared
        self._exchange = Exchange()
        self._to_client = FrameWriter(client, self._notice_life)
        self._replies = Replies(self._exchange, self._to_client)
        self._life = trio.CancelScope()
        self._reading = trio.CancelScope()

    @property
    def running(self) -> int:
        """How many requests wait for their responses."""
        return self._exchange.running

    @property
    def is_secure(self) -> bool:
        return self._exchange.reading is not ReadingState.SECURING

    @property
    def is_leaving(self) -> bool:
        return self._life.cancel_called

    @property
    def is_waiting_for_us(self) -> bool:
        """Whether the client is owed a response, has sent all of its request, takes what there is,
        and has not left. That it left is seen without reading, because nothing is read while a
        request is held until those before it are answered.
        """
        exchange = self._exchange
        is_owed = exchange.running > 0 and exchange.reading is not ReadingState.PASSING
        return is_owed and not self._to_client.is_blocked and not self._client.has_left

    def cancel(self) -> None:
        """End both connections now."""
        self._life.cancel()

    def drain(self) -> None:
        """Read no more requests, and end when the broker has answered those that were read."""
        if self._exchange.drain():  # anywhere else a cancellation could cut a request in two
            self._reading.cancel()

    async def run(self) -> None:
        """Serve until the connection ends. Raises only for defects of this program."""
        try:
            with self._life:
                await self._serve()
        finally:
            self._client.close()
            self._exchange.forget()  # it and the writer lead back here, and the garbage collector comes seldom
            self._to_client.forget()

    async def _serve(self) -> None:
        try:
            await secure(self._client, self.caller)
            self._exchange.read(ExchangeEvent.SECURED)
            await self._pump()
        except HandshakeError as error:
            self._shared.failures.failed_handshake(self.caller, error)
            if error.was_told:  # a reset would overtake the alert
                await await_end(self._client)
        except Disconnected:
            pass
        except ProtocolError as error:
            self._shared.failures.protocol_error(self.caller, error, about_caller(self.caller))

    async def _pump(self) -> None:
        failures: list[Exception] = []
        with ExitStack() as ends:
            async with trio.open_nursery() as nursery:

                async def until_it_ends(pump: Callable[[], Awaitable[None]]) -> None:
                    try:
                        await pump()
                    except (Disconnected, ProtocolError) as error:
                        failures.append(error)
                    nursery.cancel_scope.cancel()

                async def connect() -> Transport:
                    upstream = await self._broker.connect(self._client)
                    nursery.start_soon(until_it_ends, partial(self._pass_responses, upstream))
                    return upstream

                link = UpstreamLink(self._exchange, connect, self._broker, self._login)
                ends.callback(link.close)
                intake = Intake(self._shared, self, self._replies, link)
                ends.callback(intake.abandon)
                requests = partial(self._pass_requests, intake, link, failures)
                await until_it_ends(requests)  # a task less for who is idle
        if failures:
            raise failures.pop(0)  # it leads here, and nothing here leads back to it

    async def _pass_requests(self, intake: Intake, link: UpstreamLink, failures: list[Exception]) -> None:
        try:
            with self._reading:
                frames = FrameReader(self._client, MAX_FRAME_BYTES, self._notice_life)
                while await intake.begins(frames):
                    self._notice_life()
                    await intake.take(frames)
        except ProtocolError as error:
            failures.append(error)  # those before it are answered, as they are by Kafka
        await link.flush()
        with trio.move_on_after(LAST_ANSWERS_SECONDS):
            await self._replies.until_quiet()

    def _notice_life(self) -> None:
        self.last_active = trio.current_time()

    async def _pass_responses(self, broker: Transport) -> None:
        frames = FrameReader(broker, MAX_FRAME_BYTES, self._notice_life)
        try:
            await self._replies.pass_on(frames)
        except ProtocolError as error:
            raise MalformedMessage(f"the gateway cannot read a response of the broker: {error}") from error
