"""Transactions under random schedules: producers write and commit offsets, are fenced by successors
and timeouts, go on as zombies, and the markers of an ending come to its partitions one by one.

The model is a log of each partition, in which a marker settles what its producer has written since
the last one. Each transaction must be settled as one: its records and offsets are all committed or
none, and those are committed whose producer was told so.
"""

from random import Random

import msgspec

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.records.groups.coordinator import GroupCoordinator
from minicontroller.records.groups.limits import GroupLimits
from minicontroller.records.groups.offsets import Committer, GroupOffset
from minicontroller.records.transactions import (
    NOBODY,
    ProducerIdentity,
    TransactionCoordinator,
    TransactionEnding,
    TransactionError,
    TransactionLimits,
)

SCHEDULES, STEPS = 200, 200
OFFSETS = ("__consumer_offsets", 0)
PLACES = [("t", 0), ("t", 1), ("u", 0)]
GROUP = "g"
TIMEOUT_MS = 10_000


class Attempt(msgspec.Struct, eq=False):
    """One transaction, as its producer sees it."""

    number: int
    writes: list[tuple[str, int]] = []
    offset: bool = False
    told: str = ""
    """What its producer was told of its end."""


class Producer(msgspec.Struct, eq=False):
    identity: ProducerIdentity = NOBODY
    attempt: Attempt | None = None


class Log:
    """A partition, which takes records only of the newest epoch of a producer."""

    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}
        self.open: dict[int, list[int]] = {}
        """The numbers of the transactions whose records are open, by producer id."""
        self.settled: list[tuple[int, bool]] = []

    def takes(self, producer: ProducerIdentity) -> bool:
        return producer.epoch >= self.epochs.get(producer.producer_id, -1)

    def write(self, producer: ProducerIdentity, number: int) -> None:
        self.epochs[producer.producer_id] = producer.epoch
        self.open.setdefault(producer.producer_id, []).append(number)

    def mark(self, ending: TransactionEnding) -> None:
        producer = ending.producer
        self.epochs[producer.producer_id] = producer.epoch
        self.settled += [(number, ending.commits) for number in self.open.pop(producer.producer_id, [])]


