"""Jobs that wait for the writer.

Rule: urgent jobs pass all others, and jobs that were planned once and are to be planned anew pass those. The others are taken as they came:
a client's connection has one request at a time under way, whichever node it is at, so that is a turn for each connection. There is
room for so many of them (`queued.max.requests`); those beyond stay outside until there is, and are nobody's any more when their
callers go. A job inside that nobody waits for any more is never planned either, unless it is to be carried out all the same.
"""

from collections import OrderedDict
from collections.abc import Iterable

from .jobs import ControllerMoved, Job

ROOM = 500
"""Kafka's default of `queued.max.requests`."""

Line = OrderedDict[Job, None]
"""In order, and quick to leave in the middle."""


class JobQueue:
    """`put` and `take`, until `close`."""

    def __init__(self, room: int = ROOM) -> None:
        self.given_up = 0
        """How many jobs left because nobody waited for them any more."""
        self._room = room
        self._urgent = Line()
        self._inside = Line()
        self._outside = Line()
        self._closed: BaseException | None = None

    def __len__(self) -> int:
        return len(self._urgent) + len(self._inside)

    def __bool__(self) -> bool:
        return bool(self._urgent or self._inside)

    @property
    def outside(self) -> int:
        """How many wait for room."""
        return len(self._outside)

    def put(self, job: Job, *, urgent: bool) -> None:
        """At the end of its line. Raises ControllerMoved once it is closed."""
        if self._closed is not None:
            raise ControllerMoved from self._closed
        if urgent:
            self._urgent[job] = None
        elif len(self._inside) < self._room:
            self._inside[job] = None
        else:
            self._outside[job] = None

    def put_back(self, jobs: Iterable[Job]) -> None:
        """Before all others, in this order: they were planned once. Those that were given up since are not planned again."""
        for job in reversed(list(jobs)):
            if job.is_given_up:
                self.drop(job)
            else:
                self._urgent[job] = None
                self._urgent.move_to_end(job, last=False)

    def take(self) -> Job:
        """The next one."""
        job, _ = (self._urgent or self._inside).popitem(last=False)
        self._call_in()
        return job

    def leave(self, job: Job, *, in_any_case: bool) -> None:
        """Its caller waits no more. If it is being planned, nothing comes of that; what was planned goes on."""
        if in_any_case and job not in self._outside:
            return
        job.is_given_up = True
        for line in (self._urgent, self._inside, self._outside):
            if job in line:
                del line[job]
                self.drop(job)
        self._call_in()

    def drop(self, job: Job) -> None:
        """Nothing of it was done, and nothing will be."""
        self.given_up += 1
        job.done.set()

    def close(self, reason: BaseException) -> None:
        """Whoever waits, or comes, is told that another controller rules."""
        self._closed = reason
        for line in (self._urgent, self._inside, self._outside):
            for job in line:
                job.fail(ControllerMoved())
            line.clear()

    def _call_in(self) -> None:
        while self._outside and len(self._inside) < self._room:
            job, _ = self._outside.popitem(last=False)
            self._inside[job] = None
