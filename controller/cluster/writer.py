"""The one writer: every change of the metadata passes through one task, in order, and reaches the store in fenced commits.

A job plans its elements against the image as it will be when everything before it has taken effect. As many jobs as wait are
committed together (group commit), a few commits may be in flight, and no element is acknowledged before its commit is. Each commit
checks the version of `/controller_epoch`: once another controller is elected, none of ours takes effect.

How a commit can fail, and what becomes of it:
- the fence: another controller was elected. `ControllerMoved`; every job is told so.
- the session ended: `SessionExpired`, the same.
- the connection broke: whether it took effect is in doubt. `InDoubt`; the controller loads the state anew and calls `reset`. What
  was never sent is planned again.
- one operation was refused (somebody else wrote there): its element is refused, the others are committed again without it.
"""

import functools
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar

import trio

from ...protocol.error_codes import ErrorCode
from ..errors import Refusal
from ..store.base import (
    Check,
    Create,
    NodeExists,
    NodeMissing,
    Session,
    SessionExpired,
    SetData,
    Store,
    StoreError,
    StoreUnavailable,
    VersionConflict,
    weight,
)
from ..store.sessions import wait_connected
from ..turns import Turn
from .commits import Commit, pack
from .image import Image
from .job_queue import ROOM, JobQueue
from .jobs import ControllerMoved, Draft, Element, InDoubt, Job, Journal

T = TypeVar("T")

ANOTHER_TOPIC = "Somebody else was faster with a topic of this name: look at it, and ask again."
MAX_COMMITS_IN_FLIGHT = 2
"""One travels while the next is planned; more make the commits smaller, and a commit's price is mostly its own, not its operations'."""
MAX_PLANNED_JOBS = 200
PLANNING_SECONDS = 0.05
"""So many jobs, or for so long, are planned before what came of them is sent, and what came back is collected."""


