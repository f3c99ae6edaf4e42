"""Honest clients: each asks one thing after the other, or several at once on one connection, of any
node, about few names.

Rule: a client knows nothing of the others. What it sends is random, what it was answered is written
down, and whatever is not answered for certain is doubt.
"""

import itertools
import random
import time
from collections.abc import Callable, Sequence

import msgspec
import trio

from tests.faults.detector.arena import NODES
from tests.faults.detector.connection import Connection, Lost, Request, open_connection
from tests.faults.detector.history import (
    ACLS,
    ALTER,
    CONFIGS,
    CREATE,
    DEFAULT,
    DELETE,
    DESCRIBE,
    ELECT,
    GROW,
    PERMIT,
    READS,
    REASSIGN,
    REPLACE,
    REVOKE,
    UNKNOWN,
    Operation,
    Step,
)
from tests.faults.detector.models import APPEND, REMOVE, SET, SUBTRACT
from tests.faults.detector.requests import PERMITTED, Asked, asked, take

TOPICS = 6
GUARDED = ("a0", "a1")
"""The topics that have ACLs."""
PRINCIPALS = tuple(f"User:{name}" for name in ("ann", "bob", "cy"))
KEYS = {"topics": ("retention.ms", "max.message.bytes"), "brokers": ("log.retention.ms", "message.max.bytes")}
LISTS = {
    "topics": ("leader.replication.throttled.replicas", tuple(f"{number}:1" for number in range(5))),
    "brokers": ("log.cleanup.policy", ("compact", "delete")),
}
TIMEOUTS_MS = (5_000,) * 18 + (0, 1)
MOST_DOUBTS = 12
"""Short timeouts of one entity in one window: each leaves one more operation of which nobody knows
the outcome.
"""
MOST_AT_ONCE = 5
WRITES = (CREATE,) * 3 + (DELETE,) * 2 + (GROW,) * 2 + (ALTER,) * 3 + (REPLACE, REASSIGN, REASSIGN, ELECT, ELECT)
"""The questions about a topic, each asked as often as it stands here."""
RETRY_SECONDS = 0.1


class Journal:
    """The operations of a window, and the numbers that make each value the only one of its kind."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._numbers = itertools.count(1)
        self._values = itertools.count(10_000_000)
        self._doubts: dict[str, int] = {}

    def begin_window(self) -> None:
        self.operations = []
        self._doubts.clear()

    def new(self, **fields: object) -> Operation:
        """Begun now."""
        operation = msgspec.convert({"number": next(self._numbers), "began": time.monotonic(), **fields}, Operation)
        self.operations.append(operation)
        return operation

    def value(self) -> str:
        """Return a value that nobody else sets."""
        return str(next(self._values))

    def may_doubt(self, entity: str) -> bool:
        self._doubts[entity] = self._doubts.get(entity, 0) + 1
        return self._doubts[entity] <= MOST_DOUBTS


class Habits(msgspec.Struct, frozen=True):
    """The shares of a client's turns that are about each thing, and its pauses."""

    at_once: int = 1
    """The most requests that are sent together."""
    pause_seconds: float = 0.04
    """Between two turns, on average."""
    stays: float = 0.97
    """The probability that the next turn is at the same node."""
    brokers: float = 0.25
    """The share of turns that are about the configs of brokers."""
    acls: float = 0.1
    """The share of the other turns that are about ACLs."""
    reads: float = 0.35
    validates: float = 0.05


HABITS = (
    *[Habits()] * 6,
    Habits(at_once=5, pause_seconds=0.15, stays=1.0),
    Habits(at_once=3, pause_seconds=0.1),
    Habits(brokers=0.9, reads=0.3, pause_seconds=0.08),
    Habits(brokers=0.0, acls=0.9, reads=0.4, pause_seconds=0.06),
    Habits(brokers=0.9, reads=0.1, at_once=2, pause_seconds=0.08),
    Habits(reads=0.9, pause_seconds=0.06),
    Habits(validates=0.7, pause_seconds=0.1),
)
"""The habits of thirteen clients."""


