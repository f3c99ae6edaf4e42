"""The writer: every change of the metadata passes through one task, in order, and reaches the store
in fenced commits.

A job plans its elements against the image in which all elements before it have taken effect.
Waiting jobs are committed together (group commit), a few commits may be in flight, and no element
is completed before its commit is. Each commit checks the version of `/controller_epoch`, so after
the election of another controller none of this one takes effect. Each commit that writes also
raises a count in a znode of this program, on the condition that it has the value of the commit
before. So after a refused commit no later one takes effect.

A commit can fail in four ways:

- The fence refuses it, because another controller was elected: ControllerMoved, for every job.
- The session ended: SessionExpired, with the same result.
- The connection broke, and it is in doubt whether the commit took effect: InDoubt. The controller
  loads the state anew and calls `reset`. Jobs that were never sent are planned again.
- The store refuses one operation, because another process wrote there. The writer reads what it
  wrote, and plans again, in order, everything that was planned since (`conflicts.py`).
"""

import functools
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import trio

from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.znodes import layout
from ...process.time_slices import TimeSlice
from ...protocol.error_codes import ErrorCode
from ...store.base import (
    Check,
    Operation,
    SessionExpired,
    SessionState,
    SetData,
    Store,
    StoreError,
    StoreUnavailable,
    weight,
)
from ...store.sessions import wait_connected
from .commits import Commit, pack
from .conflicts import (
    OPERATIONS_BEFORE,
    Reread,
    count_conflict,
    is_behind,
    kept_elements,
    learn_below,
    nothing_new,
    raise_if_fatal,
    refusal_for,
)
from .job_queue import ROOM, JobQueue
from .jobs import ControllerMoved, Draft, InDoubt, StagedElement, WriterJob
from .observing import NoObserver, WriterObserver

T = TypeVar("T")

MAX_COMMITS_IN_FLIGHT = 2
"""One commit is in flight while the next is planned. More of them would be smaller, and a commit
costs mostly the same whatever its size.
"""
MAX_PLANNED_JOBS = 200
PLANNING_SECONDS = 0.05
"""The time for which jobs are planned, MAX_PLANNED_JOBS at most, before they are sent and answers
are collected.
"""