class Play:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 1_700_000_000_000
        self.transactions = TransactionCoordinator(TransactionLimits())
        self.groups = GroupCoordinator(GroupLimits(), lambda: "unused")
        self.logs = {place: Log() for place in PLACES}
        self.endings: list[tuple[TransactionEnding, set[tuple[str, int]]]] = []
        """Those that are not carried out yet, with the partitions without a marker."""
        self.producers = [Producer() for _ in range(5)]
        self.attempts: list[Attempt] = []
        self.next_id = 0

    def step(self) -> None:
        producer = self.random.choice(self.producers)
        actions = [self.init, self.write, self.write, self.commit_offset, self.end, self.end, self.carry_out]
        try:
            self.random.choice([*actions, self.carry_out, self.pass_time])(producer)
        except TransactionError as error:
            if error.code != ErrorCode.CONCURRENT_TRANSACTIONS:
                producer.attempt = None  # it is fenced, and does not know how its transaction ends

    def transactional_id(self, producer: Producer) -> str:
        return f"x{self.producers.index(producer) % 2}"

    # ------------------------------------------------------------------ producers

    def init(self, producer: Producer) -> None:
        name, expected = self.transactional_id(producer), NOBODY
        if self.random.random() < 0.3:
            expected = producer.identity
        if self.transactions.needs_producer_id(name, expected):
            self.next_id += 1
        found = self.transactions.init_producer(
            name, TIMEOUT_MS, self.now, expected=expected, new_producer_id=self.next_id
        )
        producer.attempt = None
        if isinstance(found, TransactionEnding):
            self.endings.append((found, set(found.partitions)))
        else:
            producer.identity = found

    def attempt_of(self, producer: Producer) -> Attempt:
        if producer.attempt is None:
            producer.attempt = Attempt(len(self.attempts), [])
            self.attempts.append(producer.attempt)
        return producer.attempt

    def write(self, producer: Producer) -> None:
        """Add a partition if the transaction has it not, and write to it. Its leader verifies the
        first record of a transaction.
        """
        place, identity = self.random.choice(PLACES), producer.identity
        name, log = self.transactional_id(producer), self.logs[place]
        if producer.attempt is None or place not in producer.attempt.writes:
            self.transactions.add_partitions(name, identity, [place], self.now)
        if not log.open.get(identity.producer_id):
            verified = self.transactions.verify(name, identity, [place])
            if verified[place] != ErrorCode.NONE:
                return
        if log.takes(identity):
            attempt = self.attempt_of(producer)
            log.write(identity, attempt.number)
            attempt.writes.append(place)

    def commit_offset(self, producer: Producer) -> None:
        """Commit the number of the transaction as an offset, in a partition of its own."""
        name, identity = self.transactional_id(producer), producer.identity
        self.transactions.add_partitions(name, identity, [OFFSETS], self.now)
        assert self.transactions.verify(name, identity, [OFFSETS]) == {OFFSETS: ErrorCode.NONE}
        attempt = self.attempt_of(producer)
        offsets = {("t", attempt.number): GroupOffset(attempt.number, committed_ms=self.now)}
        code = self.groups.commit_in_transaction(GROUP, Committer(), identity.producer_id, offsets, self.now)
        assert code == ErrorCode.NONE
        attempt.offset = True

    def end(self, producer: Producer) -> None:
        commits, attempt = self.random.random() < 0.7, producer.attempt
        if attempt is None:
            return
        ending = self.transactions.end(
            self.transactional_id(producer), producer.identity, commits=commits, now=self.now
        )
        assert ending is not None, "a transaction ends once"
        self.endings.append((ending, set(ending.partitions)))
        attempt.told = "committed" if commits else "aborted"
        producer.attempt = None

    # ------------------------------------------------------------------ the shell

    def carry_out(self, _producer: Producer) -> None:
        """Write one marker of an ending, or complete it."""
        if not self.endings:
            return
        entry = self.random.choice(self.endings)
        ending, left = entry
        if not left:
            self.transactions.completed(ending.transactional_id, self.now)
            self.endings.remove(entry)
            return
        place = self.random.choice(sorted(left))
        left.remove(place)
        if place == OFFSETS:
            self.groups.end_transaction(
                ending.producer.producer_id, commits=ending.commits, group_ids=lambda _group: True
            )
        else:
            self.logs[place].mark(ending)

    def pass_time(self, _producer: Producer) -> None:
        self.now += self.random.choice([1, 1000, TIMEOUT_MS])
        for ending in self.transactions.abort_overdue(self.now):
            self.endings.append((ending, set(ending.partitions)))

    def finish(self) -> None:
        """Let everything that is open time out, and carry all endings out."""
        self.now += TIMEOUT_MS + 1
        self.pass_time(self.producers[0])
        while self.endings:
            self.carry_out(self.producers[0])

    # ------------------------------------------------------------------ the model

    def check(self) -> None:
        group = self.groups.get(GROUP)
        committed = {} if group is None else group.offsets.committed.get("t", {})
        assert group is None or not group.offsets.producers, "no offset is unstable"
        assert not any(log.open for log in self.logs.values()), "no record is open"
        fates: dict[int, list[bool]] = {attempt.number: [] for attempt in self.attempts}
        for log in self.logs.values():
            for number, commits in log.settled:
                fates[number].append(commits)
        for attempt in self.attempts:
            fate = fates[attempt.number] + ([attempt.number in committed] if attempt.offset else [])
            assert len(fate) == len(attempt.writes) + attempt.offset, "each write is settled once"
            assert len(set(fate)) <= 1, "a transaction is committed whole or not at all"
            if fate:
                assert fate[0] == (attempt.told == "committed"), "it ends as its producer was told"


def test_any_schedule() -> None:
    """Each transaction is settled as one, however its producers, timeouts and markers meet."""
    for seed in range(SCHEDULES):
        play = Play(Random(seed))
        try:
            for _ in range(STEPS):
                play.step()
            play.finish()
            play.check()
        except AssertionError as error:
            error.add_note(f"in the schedule of seed {seed}")
            raise
