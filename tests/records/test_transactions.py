"""Transactions: who is fenced when, and what has to wait. The codes are those that Kafka 3.9.2
gives to the same requests.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.list_transactions import ListTransactionsRequest
from minicontroller.records.transactions import (
    LAST_EPOCH,
    NOBODY,
    ProducerIdentity,
    TransactionCoordinator,
    TransactionEnding,
    TransactionError,
    TransactionLimits,
)

NOW = 1_700_000_000_000
PLACE, OTHER = ("t", 0), ("t", 1)
TIMEOUT_MS = 60_000


@contextmanager
def refused(code: ErrorCode) -> Iterator[None]:
    with pytest.raises(TransactionError) as error:
        yield
    assert error.value.code == code


class Producers:
    """The producers of one transactional id."""

    def __init__(self, limits: TransactionLimits | None = None) -> None:
        self.coordinator = TransactionCoordinator(limits or TransactionLimits())
        self.next_id = 100
        self.now = NOW

    def ask(self, expected: ProducerIdentity = NOBODY) -> ProducerIdentity | TransactionEnding:
        new_id = -1
        if self.coordinator.needs_producer_id("x", expected):
            new_id, self.next_id = self.next_id, self.next_id + 1
        return self.coordinator.init_producer("x", TIMEOUT_MS, self.now, expected=expected, new_producer_id=new_id)

    def init(self, expected: ProducerIdentity = NOBODY) -> ProducerIdentity:
        found = self.ask(expected)
        assert isinstance(found, ProducerIdentity)
        return found

    def add(self, producer: ProducerIdentity, *places: tuple[str, int]) -> None:
        self.coordinator.add_partitions("x", producer, places, self.now)

    def end(self, producer: ProducerIdentity, *, commits: bool = True) -> TransactionEnding | None:
        return self.coordinator.end("x", producer, commits=commits, now=self.now)

    def complete(self) -> None:
        self.coordinator.completed("x", self.now)

    def use_up(self, producer: ProducerIdentity) -> ProducerIdentity:
        """Let a producer have the last epoch of its id."""
        transaction = self.coordinator.get("x")
        assert transaction is not None
        transaction.producer = ProducerIdentity(producer.producer_id, LAST_EPOCH - 1)
        return self.init(transaction.producer)

    @property
    def state(self) -> str:
        transaction = self.coordinator.get("x")
        return "" if transaction is None else transaction.state.value


def test_a_transaction_commits() -> None:
    """Partitions are added, the end names them all, and the producer waits until it is carried
    out.
    """
    producers = Producers()
    producer = producers.init()
    assert producer == ProducerIdentity(100, 0)
    with refused(ErrorCode.INVALID_TXN_STATE):
        producers.end(producer)
    producers.add(producer, PLACE)
    producers.add(producer, PLACE, OTHER)
    ending = producers.end(producer)
    assert ending == TransactionEnding("x", producer, commits=True, partitions=frozenset({PLACE, OTHER}))
    waiting: list[Callable[[], object]] = [
        lambda: producers.add(producer, PLACE),
        lambda: producers.end(producer),
        producers.init,
        lambda: producers.coordinator.verify("x", producer, [PLACE]),
    ]
    for ask in waiting:
        with refused(ErrorCode.CONCURRENT_TRANSACTIONS):
            ask()
    with refused(ErrorCode.INVALID_TXN_STATE):
        producers.end(producer, commits=False)
    producers.complete()
    assert (producers.state, producers.end(producer)) == ("CompleteCommit", None)
    with refused(ErrorCode.INVALID_TXN_STATE):
        producers.end(producer, commits=False)


def test_strangers_and_zombies() -> None:
    """Another producer id and another epoch are refused, each with its code."""
    producers = Producers()
    with refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING):
        producers.add(ProducerIdentity(1, 0), PLACE)
    zombie = producers.init()
    producer = producers.init()
    assert producer == ProducerIdentity(100, 1)
    for stranger, code in (
        (ProducerIdentity(7, 1), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (zombie, ErrorCode.PRODUCER_FENCED),
        (ProducerIdentity(100, 2), ErrorCode.PRODUCER_FENCED),
    ):
        for ask in (producers.add, producers.end):
            with refused(code):
                ask(stranger)
    with refused(ErrorCode.INVALID_REQUEST):
        producers.coordinator.end("", producer, commits=True, now=NOW)


def test_a_successor_aborts_what_is_open() -> None:
    """A new producer ends the transaction of its predecessor under an epoch that nobody has, and
    asks again.
    """
    producers = Producers()
    zombie = producers.init()
    producers.add(zombie, PLACE)
    ending = producers.ask()
    assert ending == TransactionEnding("x", ProducerIdentity(100, 1), commits=False, partitions=frozenset({PLACE}))
    with refused(ErrorCode.PRODUCER_FENCED):
        producers.end(zombie)
    producers.complete()
    assert producers.init() == ProducerIdentity(100, 2)


def test_a_producer_that_says_who_it_was_goes_on() -> None:
    """It gets the next epoch, and the same again if it lost the response; others are fenced
    (KIP-360).
    """
    producers = Producers()
    first = producers.init()
    second = producers.init(first)
    assert second == producers.init(first) == ProducerIdentity(100, 1)
    with refused(ErrorCode.PRODUCER_FENCED):
        producers.init(ProducerIdentity(100, 5))
    with refused(ErrorCode.PRODUCER_FENCED):
        producers.init(ProducerIdentity(99, 1))
    third = producers.init()
    with refused(ErrorCode.PRODUCER_FENCED):
        producers.init(second)
    assert producers.init(third) == ProducerIdentity(100, 3)


def test_epochs_that_are_used_up() -> None:
    """The producer gets another id, also if it asks again; one epoch is left to fence it."""
    producers = Producers()
    producer = producers.use_up(producers.init())
    producers.add(producer, PLACE)
    ending = producers.ask()
    assert isinstance(ending, TransactionEnding)
    assert ending.producer.epoch == 2**15 - 1
    producers.complete()
    producer = producers.init()
    assert producer == ProducerIdentity(101, 0)
    producer = producers.use_up(producer)
    assert producers.init(producer) == producers.init(producer) == ProducerIdentity(102, 0)


def test_timeouts() -> None:
    """A timeout beyond the coordinator's is refused, and an open transaction is aborted after its
    own.
    """
    producers = Producers()
    for timeout_ms in (0, -1, 900_001):
        with refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT):
            producers.coordinator.init_producer("x", timeout_ms, NOW, new_producer_id=1)
    producer = producers.init()
    producers.add(producer, PLACE)
    assert producers.coordinator.abort_overdue(NOW + TIMEOUT_MS) == []
    (ending,) = producers.coordinator.abort_overdue(NOW + TIMEOUT_MS + 1)
    assert (ending.commits, ending.producer.epoch) == (False, producer.epoch + 1)
    assert producers.coordinator.abort_overdue(NOW + 10 * TIMEOUT_MS) == []
    with refused(ErrorCode.PRODUCER_FENCED):
        producers.end(producer)


def test_partitions_are_verified() -> None:
    """Leaders ask whether a partition belongs to the transaction that is open."""
    producers = Producers()
    producer = producers.init()
    producers.add(producer, PLACE)
    assert producers.coordinator.verify("x", producer, [PLACE, OTHER]) == {
        PLACE: ErrorCode.NONE,
        OTHER: ErrorCode.TRANSACTION_ABORTABLE,
    }


def test_ids_expire() -> None:
    """An id that was not used for the expiration is forgotten, but not with an open transaction."""
    producers = Producers(TransactionLimits(id_expiration_ms=1000))
    producer = producers.init()
    producers.coordinator.expire(NOW + 999)
    producers.add(producer, PLACE)
    producers.coordinator.expire(NOW + 1000)
    producers.end(producer)
    producers.coordinator.expire(NOW + 1000)
    producers.complete()
    assert producers.state == "CompleteCommit"
    producers.coordinator.expire(NOW + 1000)
    assert (list(producers.coordinator), producers.coordinator.size) == ([], 0)


def test_memory_is_bounded() -> None:
    """Ids and partitions beyond the bound are refused, with a code that is not retried."""
    producers = Producers(TransactionLimits(max_bytes=2000))
    producer = producers.init()
    producers.add(producer, PLACE)
    with refused(ErrorCode.POLICY_VIOLATION):
        producers.add(producer, *(("t", index) for index in range(5)))
    with refused(ErrorCode.POLICY_VIOLATION):
        producers.coordinator.init_producer("y", TIMEOUT_MS, NOW, new_producer_id=1)
    ending = producers.end(producer)
    assert ending is not None
    assert ending.partitions == {PLACE}


def test_what_administrators_see() -> None:
    """Transactions are listed by state, producer and age, and described with their partitions."""
    producers = Producers()
    producer = producers.init()
    producers.add(producer, OTHER, PLACE, ("s", 3))

    def listed(now: int = NOW, **filters: object) -> list[str]:
        rows = producers.coordinator.listed(ListTransactionsRequest(**filters), now)  # type: ignore[arg-type]
        return [row.transactional_id for row in rows]

    assert listed() == listed(state_filters=["Ongoing"]) == listed(producer_id_filters=[100]) == ["x"]
    assert listed(state_filters=["Empty", "x"]) == listed(producer_id_filters=[1]) == []
    assert (listed(NOW + 500, duration_filter=500), listed(NOW + 501, duration_filter=500)) == ([], ["x"])
    transaction = producers.coordinator.get("x")
    assert transaction is not None
    row = transaction.described()
    assert (row.transaction_state, row.transaction_start_time_ms, row.transaction_timeout_ms) == (
        "Ongoing",
        NOW,
        60_000,
    )
    assert [(topic.topic, topic.partitions) for topic in row.topics] == [("s", [3]), ("t", [0, 1])]
