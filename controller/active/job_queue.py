"""The queue of jobs that wait for the writer.

Jobs that are to be planned again come first, then urgent jobs, then the others in the order of
their arrival. A connection has one request at a time under way, so every connection is served in
turn. The queue has room for `queued.max.requests` jobs. The others wait outside, and leave when
their callers stop waiting. A job in the queue whose caller has gone is not planned either, unless
it is to be carried out in any case.
"""

from collections import OrderedDict
from collections.abc import Iterable

from .jobs import ControllerMoved, WriterJob

ROOM = 500
"""Kafka's default of `queued.max.requests`."""

Line = OrderedDict[WriterJob, None]
"""Jobs in order; any job can be removed in constant time."""


class JobQueue:
    """The jobs that wait for the writer, from `put` to `take`; after `close` there are none."""

    def __init__(self, room: int = ROOM) -> None:
        self.given_up = 0
        """The number of jobs that were dropped because their callers no longer waited."""
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
        """The number of jobs that wait for room."""
        return len(self._outside)

    def put(self, job: WriterJob, *, urgent: bool) -> None:
        """Add a job at the end of its line. Raises ControllerMoved once the queue is closed."""
        if self._closed is not None:
            raise ControllerMoved from self._closed
        if urgent:
            self._urgent[job] = None
        elif len(self._inside) < self._room:
            self._inside[job] = None
        else:
            self._outside[job] = None

    def put_back(self, jobs: Iterable[WriterJob]) -> None:
        """Put jobs that were planned before in front of all others, in this order, and drop those
        whose callers no longer wait.
        """
        for job in reversed(list(jobs)):
            if job.is_given_up:
                self.drop(job)
            else:
                self._urgent[job] = None
                self._urgent.move_to_end(job, last=False)

    def take(self) -> WriterJob:
        job, _ = (self._urgent or self._inside).popitem(last=False)
        self._call_in()
        return job

    def leave(self, job: WriterJob, *, in_any_case: bool) -> None:
        """Give up a job whose caller no longer waits, so that it is not planned any more. A job
        with room stays if it is to be done `in_any_case`.
        """
        if in_any_case and job not in self._outside:
            return
        job.is_given_up = True
        for line in (self._urgent, self._inside, self._outside):
            if job in line:
                del line[job]
                self.drop(job)
        self._call_in()

    def drop(self, job: WriterJob) -> None:
        """End a job that was given up and has not been carried out at all."""
        self.given_up += 1
        job.done.set()

    def close(self, reason: BaseException) -> None:
        """Fail all waiting jobs, and refuse later ones, with ControllerMoved."""
        self._closed = reason
        for line in (self._urgent, self._inside, self._outside):
            for job in line:
                job.fail(ControllerMoved())
            line.clear()

    def _call_in(self) -> None:
        while self._outside and len(self._inside) < self._room:
            job, _ = self._outside.popitem(last=False)
            self._inside[job] = None
