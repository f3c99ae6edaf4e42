"""The coordinator of transactions (Kafka: TransactionCoordinator, TransactionStateManager).

It is a machine without input, output, clock or randomness. Its callers bring times in milliseconds
since 1970 and new producer ids, and carry out the `Ending` of a transaction: they write its markers
and then call `completed`. Until then its producer has to wait.

    Empty --add--> Ongoing --end--> PrepareCommit --completed--> CompleteCommit --add--> Ongoing
                                    PrepareAbort                 CompleteAbort
"""

from collections.abc import Collection, Iterator
from enum import Enum
from itertools import groupby

import msgspec

from ..protocol.error_codes import ErrorCode
from ..protocol.messages.describe_transactions import DescribedTransaction, TopicOfTransaction
from ..protocol.messages.list_transactions import ListedTransaction, ListTransactionsRequest

LAST_EPOCH = 2**15 - 2
"""The last epoch that a producer gets. One more is left to fence it."""
NO_EPOCH = -1
NO_PRODUCER_ID = -1
NO_TIME = -1
TRANSACTION_BYTES = 1024
PARTITION_BYTES = 256
"""What a transactional id, and a partition of a transaction, take in memory, about."""

TopicPartition = tuple[str, int]


class TransactionState(Enum):
    """The states of a transaction, by the names that clients see."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


COMPLETE = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}


class TransactionLimits(msgspec.Struct, frozen=True):
    """Kafka's settings of a transaction coordinator, with Kafka's defaults, in milliseconds."""

    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 7 * 24 * 60 * 60 * 1000
    max_bytes: int = 2**31 - 1
    """How much memory all transactions take together, about."""


class TransactionError(Exception):
    """A request that a producer may not make now, with the error code that it gets."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


class ProducerIdentity(msgspec.Struct, frozen=True):
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH


NOBODY = ProducerIdentity()


class TransactionEnding(msgspec.Struct, frozen=True):
    """A transaction that ends, which the caller carries out: a marker goes into each of these
    partitions.
    """

    transactional_id: str
    producer: ProducerIdentity
    commits: bool
    partitions: frozenset[TopicPartition]


class ProducerTransaction(msgspec.Struct):
    """What a coordinator knows of a transactional id: its producer, and its last transaction."""

    transactional_id: str
    producer: ProducerIdentity
    timeout_ms: int
    updated: int
    former: ProducerIdentity = NOBODY
    """The identity that the producer had when it asked for the one that it has."""
    state: TransactionState = TransactionState.EMPTY
    partitions: set[TopicPartition] = msgspec.field(default_factory=set)
    started: int = NO_TIME
    """When the first partition of its last transaction was added."""

    @property
    def size(self) -> int:
        """The transaction's memory in bytes, about."""
        return TRANSACTION_BYTES + len(self.transactional_id) + PARTITION_BYTES * len(self.partitions)

    @property
    def is_prepared(self) -> bool:
        return self.state in COMPLETE

    @property
    def is_at_rest(self) -> bool:
        return not self.is_prepared and self.state is not TransactionState.ONGOING

    def knows(self, expected: ProducerIdentity) -> bool:
        """Return whether a producer that says who it was may go on: the one that the coordinator
        knows, or its predecessor with another id, which lost the response (KIP-360).
        """
        if expected == NOBODY or expected.producer_id == self.producer.producer_id:
            return True
        return expected.producer_id == self.former.producer_id and expected.epoch >= LAST_EPOCH

    def needs_producer_id(self, expected: ProducerIdentity) -> bool:
        """Return whether the epochs of its producer's id are used up."""
        is_holder = expected.epoch in {NO_EPOCH, self.producer.epoch}
        return self.is_at_rest and self.producer.epoch >= LAST_EPOCH and is_holder

    def next_producer(self, expected: ProducerIdentity, new_producer_id: int) -> ProducerIdentity:
        """Return the identity with which the producer goes on. Raises TransactionError."""
        if self.needs_producer_id(expected):
            return ProducerIdentity(new_producer_id, 0)
        if expected.epoch in {NO_EPOCH, self.producer.epoch}:
            return ProducerIdentity(self.producer.producer_id, self.producer.epoch + 1)
        if expected.epoch == self.former.epoch:
            return self.producer  # it asks again, since it lost the response
        raise TransactionError(ErrorCode.PRODUCER_FENCED)

    def described(self) -> DescribedTransaction:
        by_topic = groupby(sorted(self.partitions), lambda place: place[0])
        return DescribedTransaction(
            transactional_id=self.transactional_id,
            transaction_state=self.state.value,
            transaction_timeout_ms=self.timeout_ms,
            transaction_start_time_ms=self.started,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            topics=[
                TopicOfTransaction(topic=topic, partitions=[index for _, index in places]) for topic, places in by_topic
            ],
        )

    def listed(self) -> ListedTransaction:
        return ListedTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.producer.producer_id,
            transaction_state=self.state.value,
        )


