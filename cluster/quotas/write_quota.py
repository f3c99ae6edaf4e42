"""Limits how many bytes the changes of each user write to the store, so that one user cannot fill
its log.

Rule: a user who has written too much waits. The answer that goes beyond the limit says for how long
(Kafka's `throttle_time_ms`), and until then the user's changes are carried out one at a time,
whichever connections they come on.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio

from .rates import TokenBucket, throttle_ms

BYTES_PER_SECOND = 2 << 20
BURST_BYTES = 64 << 20
"""The most that a user may write at once who has written little before."""
MANY_USERS = 1_000
"""With as many users, those whose buckets are full are looked for."""


class _User:
    __slots__ = ("bucket", "turn")

    def __init__(self) -> None:
        self.bucket = TokenBucket()
        self.turn = trio.Lock()
        """Held by the one change that waits for the bucket, or is carried out then."""


class WriteQuota:
    """The buckets of one node, which it uses while it is the active controller."""

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self._clock_ms = clock_ms
        self._users: dict[str, _User] = {}
        self._next_look = MANY_USERS

    @asynccontextmanager
    async def turn(self, user: str) -> AsyncIterator[None]:
        """Wait until a user may write again, and let nobody else of that user write meanwhile if it
        had to wait.
        """
        known = self._users.get(user)
        if known is None or self._level(known) >= 0:
            yield
            return
        async with known.turn:
            await trio.sleep(throttle_ms(self._level(known), BYTES_PER_SECOND) / 1000)
            yield

    def take(self, user: str, count: int) -> int:
        """Count bytes that a user has written, and return for how many milliseconds the user has to
        wait.
        """
        known = self._users.get(user)
        if known is None:
            if len(self._users) >= self._next_look:
                self._forget_full()
            known = self._users[user] = _User()
        level = known.bucket.take(count, BYTES_PER_SECOND, BURST_BYTES, self._clock_ms())
        return throttle_ms(level, BYTES_PER_SECOND)

    def _level(self, known: _User) -> float:
        return known.bucket.level(BYTES_PER_SECOND, BURST_BYTES, self._clock_ms())

    def _forget_full(self) -> None:
        self._users = {
            user: known
            for user, known in self._users.items()
            if self._level(known) < BURST_BYTES or known.turn.statistics().tasks_waiting
        }
        self._next_look = max(MANY_USERS, 2 * len(self._users))