class Client:
    """Runs until it is cancelled between two turns."""

    def __init__(
        self,
        name: str,
        journal: Journal,
        addresses: Callable[[], Sequence[tuple[int, str]]],
        dice: random.Random,
        habits: Habits,
    ) -> None:
        """`addresses`: of the nodes that may be asked now, with their ids."""
        self._name = name
        self._journal = journal
        self._addresses = addresses
        self._dice = dice
        self._habits = habits
        self._connection: Connection | None = None
        self._connections = itertools.count(1)
        self._number = 0
        self._node = 0

    async def run(self, over: trio.Event) -> None:
        try:
            while not over.is_set():
                try:
                    await self._turn()
                except Lost:
                    await self._leave()
                    await trio.sleep(RETRY_SECONDS)
                await trio.sleep(self._dice.expovariate(1 / self._habits.pause_seconds))
        finally:
            await self._leave()

    async def _leave(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _turn(self) -> None:
        if self._connection is None or self._dice.random() > self._habits.stays:
            await self._leave()
            choices = self._addresses()
            if not choices:
                raise Lost
            self._node, address = self._dice.choice(choices)
            self._connection = await open_connection(address, self._name)
            self._number = next(self._connections)
        connection = self._connection
        assert connection is not None
        wanted = [self._wish() for _ in range(self._dice.randint(1, self._habits.at_once))]
        self._note_order(wanted)
        began = time.monotonic()
        for each in wanted:
            each.operation.began = began
        answered = 0
        requests: list[Request] = [each.request for each in wanted]
        async for answer, ended in connection.ask(requests):
            operation = wanted[answered].operation
            operation.ended = ended
            take(answer, operation)
            answered += 1

    def _note_order(self, wanted: Sequence[Asked]) -> None:
        before: dict[str, int] = {}
        for each in wanted:
            operation = each.operation
            operation.after = before.get(operation.entity)
            if operation.kind not in READS:
                before[operation.entity] = operation.number

    # ------------------------------------------------------------------ what it asks

    def _wish(self) -> Asked:
        dice, habits = self._dice, self._habits
        if dice.random() < habits.brokers:
            entity = f"brokers/{dice.choice((DEFAULT, self._node))}"
            kind = CONFIGS if dice.random() < habits.reads else dice.choice((ALTER, ALTER, ALTER, REPLACE))
        elif dice.random() < habits.acls:
            entity = f"acls/{dice.choice(GUARDED)}"
            kind = ACLS if dice.random() < habits.reads else dice.choice((PERMIT, PERMIT, REVOKE))
        else:
            entity = f"topics/t{dice.randrange(TOPICS)}"
            kind = dice.choice((DESCRIBE, DESCRIBE, CONFIGS)) if dice.random() < habits.reads else dice.choice(WRITES)
        operation = self._journal.new(
            client=self._name, node=self._node, connection=self._number, entity=entity, kind=kind, outcome=UNKNOWN
        )
        self._fill(operation)
        timeout_ms = dice.choice(TIMEOUTS_MS)
        if timeout_ms < TIMEOUTS_MS[0] and not self._journal.may_doubt(entity):
            timeout_ms = TIMEOUTS_MS[0]
        return asked(operation, dice, timeout_ms)

    def _fill(self, operation: Operation) -> None:
        dice, kind, group = self._dice, operation.kind, operation.entity.partition("/")[0]
        if kind in (CREATE, GROW, ALTER, REPLACE):
            operation.only_validated = dice.random() < self._habits.validates
        if kind == CREATE:
            operation.partitions = dice.randint(1, 3)
        elif kind == GROW:
            operation.partitions = dice.randint(2, 9)
        elif kind == REASSIGN:
            operation.replicas = tuple(dice.sample(range(1, NODES + 1), dice.randint(1, NODES)))
        if kind in (CREATE, REPLACE):
            keys = [key for key in KEYS[group] if dice.random() < 0.5]
            operation.configs = {key: self._journal.value() for key in keys}
        elif kind == PERMIT:
            operation.steps = [(dice.choice(PRINCIPALS), SET, PERMITTED)]
        elif kind == REVOKE and dice.random() < 0.7:
            operation.steps = [(dice.choice(PRINCIPALS), REMOVE, None)]
        elif kind == ALTER:
            operation.steps = self._steps(group)

    def _steps(self, group: str) -> list[Step]:
        dice = self._dice
        key, elements = LISTS[group]
        if dice.random() < 0.5:
            verb = APPEND if group == "brokers" else dice.choice((APPEND, APPEND, SUBTRACT))
            return [(key, verb, dice.choice(elements))]
        key = dice.choice(KEYS[group])
        return [(key, REMOVE, None)] if dice.random() < 0.2 else [(key, SET, self._journal.value())]
