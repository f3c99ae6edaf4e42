"""Jobs that wait for the writer.

Rule: urgent jobs pass all others, and jobs that were planned once and are to be planned anew pass those. The others are taken as they came:
a client's connection has one request at a time under way, whichever node it is at, so that is a turn for each connection. There is
room for so many of them (`queued.max.requests`); whoever finds none waits for it, and his connection is not read meanwhile. A job
for which nobody waits any more is never planned, unless it is to be carried out all the same.
"""

from collections import deque
from collections.abc import Iterable

import trio

from .jobs import ControllerMoved, Job

ROOM = 500
"""Kafka's default of `queued.max.requests`."""


class JobQueue:
    """`put` and `take`, until `close`."""

    def __init__(self, room: int = ROOM) -> None:
        self.given_up = 0
        """How many jobs left because nobody waited for them any more."""
        self._urgent: deque[Job] = deque()
        self._others: deque[Job] = deque()
        self._room = trio.Semaphore(room)
        self._closed: BaseException | None = None

    def __len__(self) -> int:
        return len(self._urgent) + len(self._others)

    @property
    def outside(self) -> int:
        """How many wait for room."""
        return self._room.statistics().tasks_waiting

    async def put(self, job: Job, *, urgent: bool) -> None:
        """At the end of its line, once there is room. Raises ControllerMoved once it is closed."""
        if urgent:
            self._check_open()
            self._urgent.append(job)
            return
        try:
            self._room.acquire_nowait()
        except trio.WouldBlock:
            await self._room.acquire()
        try:
            self._check_open()
        except ControllerMoved:
            self._room.release()  # the next of those outside is told the same
            raise
        self._others.append(job)

    def put_back(self, jobs: Iterable[Job]) -> None:
        """Before all others, in this order: they were planned once. Those that were given up since are not planned again."""
        for job in reversed(list(jobs)):
            if job.is_given_up:
                self.drop(job)
            else:
                self._urgent.appendleft(job)

    def take(self) -> Job:
        """The next one."""
        if self._urgent:
            return self._urgent.popleft()
        self._room.release()
        return self._others.popleft()

    def give_up(self, job: Job) -> None:
        """Nobody waits for it any more. If it is being planned, nothing comes of that; what was planned goes on."""
        job.is_given_up = True
        if job in self._others:
            self._others.remove(job)
            self._room.release()
            self.drop(job)
        elif job in self._urgent:
            self._urgent.remove(job)
            self.drop(job)

    def drop(self, job: Job) -> None:
        """Nothing of it was done, and nothing will be."""
        self.given_up += 1
        job.done.set()

    def close(self, reason: BaseException) -> None:
        """Whoever waits, or comes, is told that another controller rules."""
        self._closed = reason
        for job in (*self._urgent, *self._others):
            job.fail(ControllerMoved())
        self._urgent.clear()
        while self._others:
            self.take()

    def _check_open(self) -> None:
        if self._closed is not None:
            raise ControllerMoved from self._closed
