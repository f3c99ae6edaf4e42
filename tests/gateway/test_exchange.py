"""The machine of an exchange under arbitrary events: what its tables do not allow changes nothing,
and whatever they allow, the client gets the responses in the order of its requests.
"""

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from minicontroller.gateway import exchange
from minicontroller.gateway.exchange import (
    READING,
    SENDING,
    Answerer,
    Awaited,
    Exchange,
    ExchangeEvent,
    IllegalEventError,
    ReadingState,
    SendingState,
)
from minicontroller.protocol.errors import MalformedMessage

MOST = 3
REPORTED = (
    ExchangeEvent.SECURED,
    ExchangeEvent.BEGUN,
    ExchangeEvent.ANSWER,
    ExchangeEvent.PASS,
    ExchangeEvent.HOLD,
    ExchangeEvent.STOPPED,
)
"""The events that the shell reports; the machine itself finds the others out."""
TREATED = st.sampled_from((ExchangeEvent.ANSWER, ExchangeEvent.PASS, ExchangeEvent.HOLD))


def encoded(correlation_id: int) -> bytes:
    return correlation_id.to_bytes(4, "big")


class Exchanges(RuleBasedStateMachine):
    """An exchange, and a plain list of what the client is still owed."""

    def __init__(self) -> None:
        super().__init__()
        self.exchange = Exchange()
        self.owed: list[tuple[int, Answerer]] = []
        self.sent: list[int] = []
        self.asked = 0
        self.controllers: list[Awaited] = []
        self.is_draining = False

    def attempt(self, allowed: bool, event: Callable[[], object]) -> bool:
        """Report an event, which must be refused if it is not allowed."""
        before = self.exchange.reading, self.exchange.sending, self.exchange.running
        try:
            event()
        except IllegalEventError:
            assert not allowed
            assert (self.exchange.reading, self.exchange.sending, self.exchange.running) == before
            return False
        assert allowed
        return True

    def number(self) -> int:
        self.asked += 1
        return self.asked

    @rule(treated=TREATED)
    def goes_on(self, treated: ExchangeEvent) -> None:
        """Take the next step of reading, which the others seldom meet by chance."""
        match self.exchange.reading:
            case ReadingState.SECURING:
                self.exchange.read(ExchangeEvent.SECURED)
            case ReadingState.IDLE:
                self.exchange.read(ExchangeEvent.BEGUN)
                self.exchange.read(treated)
            case ReadingState.ANSWERING | ReadingState.PASSING | ReadingState.HOLDING:
                self.exchange.taken()

    @precondition(lambda self: self.owed)
    @rule()
    def sends_what_is_due(self) -> None:
        if self.exchange.sending is not SendingState.IDLE:
            self.has_sent()
        elif self.owed[0][1] is Answerer.BROKER:
            self.sends_a_response(right=True)
        else:
            self.sends_an_answer()

    @rule(event=st.sampled_from(REPORTED))
    def reads(self, event: ExchangeEvent) -> None:
        state = self.exchange.reading
        if self.attempt(event in READING[state], lambda: self.exchange.read(event)):
            after = READING[state][event]
            assert self.exchange.reading is (
                ReadingState.ENDED if self.is_draining and after is ReadingState.IDLE else after
            )

    @rule()
    def takes(self) -> None:
        if self.attempt(ExchangeEvent.TAKEN in READING[self.exchange.reading], self.exchange.taken):
            assert (self.exchange.reading is ReadingState.FULL) == (len(self.owed) >= MOST)

    @rule()
    def drains(self) -> None:
        is_between = self.exchange.reading is ReadingState.IDLE
        assert self.exchange.drain() is is_between
        self.is_draining = True

    @rule()
    def asks_the_broker(self) -> None:
        number = self.number()
        allowed = self.exchange.reading in (ReadingState.DECIDING, ReadingState.PASSING, ReadingState.HOLDING)
        if self.attempt(allowed, lambda: self.exchange.await_broker(number, None)):
            self.owed.append((number, Answerer.BROKER))

    @rule()
    def asks_the_controller(self) -> None:
        number = self.number()
        allowed = self.exchange.reading is ReadingState.HOLDING and not self.owed
        if self.attempt(allowed, lambda: self.controllers.append(self.exchange.await_controller(number))):
            self.owed.append((number, Answerer.CONTROLLER))

    @precondition(lambda self: self.controllers)
    @rule()
    def hears_from_the_controller(self) -> None:
        awaited = self.controllers[-1]
        number = awaited.correlation_id
        allowed = (number, Answerer.CONTROLLER) in self.owed
        if self.attempt(allowed, lambda: self.exchange.controller_answered(awaited, encoded(number))):
            self.owed[self.owed.index((number, Answerer.CONTROLLER))] = (number, Answerer.GATEWAY)

    @rule()
    def answers(self) -> None:
        number = self.number()
        allowed = self.exchange.reading in (ReadingState.ANSWERING, ReadingState.HOLDING)
        if self.attempt(allowed, lambda: self.exchange.answer(number, encoded(number))):
            self.owed.append((number, Answerer.GATEWAY))

    @rule()
    def sends_an_answer(self) -> None:
        due = self.owed[:1] if self.exchange.sending is SendingState.IDLE else []
        answer = self.exchange.next_answer()
        assert answer == (encoded(due[0][0]) if due and due[0][1] is Answerer.GATEWAY else None)

    @rule(right=st.booleans())
    def sends_a_response(self, right: bool) -> None:
        number = self.owed[0][0] if self.owed and right else self.asked + 1
        is_due = bool(self.owed) and right and self.owed[0][1] is Answerer.BROKER
        try:
            self.attempt(
                self.exchange.sending is SendingState.IDLE, lambda: self.exchange.response_begun(encoded(number))
            )
        except MalformedMessage:
            assert not is_due
        else:
            assert is_due

    @rule()
    def has_sent(self) -> None:
        is_sending = self.exchange.sending is not SendingState.IDLE
        if self.attempt(is_sending, self.exchange.sent):
            self.sent.append(self.owed.pop(0)[0])

    @invariant()
    def holds(self) -> None:
        assert self.exchange.running == len(self.owed)
        assert self.sent == sorted(self.sent)
        assert self.exchange.is_quiet == (not self.owed)
        assert self.exchange.reading is not ReadingState.FULL or len(self.owed) >= MOST
        if self.is_draining:
            assert self.exchange.reading is not ReadingState.IDLE


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MOST_AWAITED", MOST)


def test_any_events() -> None:
    """The machine refuses what its tables do not have, and owes the client what a list has."""
    run_state_machine_as_test(Exchanges, settings=settings(max_examples=60, stateful_step_count=60))


def test_every_state_is_reached_and_left() -> None:
    """Each state but the last has a way out, each but the first a way in, and each event a row."""
    for table, first, last in (
        (READING, ReadingState.SECURING, ReadingState.ENDED),
        (SENDING, SendingState.IDLE, None),
    ):
        reached = {state for row in table.values() for state in row.values()}
        assert reached | {first} == set(type(first))
        assert {state for state, row in table.items() if not row} == ({last} if last else set())
    assert {event for table in (READING, SENDING) for row in table.values() for event in row} == set(ExchangeEvent)
