"""The exchange of one client with a cluster, as states: which request is read, whose responses are
awaited, and what is sent to the client.

The machine does no input and no output and does not wait. Its shell (`channel.py`) reports each
event to it, does what it then allows, and raises IllegalEventError where it would do anything that
stands in neither table. The client gets all responses in the order of its requests, whoever answers
them.
"""

from collections import deque
from collections.abc import Mapping
from enum import StrEnum  # the hash of another member is computed in Python

import msgspec

from ..protocol.errors import MalformedMessage
from .frames import Move

MOST_AWAITED = 1000
"""How many requests of a client may wait for their responses before no more are read."""
OWN_CORRELATION_ID = 0
"""The correlation id of what the gateway itself asks on the connection of a client."""


class ReadingState(StrEnum):
    """What the client's next bytes are to the gateway."""

    SECURING = "the TLS handshake"
    IDLE = "the beginning of a request"
    DECIDING = "a request whose head is read; if it is to pass, the broker is connected now"
    ANSWERING = "a request that the gateway answers"
    PASSING = "a request that passes to the broker in pieces"
    HOLDING = "a request that the gateway holds as a whole"
    FULL = "nothing, until the client was sent a response: too many are awaited"
    ENDED = "nothing: no more is read"


class SendingState(StrEnum):
    """What is being sent to the client."""

    IDLE = "nothing"
    ANSWER = "an answer of the gateway or the controller"
    RESPONSE = "a response of the broker"


class ExchangeEvent(StrEnum):
    SECURED = "the handshake is over"
    BEGUN = "a request begins"
    ANSWER = "the gateway is to answer it"
    PASS = "it is to pass"  # noqa: S105 - an event
    HOLD = "it is to be held"
    TAKEN = "it went on, or was answered"
    FILLED = "the same, and no more may be awaited"
    MADE_ROOM = "another one may be awaited"
    STOPPED = "no further request is read"
    SEND_ANSWER = "an answer is sent"
    SEND_RESPONSE = "a response of the broker is sent"
    SENT = "it was sent"


READING: Mapping[ReadingState, Mapping[ExchangeEvent, ReadingState]] = {
    ReadingState.SECURING: {ExchangeEvent.SECURED: ReadingState.IDLE},
    ReadingState.IDLE: {ExchangeEvent.BEGUN: ReadingState.DECIDING, ExchangeEvent.STOPPED: ReadingState.ENDED},
    ReadingState.DECIDING: {
        ExchangeEvent.ANSWER: ReadingState.ANSWERING,
        ExchangeEvent.PASS: ReadingState.PASSING,
        ExchangeEvent.HOLD: ReadingState.HOLDING,
    },
    ReadingState.ANSWERING: {ExchangeEvent.TAKEN: ReadingState.IDLE, ExchangeEvent.FILLED: ReadingState.FULL},
    ReadingState.PASSING: {ExchangeEvent.TAKEN: ReadingState.IDLE, ExchangeEvent.FILLED: ReadingState.FULL},
    ReadingState.HOLDING: {ExchangeEvent.TAKEN: ReadingState.IDLE, ExchangeEvent.FILLED: ReadingState.FULL},
    ReadingState.FULL: {ExchangeEvent.MADE_ROOM: ReadingState.IDLE},
    ReadingState.ENDED: {},
}
"""The next state of reading, by state and event. What is not here cannot happen."""

SENDING: Mapping[SendingState, Mapping[ExchangeEvent, SendingState]] = {
    SendingState.IDLE: {
        ExchangeEvent.SEND_ANSWER: SendingState.ANSWER,
        ExchangeEvent.SEND_RESPONSE: SendingState.RESPONSE,
    },
    SendingState.ANSWER: {ExchangeEvent.SENT: SendingState.IDLE},
    SendingState.RESPONSE: {ExchangeEvent.SENT: SendingState.IDLE},
}
"""The next state of sending."""

ANSWERED = frozenset({ReadingState.ANSWERING, ReadingState.HOLDING})
"""The states in which the gateway has an answer to the request."""
SENT_ON = frozenset({ReadingState.DECIDING, ReadingState.PASSING, ReadingState.HOLDING})
"""The states in which a request goes to the broker: that of the client, or one before it, by which
the gateway logs in or asks for what it has to know.
"""


class Answerer(StrEnum):
    """Who answers a request."""

    BROKER = "the broker"
    CONTROLLER = "the controller"
    GATEWAY = "the gateway"
    """Its answer is there; a controller's is, too, once it has come."""


class Awaited(msgspec.Struct, eq=False):
    """A request that was read and whose response was not sent yet."""

    correlation_id: int
    source: Answerer
    move: Move | None = None
    """Moves the broker's response to the client; None if it passes as it is."""
    answer: bytes = b""
    """The answer of the gateway, its size in front."""