class Writer:
    """Plans jobs one at a time and commits them in groups. `image` is the committed state."""

    def __init__(
        self,
        store: Store,
        fence: Check,
        image: Image,
        on_commit: Callable[[Image, Image, Sequence[StagedElement]], None],
        *,
        observer: WriterObserver | None = None,
        reread: Reread = nothing_new,
        room: int = ROOM,
    ) -> None:
        self.image = image
        self._observer: WriterObserver = NoObserver() if observer is None else observer
        self._pending = image
        self._store = store
        self._fence = fence
        self._max_bytes = store.max_commit_bytes - weight(fence) - weight(_count(0))
        """The most bytes of a commit's operations besides the fence and the count."""
        self._on_commit = on_commit
        """Called with the image before, the image after, and the elements that were completed,
        for each commit in order.
        """
        self._reread = reread
        self.queue = JobQueue(room)
        self._begun: dict[WriterJob, None] = {}
        """The jobs that are being planned or have open elements, in order."""
        self._planned: list[StagedElement] = []
        """The elements that are not yet packed into commits."""
        self._ready: deque[Commit] = deque()
        """The commits that wait until fewer are in flight."""
        self._in_flight: deque[Commit] = deque()
        self._count = 0
        """The store's count of commits once all that are in flight have taken effect."""
        self._wake = trio.lowlevel.ParkingLot()
        self._turn = TimeSlice()

    # ------------------------------------------------------------------ the public methods

    @property
    def in_flight(self) -> int:
        """The number of sent commits whose outcome is not known."""
        return len(self._in_flight)

    async def write(
        self,
        plan: Callable[[Draft], Awaitable[T]],
        *,
        request: Any = None,
        urgent: bool = False,
        in_any_case: bool = False,
    ) -> T:
        """Plan a job, commit it, and return what the plan returned. An element that the store
        refused has a `refusal`.

        `request` identifies the job to the observer. `urgent` jobs pass all others, because the
        data plane waits for them. If the caller is cancelled, a job that is not planned yet is
        dropped, unless it has room in the queue and is to be carried out `in_any_case`. Raises
        ControllerMoved, or what the plan raised.
        """
        job = self.submit(plan, request=request, urgent=urgent)
        await self.wait_done(job, in_any_case=in_any_case)
        result: T = job.result
        return result

    def submit(
        self, plan: Callable[[Draft], Awaitable[Any]], *, request: Any = None, urgent: bool = False
    ) -> WriterJob:
        """Put a job into the queue, for `wait_done`. Raises ControllerMoved."""
        job = WriterJob(plan, request)
        self.queue.put(job, urgent=urgent)
        self._go_on()
        return job

    async def wait_done(self, job: WriterJob, *, in_any_case: bool = False) -> None:
        """Wait until a job is committed. Raises ControllerMoved, or what its plan raised."""
        try:
            await job.done.wait()
        except trio.Cancelled:
            self.queue.leave(job, in_any_case=in_any_case)
            raise
        if job.error is not None:
            raise job.error

    def reset(self, image: Image, count: int) -> None:
        """Continue from an image and a count of commits that were read from the store.

        An element in doubt took effect if the image shows it, and so did one that rests on it. Jobs
        of which nothing was sent are planned again. The unsent elements of the other jobs are sent
        as they are.
        """
        self._observer.undone(element for job in self._begun for element in job.elements)
        self._forget_what_is_under_way()
        self.image, self._count = image, count
        begun, self._begun = self._begun, {}
        self._plan_again([job for job in begun if job.nothing_of_it_stands])
        left: list[StagedElement] = []
        for job in begun:
            if not job.nothing_of_it_stands:
                self._begun[job] = None
                in_doubt = [element for element in job.elements if element.begun or element.rests_on_another]
                self._resolve(image, in_doubt)
                left += [element for element in job.elements if not element.completed]
        self._observer.reloaded(image)
        self._planned = left
        self._make_ready()
        self._rebase()

    def adopt(self, image: Image) -> None:
        """Take over an image with a change that no job made, such as a change of the registered
        brokers.
        """
        self.image = image
        self._rebase()

    async def finish(self) -> None:
        """Begin no other job, and wait until all jobs that were begun are completed."""
        self.queue.close(ControllerMoved())
        for job in list(self._begun):
            await job.done.wait()

    def close(self, reason: BaseException) -> None:
        """End all jobs. Jobs that may have taken effect end with REQUEST_TIMED_OUT, the others and
        all later ones with ControllerMoved.
        """
        self.queue.close(reason)
        begun, self._begun = self._begun, {}
        for job in begun:
            if job.nothing_of_it_stands:
                job.fail(ControllerMoved())  # another controller may carry it out
            else:
                self._resolve(None, job.elements)

    def _resolve(self, image: Image | None, elements: Sequence[StagedElement]) -> None:
        """Resolve elements in doubt: those that the image shows took effect, and the others get
        REQUEST_TIMED_OUT. Without an image all of them get it.
        """
        for element in elements:
            if not element.completed:
                if element.refusal is None and (image is None or not element.delta.holds(image)):
                    element.refusal = Refusal(ErrorCode.REQUEST_TIMED_OUT)
                self._observer.resolved(image, element)
                self._complete(element)

    def _plan_again(self, jobs: Iterable[WriterJob]) -> None:
        """Put these jobs before all waiting ones, in their order, to be planned again."""
        again = list(jobs)
        for job in again:
            self._begun.pop(job, None)
            job.elements = []
        self.queue.put_back(again)

    # ------------------------------------------------------------------ planning and sending

    async def run(self) -> None:
        """Plan and commit until the fence, the session or the connection ends it. Raises
        ControllerMoved, SessionExpired or InDoubt.
        """
        while True:
            if self._in_flight and self._in_flight[0].finished:
                await self._collect()
            elif (self.queue or self._ready) and len(self._in_flight) < MAX_COMMITS_IN_FLIGHT:
                if self._store.session is not SessionState.CONNECTED:
                    await wait_connected(self._store)  # a commit sent now would be in doubt
                    continue
                if not self._ready:
                    await self._plan_waiting()
                if self._ready:
                    self._send()
                    await self._turn.pause()
            else:
                await self._wake.park()

    async def _plan_waiting(self) -> None:
        """Plan some of the waiting jobs, so that they are sent before the rest is planned."""
        total, ends = 0, trio.current_time() + PLANNING_SECONDS
        for _ in range(MAX_PLANNED_JOBS):
            job = self.queue.take()
            await self._plan(job)
            await self._turn.pause()
            total += sum(element.weight for element in job.elements)
            if not self.queue or job.fills_a_commit or total >= self._max_bytes or trio.current_time() >= ends:
                break
        self._make_ready()

    async def _plan(self, job: WriterJob) -> None:
        base = self._pending
        draft = Draft(
            base, self._max_bytes, self._turn, barred=job.barred, below=job.below, others_wait=self._somebody_waits
        )
        job.elements, job.error = [], None
        self._begun[job] = None
        try:
            job.result = await job.plan(draft)
        except StoreUnavailable as error:
            raise InDoubt from error  # the job is planned again after the state was loaded
        except SessionExpired:
            raise
        except Exception as error:  # noqa: BLE001 - the caller gets the plan's error, and the writer goes on
            job.error = error
            draft.elements = [element for element in draft.elements if element.is_decision_only]
            draft.is_supposed = True
        if job.is_given_up:
            del self._begun[job]
            self.queue.drop(job)
            return
        job.elements, job.fills_a_commit = draft.elements, draft.is_full
        if not job.elements:
            del self._begun[job]
            job.done.set()
            return
        job.open_elements = len(job.elements)
        for element in job.elements:
            element.job, element.request = job, job.request
        self._planned += job.elements
        if self._pending is base and not draft.is_supposed:
            self._pending = draft.image
        else:  # the draft supposed changes, or the image changed while it was planned
            self._pending = _applied(self._pending, job.elements)

    def _make_ready(self) -> None:
        self._ready.extend(pack(self._planned, self._max_bytes))
        self._planned = []

    def _forget_what_is_under_way(self) -> None:
        self._in_flight.clear()
        self._ready.clear()
        self._planned = []

    def _somebody_waits(self) -> bool:
        return bool(self.queue or self._planned or self._ready or any(commit.finished for commit in self._in_flight))

    def _send(self) -> None:
        if self._store.session is SessionState.SUSPENDED:
            raise InDoubt  # the commits in flight are in doubt; this one is not sent
        commit = self._ready.popleft()
        commit.begun()
        self._in_flight.append(commit)
        # A commit without other operations has the fence, too: a deposed controller's decisions
        # must not be answered.
        operations: list[Operation] = [self._fence]
        commit.place = self._count
        if commit.operations:
            operations += [_count(self._count), *commit.operations]
            self._count += 1
        self._store.send(operations, functools.partial(self._answered, commit))

    def _answered(self, commit: Commit, outcome: StoreError | int) -> None:
        if isinstance(outcome, int):
            commit.zxid = outcome
        else:
            commit.error = outcome
            if not isinstance(outcome, StoreUnavailable):
                commit.refused()
        commit.finished = True
        if self._wake and commit.error is None and self._in_flight and self._in_flight[0] is commit:
            self._complete_first()  # at once: while the writer waits it plans nothing
            if not (self.queue or self._ready):
                return
        self._go_on()

    def _go_on(self) -> None:
        if self._wake:  # even unparking no task costs time
            self._wake.unpark_all()

    # ------------------------------------------------------------------ outcomes of commits

    async def _collect(self) -> None:
        commit = self._in_flight[0]
        if commit.error is None:
            self._complete_first()
            return
        while not all(each.finished for each in self._in_flight):
            await self._wake.park()
        raise_if_fatal(commit, commit.error)
        for behind in self._in_flight:
            if behind.error is not None and not is_behind(behind.error):
                raise_if_fatal(behind, behind.error)
        await self._go_back_before(commit, commit.error)

    async def _go_back_before(self, refused: Commit, error: StoreError) -> None:
        """Undo the plans from a refused commit on, none of which took effect: read what other
        processes wrote, and plan again.
        """
        assert error.index is not None
        element = refused.owners[error.index - OPERATIONS_BEFORE]
        try:
            news = await self._reread(self.image, error)
            is_learned = await learn_below(self._store, element, error)
        except StoreUnavailable as unavailable:
            raise InDoubt from unavailable
        undone = self._undone()
        if any(each.begun for each in undone):
            raise InDoubt from error  # the first part of a divided element took effect, so the state is loaded again
        self._observer.undone(undone)
        self._forget_what_is_under_way()
        self._count = refused.place
        self._take_effect(news, _applied(self.image, news))
        refusal = refusal_for(error)
        assert element.job is not None
        if not is_learned:
            count_conflict(element.job, element, refusal, is_explained=bool(news))
        self._planned = kept_elements(undone, element, refusal)
        self._make_ready()
        self._plan_again(dict.fromkeys(each.job for each in undone if each.job and each.can_be_planned_again))
        self._rebase()

    def _undone(self) -> list[StagedElement]:
        """Return all elements that are planned and not completed, in order."""
        commits = (*self._in_flight, *self._ready)
        return list(dict.fromkeys([*(each for commit in commits for each in commit.elements), *self._planned]))

    def _complete_first(self) -> None:
        """Complete the first commit in flight, in the image and in the planned one."""
        commit = self._in_flight.popleft()
        created = commit.created()
        self._pending = self._pending.with_czxid(created, commit.zxid)
        if self._in_flight or self._ready or self._planned:
            after = _applied(self.image, commit.finishes).with_czxid(created, commit.zxid)
        else:  # nothing else is under way, so the planned image is the committed one
            after = self._pending
        self._take_effect(commit.finishes, after)
        for element in commit.finishes:
            self._complete(element)

    def _take_effect(self, elements: Sequence[StagedElement], after: Image) -> None:
        if not elements:
            return
        before, self.image = self.image, after
        self._observer.completed(before, after, elements)
        self._on_commit(before, after, elements)

    def _complete(self, element: StagedElement) -> None:
        # Breaking the reference cycle of element and job saves the garbage collector much work.
        job, element.job = element.job, None
        element.completed = True
        assert job is not None
        job.open_elements -= 1
        if job.open_elements == 0:
            self._begun.pop(job, None)
            job.done.set()

    def _rebase(self) -> None:
        self._pending = _applied(self.image, self._undone())


def _applied(image: Image, elements: Iterable[StagedElement]) -> Image:
    return functools.reduce(lambda before, element: element.apply(before), elements, image)


def _count(count: int) -> SetData:
    """Return the operation that raises the store's count of commits, which is `count` so far."""
    return SetData(layout.COMMITS, None, count)