class Writer:
    """Plans jobs one at a time and commits them in groups. `image` is what has been committed."""

    def __init__(
        self,
        store: Store,
        fence: Check,
        image: Image,
        on_commit: Callable[[Image, Image, list[Element]], None],
        journal: Journal | None = None,
        *,
        room: int = ROOM,
    ) -> None:
        self.image = image
        self._journal = journal
        self._pending = image
        self._store = store
        self._fence = fence
        self._on_commit = on_commit
        """Called with the image before, the image after, and the elements that took effect, for each commit in order."""
        self.queue = JobQueue(room)
        self._begun: dict[Job, None] = {}
        """Jobs that are being planned or have open elements, in order."""
        self._planned: list[Element] = []
        """Elements that wait for room in flight."""
        self._in_flight: deque[Commit] = deque()
        self._wake = trio.lowlevel.ParkingLot()
        self._turn = Turn()

    # ------------------------------------------------------------------ what others call

    @property
    def in_flight(self) -> int:
        """Commits that were sent and are not settled."""
        return len(self._in_flight)

    async def write(
        self, plan: Callable[[Draft], Awaitable[T]], *, urgent: bool = False, in_any_case: bool = False
    ) -> T:
        """Plan, commit, and return what the plan returned; its elements tell in `refusal` which of them the store refused.

        `urgent` jobs pass those that wait: the data plane waits for them. Raises ControllerMoved, or what the plan raised. Of a caller who
        is cancelled nothing is begun any more, unless his job is to be carried out `in_any_case`; what was planned is carried out.
        """
        job = Job(plan)
        try:
            await self.queue.put(job, urgent=urgent)
            self._wake.unpark_all()
            await job.done.wait()
        except trio.Cancelled:
            if not in_any_case:
                self.queue.give_up(job)
            raise
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def reset(self, image: Image) -> None:
        """Go on from this image: what was in doubt is settled by whether the image shows it, jobs of which nothing was sent are
        planned again, and what is left of the others is sent as it is.
        """
        self._disturbed()
        self._in_flight.clear()
        self._planned.clear()
        self.image = image
        begun, self._begun = self._begun, {}
        anew = [job for job in begun if job.nothing_of_it_stands]
        for job in reversed(anew):
            self._note_all(job)
        self.queue.put_back(anew)
        for job in begun:
            if not job.nothing_of_it_stands:
                self._begun[job] = None
                self._planned += [element for element in job.elements if not element.begun and not element.settled]
                self._settle_by(image, [element for element in job.elements if element.begun])
        if self._journal is not None:
            self._journal.restarted(image)
        self._rebase()

    def adopt(self, image: Image) -> None:
        """Take over a change that came from elsewhere than a job: brokers, or topics that others wrote. Nothing is committed."""
        self.image = image
        self._rebase()

    async def finish(self) -> None:
        """Begin nothing any more; returns when all that was begun is settled."""
        self.queue.close(ControllerMoved())
        for job in list(self._begun):
            await job.done.wait()

    def close(self, reason: BaseException) -> None:
        """No job gets through any more: what was in flight may have taken effect, and times out; the rest was not done."""
        self.queue.close(reason)
        begun, self._begun = self._begun, {}
        for job in begun:
            if job.nothing_of_it_stands:
                job.fail(ControllerMoved())  # another controller may do it
                self._note_all(job)
            else:
                self._settle_by(None, job.elements)

    def _settle_by(self, image: Image | None, elements: Sequence[Element]) -> None:
        """Of those that are open: what this image shows took effect, the others time out."""
        for element in elements:
            if not element.settled:
                if image is None or not element.holds(image):
                    element.refusal = Refusal(ErrorCode.REQUEST_TIMED_OUT)
                if self._journal is not None:
                    self._journal.doubted(image, element)
                self._element_settled(element)

    def _note(self, notes: Sequence[Any]) -> None:
        """Decisions of a job that writes nothing come after all that was planned before them."""
        if not notes or self._journal is None:
            return
        last = next(self._unsettled_from_the_last(), None) if self._planned or self._in_flight else None
        if last is None:
            self._journal.noted(notes)
        else:
            last.notes.extend(notes)

    def _unsettled_from_the_last(self) -> Iterator[Element]:
        for elements in (self._planned, *(commit.finishes for commit in reversed(self._in_flight))):
            yield from (element for element in reversed(elements) if not element.settled)

    def _note_all(self, job: Job) -> None:
        """The job is forgotten, or begun anew: what was decided after it was decided all the same."""
        if self._journal is not None:
            for element in job.elements:
                self._journal.noted(element.notes)

    def _disturbed(self) -> None:
        if self._journal is not None:
            self._journal.disturbances += 1

    # ------------------------------------------------------------------ the task

    async def run(self) -> None:
        """Plan and commit until the fence, the session or the connection ends it. Raises ControllerMoved, SessionExpired or InDoubt."""
        end: Exception | None = None
        async with trio.open_nursery() as nursery:
            try:
                await self._plan_and_commit(nursery)
            except (ControllerMoved, SessionExpired, InDoubt) as error:
                end = error  # raised outside of the nursery, so that it is not wrapped in a group
                nursery.cancel_scope.cancel()
        assert end is not None
        raise end

    async def _plan_and_commit(self, nursery: trio.Nursery) -> None:
        while True:
            if self._in_flight and self._in_flight[0].finished:
                await self._collect()
            elif (self.queue or self._planned) and len(self._in_flight) < MAX_COMMITS_IN_FLIGHT:
                if self._store.session is not Session.CONNECTED:
                    await wait_connected(self._store)  # sent now, it would be in doubt for nothing
                    continue
                await self._plan_waiting()
                await self._send(nursery)
            else:
                await self._wake.park()

    async def _plan_waiting(self) -> None:
        """A part of what waits: what is planned is not kept from the store by those that come after it."""
        total, limit, ends = 0, self._store.max_commit_bytes, trio.current_time() + PLANNING_SECONDS
        for _ in range(MAX_PLANNED_JOBS):
            if not self.queue or total >= limit or trio.current_time() >= ends:
                return
            job = self.queue.take()
            await self._plan(job)
            await self._turn.pause()
            total += sum(element.weight for element in job.elements)

    async def _plan(self, job: Job) -> None:
        base = self._pending
        draft = Draft(base, self._store.max_commit_bytes - weight(self._fence), self._turn)
        if self._journal is not None:
            draft.disturbances = self._journal.disturbances
        job.elements = []
        self._begun[job] = None
        try:
            job.result = await job.plan(draft)
        except StoreUnavailable as error:
            raise InDoubt from error  # what it could not read is read with everything else, and it is planned again
        except SessionExpired:
            raise
        except Exception as error:  # noqa: BLE001 - the plan's errors belong to its caller; the writer goes on
            job.fail(error)
        else:
            job.elements = draft.elements
        if job.is_given_up:
            del self._begun[job]
            self.queue.drop(job)
            return
        if not job.elements:
            del self._begun[job]
            self._note(draft.notes)
            job.done.set()
            return
        job.open_elements = len(job.elements)
        for element in job.elements:
            element.job = job
        self._planned += job.elements
        if self._pending is base:
            self._pending = draft.image
        else:  # brokers came or went while it was planned
            self._rebase()

    async def _send(self, nursery: trio.Nursery) -> None:
        for commit in pack(self._planned, self._store.max_commit_bytes - weight(self._fence)):
            while len(self._in_flight) >= MAX_COMMITS_IN_FLIGHT:
                if self._in_flight[0].finished:
                    await self._collect()
                else:
                    await self._wake.park()
            if self._store.session is Session.SUSPENDED:
                raise InDoubt  # of what went before; what is not sent is not in doubt
            del self._planned[: len(commit.finishes)]
            commit.leave_out_settled()
            if not commit.owners and not commit.finishes:
                continue
            self._in_flight.append(commit)
            commit.begun()
            answer = self._store.commit([self._fence, *commit.operations])
            if self._store.commits_at_once:
                await self._finish(commit, answer)
                await self._turn.pause()
            else:
                nursery.start_soon(self._finish, commit, answer)
            while (
                commit.is_a_part and self._in_flight
            ):  # the rest of a divided element must not stand without its beginning
                if self._in_flight[0].finished:
                    await self._collect()
                else:
                    await self._wake.park()

    async def _finish(self, commit: Commit, answer: Awaitable[object]) -> None:
        try:
            await answer
        except StoreError as error:
            self._failed(commit, error)
        commit.finished = True
        self._wake.unpark_all()

    # ------------------------------------------------------------------ what came back

    def _failed(self, commit: Commit, error: StoreError) -> None:
        commit.error = error
        if not isinstance(error, StoreUnavailable):
            commit.refused()

    async def _collect(self) -> None:
        commit = self._in_flight[0]
        if commit.error is None:
            self._in_flight.popleft()
            # With nothing else under way, what was planned is what is there.
            self._settle(commit, None if self._in_flight or self._planned else self._pending)
            return
        while not all(commit.finished for commit in self._in_flight):
            await self._wake.park()
        self._disturbed()
        failed = [commit for commit in self._in_flight if commit.error is not None]
        for commit in failed:
            self._raise_if_fatal(commit)
        for commit in [commit for commit in self._in_flight if commit.error is None]:
            self._in_flight.remove(commit)
            self._settle(commit)
        for commit in failed:
            await self._commit_again(commit)
        self._rebase()

    def _raise_if_fatal(self, commit: Commit) -> None:
        error = commit.error
        if error is not None and error.index == 0:  # the fence
            raise ControllerMoved from error
        if isinstance(error, SessionExpired):
            raise error
        if isinstance(error, StoreUnavailable) or error is None or error.index is None:
            raise InDoubt from error

    async def _commit_again(self, commit: Commit) -> None:
        """Commit without the elements that the store refuses, one by one, until the rest takes effect."""
        while commit.operations:
            commit.begun()
            try:
                await self._store.commit([self._fence, *commit.operations])
                break
            except StoreError as error:
                self._failed(commit, error)
                self._raise_if_fatal(commit)
                self._blame(commit, error)
        self._in_flight.remove(commit)
        self._settle(commit)

    def _blame(self, commit: Commit, error: StoreError) -> None:
        assert error.index is not None
        index = error.index - 1  # the fence is the first operation
        operation, element = commit.operations[index], commit.owners[index]
        if isinstance(error, NodeExists) and isinstance(operation, Create) and operation.path.startswith("/config/"):
            # A topic's leftover: Kafka overwrites the configs of a topic that is created (AdminZkClient.writeTopicPartitionAssignment).
            commit.operations[index] = SetData(operation.path, operation.data)
            return
        if element.begun:
            raise InDoubt from error  # the first part of a divided element stands: let the state be loaded
        built_upon = self._built_upon(commit, element)
        self._refuse(commit, element, _refusal(error))
        for later in built_upon:
            self._refuse(commit, later, Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ANOTHER_TOPIC))

    def _refuse(self, commit: Commit, element: Element, refusal: Refusal) -> None:
        element.refusal = refusal
        if self._journal is not None:
            self._journal.refused(element)
        commit.without(element)
        self._element_settled(element)

    def _built_upon(self, commit: Commit, element: Element) -> list[Element]:
        """What was planned for the topic as this element would have made it: the topic that somebody else made was never judged."""
        if element.topic is None:
            return []
        after = commit.finishes.index(element) + 1 if element in commit.finishes else 0
        return [
            each
            for each in (*commit.finishes[after:], *self._planned)
            if each.topic == element.topic and each is not element and not each.settled and not each.begun
        ]

    def _settle(self, commit: Commit, after: Image | None = None) -> None:
        """`after`: the image with the commit's elements, where that is known."""
        before = self.image
        if after is None:
            after = functools.reduce(lambda image, element: element.apply(image), commit.finishes, before)
        self.image = after
        if self._journal is not None:
            self._journal.committed(before, after, commit.finishes)
        self._on_commit(before, self.image, commit.finishes)
        for element in commit.finishes:
            self._element_settled(element)

    def _element_settled(self, element: Element) -> None:
        element.settled = True
        job = element.job
        del element.job  # a circle is left to the garbage collector, which then has more to do than the writer
        job.open_elements -= 1
        if job.open_elements == 0:
            self._begun.pop(job, None)
            job.done.set()

    def _rebase(self) -> None:
        image = self.image
        for element in (*(each for commit in self._in_flight for each in commit.finishes), *self._planned):
            if not element.settled:
                image = element.apply(image)
        self._pending = image


def _refusal(error: StoreError) -> Refusal:
    match error:
        case NodeExists():
            return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Somebody else has just created {error.path}.")
        case NodeMissing():
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        case VersionConflict():
            return Refusal(ErrorCode.INVALID_UPDATE_VERSION)
        case _:
            return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