class IllegalEventError(Exception):
    """An event that the present state does not allow: a defect of the machine's shell."""


class Exchange:
    __slots__ = ("_awaited", "_is_draining", "reading", "sending")

    def __init__(self) -> None:
        self.reading = ReadingState.SECURING
        self.sending = SendingState.IDLE
        self._awaited: deque[Awaited] = deque()
        """The requests without a sent response, in their order."""
        self._is_draining = False
        """Whether reading ends as soon as it is between two requests."""

    @property
    def running(self) -> int:
        """How many requests wait for their responses."""
        return len(self._awaited)

    @property
    def is_quiet(self) -> bool:
        """Whether all requests before the present one were answered."""
        return not self._awaited

    # ------------------------------------------------------------------ requests

    def read(self, event: ExchangeEvent) -> None:
        """Note an event of the requests. Raises IllegalEventError."""
        state = READING[self.reading].get(event)
        if state is None:
            raise self._illegal()
        if self._is_draining and state is ReadingState.IDLE:
            state = READING[state][ExchangeEvent.STOPPED]
        self.reading = state

    def taken(self) -> None:
        """Note that all of the request was taken, and went on or was answered."""
        self.read(ExchangeEvent.FILLED if len(self._awaited) >= MOST_AWAITED else ExchangeEvent.TAKEN)

    def drain(self) -> bool:
        """Read no further request after the present one. Return whether there is none, so that
        waiting for the next one may be cancelled.
        """
        self._is_draining = True
        is_between = self.reading is ReadingState.IDLE
        if is_between:
            self.read(ExchangeEvent.STOPPED)
        return is_between

    def await_broker(self, correlation_id: int, move: Move | None) -> None:
        """Note that a request goes to the broker. Its response passes, or `move` moves it."""
        if self.reading not in SENT_ON:
            raise self._illegal()
        self._awaited.append(Awaited(correlation_id, Answerer.BROKER, move))

    def await_controller(self, correlation_id: int) -> Awaited:
        """Note that a request goes to the controller, which begins none before those before it are
        answered.
        """
        if self.reading is not ReadingState.HOLDING or self._awaited:
            raise self._illegal()
        self._awaited.append(awaited := Awaited(correlation_id, Answerer.CONTROLLER))
        return awaited

    def answer(self, correlation_id: int, answer: bytes) -> None:
        """Have an answer of the gateway sent in its turn."""
        if self.reading not in ANSWERED:
            raise self._illegal()
        self._awaited.append(Awaited(correlation_id, Answerer.GATEWAY, answer=answer))

    def controller_answered(self, awaited: Awaited, answer: bytes) -> None:
        """Have the controller's answer sent in its turn."""
        if awaited.source is not Answerer.CONTROLLER:
            raise self._illegal()
        awaited.source, awaited.answer = Answerer.GATEWAY, answer

    # ------------------------------------------------------------------ responses

    @property
    def is_answer_next(self) -> bool:
        """Whether the next response of the client is there and is not the broker's."""
        return bool(self._awaited) and self._awaited[0].source is Answerer.GATEWAY

    def next_answer(self) -> bytes | None:
        """Begin to send the answer of the gateway whose turn it is. Return None if it is another's
        turn, or if something is being sent, after which the sender asks again.
        """
        if self.sending is not SendingState.IDLE or not self.is_answer_next:
            return None
        self._send(ExchangeEvent.SEND_ANSWER)
        return self._awaited[0].answer

    def response_begun(self, correlation_id: bytes) -> Move | None:
        """Begin to send a response of the broker, and return what moves it, None if it passes.
        Raises MalformedMessage if it answers no request.
        """
        awaited = self._awaited[0] if self._awaited else None
        if awaited is None or awaited.source is not Answerer.BROKER:
            raise MalformedMessage("it answers a request that the client has not sent")
        if correlation_id != awaited.correlation_id.to_bytes(4, "big", signed=True):
            raise MalformedMessage("it answers a request that the client has not sent")
        self._send(ExchangeEvent.SEND_RESPONSE)
        return awaited.move

    def sent(self) -> None:
        """Note that the client was sent what it was being sent."""
        self._send(ExchangeEvent.SENT)
        self._awaited.popleft()
        if self.reading is ReadingState.FULL and len(self._awaited) < MOST_AWAITED:
            self.read(ExchangeEvent.MADE_ROOM)

    def forget(self) -> None:
        """Drop what is awaited; the connection has ended."""
        self._awaited.clear()

    # ------------------------------------------------------------------ states

    def _send(self, event: ExchangeEvent) -> None:
        state = SENDING[self.sending].get(event)
        if state is None:
            raise self._illegal()
        self.sending = state

    def _illegal(self) -> IllegalEventError:
        return IllegalEventError(f"not while reading is {self.reading.name} and sending is {self.sending.name}")