class TransactionCoordinator:
    def __init__(self, limits: TransactionLimits) -> None:
        self.size = 0
        """The memory of all transactions in bytes, about."""
        self._limits = limits
        self._transactions: dict[str, ProducerTransaction] = {}

    def __iter__(self) -> Iterator[ProducerTransaction]:
        return iter(list(self._transactions.values()))

    def get(self, transactional_id: str) -> ProducerTransaction | None:
        return self._transactions.get(transactional_id)

    def listed(self, request: ListTransactionsRequest, now: int) -> list[ListedTransaction]:
        """Return the transactions that the filters of ListTransactions let through."""
        return [each.listed() for each in self if _lets_through(request, each, now)]

    # ------------------------------------------------------------------ producers

    def needs_producer_id(self, transactional_id: str, expected: ProducerIdentity = NOBODY) -> bool:
        transaction = self._transactions.get(transactional_id)
        return transaction is None or transaction.needs_producer_id(expected)

    def init_producer(
        self,
        transactional_id: str,
        timeout_ms: int,
        now: int,
        *,
        expected: ProducerIdentity = NOBODY,
        new_producer_id: int = NO_PRODUCER_ID,
    ) -> ProducerIdentity | TransactionEnding:
        """Give the producer of a transactional id a new epoch, which fences those before it, or
        `new_producer_id`, where it needs one. `expected` is who it says it was. If a transaction is
        open, return the end of that; the producer asks again. Raises TransactionError.
        """
        if not transactional_id:
            raise TransactionError(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._limits.max_timeout_ms:
            raise TransactionError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            return self._added(transactional_id, timeout_ms, now, new_producer_id)
        if not transaction.knows(expected):
            raise TransactionError(ErrorCode.PRODUCER_FENCED)
        if transaction.is_prepared:
            raise TransactionError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if transaction.state is TransactionState.ONGOING:
            return self._fence(transaction, now)
        producer = transaction.next_producer(expected, new_producer_id)
        if producer != transaction.producer:
            transaction.former = NOBODY if expected == NOBODY else transaction.producer
        transaction.producer, transaction.timeout_ms = producer, timeout_ms
        transaction.state, transaction.updated = TransactionState.EMPTY, now
        return producer

    def _added(self, transactional_id: str, timeout_ms: int, now: int, new_producer_id: int) -> ProducerIdentity:
        transaction = ProducerTransaction(transactional_id, ProducerIdentity(new_producer_id, 0), timeout_ms, now)
        self._check_room(transaction.size)
        self.size += transaction.size
        self._transactions[transactional_id] = transaction
        return transaction.producer

    def _fence(self, transaction: ProducerTransaction, now: int) -> TransactionEnding:
        """Abort a transaction under an epoch that its producer does not have."""
        producer = transaction.producer
        transaction.producer = ProducerIdentity(producer.producer_id, producer.epoch + 1)
        transaction.former = NOBODY
        return self._prepare(transaction, TransactionState.PREPARE_ABORT, now)

    # ------------------------------------------------------------------ transactions

    def add_partitions(
        self, transactional_id: str, producer: ProducerIdentity, partitions: Collection[TopicPartition], now: int
    ) -> None:
        """Begin a transaction, or add partitions to it. Raises TransactionError."""
        transaction = self._unprepared(transactional_id, producer)
        added = set(partitions) - transaction.partitions
        if transaction.state is TransactionState.ONGOING and not added:
            return
        self._check_room(PARTITION_BYTES * len(added))
        self.size += PARTITION_BYTES * len(added)
        transaction.partitions |= added
        if transaction.state is not TransactionState.ONGOING:
            transaction.state, transaction.started = TransactionState.ONGOING, now
        transaction.updated = now

    def verify(
        self, transactional_id: str, producer: ProducerIdentity, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Return for each partition NONE if it is part of a producer's transaction, so that its
        leader takes the producer's records (KIP-890). Raises TransactionError.
        """
        transaction = self._unprepared(transactional_id, producer)
        missing = ErrorCode.TRANSACTION_ABORTABLE
        return {place: ErrorCode.NONE if place in transaction.partitions else missing for place in partitions}

    def end(
        self, transactional_id: str, producer: ProducerIdentity, *, commits: bool, now: int
    ) -> TransactionEnding | None:
        """End a producer's transaction, and return what is to be carried out, or None if the
        producer asks again for what was done. Raises TransactionError.
        """
        transaction = self._checked(transactional_id, producer)
        wanted = TransactionState.PREPARE_COMMIT if commits else TransactionState.PREPARE_ABORT
        if transaction.state is TransactionState.ONGOING:
            return self._prepare(transaction, wanted, now)
        if transaction.state is COMPLETE[wanted]:
            return None
        if transaction.state is wanted:
            raise TransactionError(ErrorCode.CONCURRENT_TRANSACTIONS)
        raise TransactionError(ErrorCode.INVALID_TXN_STATE)

    def _prepare(self, transaction: ProducerTransaction, state: TransactionState, now: int) -> TransactionEnding:
        transaction.state, transaction.updated = state, now
        commits = state is TransactionState.PREPARE_COMMIT
        return TransactionEnding(
            transaction.transactional_id, transaction.producer, commits, frozenset(transaction.partitions)
        )

    def completed(self, transactional_id: str, now: int) -> None:
        """Note that an ending is carried out."""
        transaction = self._transactions[transactional_id]
        self.size -= PARTITION_BYTES * len(transaction.partitions)
        transaction.partitions.clear()
        transaction.state, transaction.updated = COMPLETE[transaction.state], now

    def _unprepared(self, transactional_id: str, producer: ProducerIdentity) -> ProducerTransaction:
        transaction = self._checked(transactional_id, producer)
        if transaction.is_prepared:
            raise TransactionError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return transaction

    def _checked(self, transactional_id: str, producer: ProducerIdentity) -> ProducerTransaction:
        if not transactional_id:
            raise TransactionError(ErrorCode.INVALID_REQUEST)
        transaction = self._transactions.get(transactional_id)
        if transaction is None or transaction.producer.producer_id != producer.producer_id:
            raise TransactionError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if transaction.producer.epoch != producer.epoch:
            raise TransactionError(ErrorCode.PRODUCER_FENCED)
        return transaction

    def _check_room(self, more: int) -> None:
        if self.size + more > self._limits.max_bytes:
            raise TransactionError(ErrorCode.POLICY_VIOLATION)

    # ------------------------------------------------------------------ time

    def abort_overdue(self, now: int) -> list[TransactionEnding]:
        """Abort the transactions that are open for longer than their producers wanted, and fence
        these.
        """
        return [
            self._fence(each, now)
            for each in self
            if each.state is TransactionState.ONGOING and each.started + each.timeout_ms < now
        ]

    def expire(self, now: int) -> None:
        """Forget the transactional ids that were not used for `transactional.id.expiration.ms`."""
        for each in self:
            if each.is_at_rest and each.updated <= now - self._limits.id_expiration_ms:
                self.size -= each.size
                del self._transactions[each.transactional_id]


def _lets_through(request: ListTransactionsRequest, transaction: ProducerTransaction, now: int) -> bool:
    states, producer_ids, duration = request.state_filters, request.producer_id_filters, request.duration_filter
    return (
        (not states or transaction.state.value in states)
        and (not producer_ids or transaction.producer.producer_id in producer_ids)
        and (duration < 0 or now - transaction.started > duration)
    )
