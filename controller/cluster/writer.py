"""The one writer: every change of the metadata passes through one task, in order, and reaches the store in fenced commits.

A job plans its elements against the image as it will be when everything before it has taken effect. As many jobs as wait are
committed together (group commit), a few commits may be in flight, and no element is acknowledged before its commit is. Each commit
checks the version of `/controller_epoch`: once another controller is elected, none of ours takes effect.

How a commit can fail, and what becomes of it:
- the fence: another controller was elected. `ControllerMoved`; every job is told so.
- the session ended: `SessionExpired`, the same.
- the connection broke: whether it took effect is in doubt. `InDoubt`; the controller loads the state anew and calls `resolve`.
- one operation was refused (somebody else wrote there): its element is refused, the others are committed again without it.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import trio

from ...protocol.error_codes import ErrorCode
from ..errors import Refusal
from ..store.base import (
    Check,
    Create,
    NodeExists,
    NodeMissing,
    Operation,
    SessionExpired,
    SetData,
    Store,
    StoreError,
    StoreUnavailable,
    VersionConflict,
    weight,
)
from .image import Image, Topic

T = TypeVar("T")

MAX_COMMITS_IN_FLIGHT = 2
"""One travels while the next is planned; more make the commits smaller, and a commit's price is mostly its own, not its operations'."""


class ControllerMoved(Exception):  # noqa: N818 - Kafka's name (ControllerMovedException)
    """Another controller was elected: this one writes nothing more."""


class InDoubt(Exception):  # noqa: N818
    """The connection broke while commits were in flight: only the store knows which of them took effect."""


class Element:
    """One element of a job: what it writes, and what that means for the image."""

    __slots__ = ("evolve", "holds", "job", "operations", "refusal", "topic", "weight")

    def __init__(
        self,
        topic: str | None,
        operations: Sequence[Operation],
        evolve: Callable[[Topic | None], Topic | None],
        holds: Callable[[Image], bool],
    ) -> None:
        self.topic = topic
        self.operations = operations
        self.weight = sum(map(weight, operations))
        self.evolve = evolve
        """The topic before this element to the topic after it, None for no topic. Asked again whenever the order changes."""
        self.holds = holds
        """Whether an image, freshly loaded, shows that the element took effect."""
        self.refusal: Refusal | None = None
        """Set when the store refused it."""
        self.job: Job

    def apply(self, image: Image) -> Image:
        if self.topic is None:
            return image
        after = self.evolve(image.topics.get(self.topic))
        return image.with_topic(after) if after is not None else image.with_topics((), (self.topic,))


class Draft:
    """What a job sees while it plans: the image with everything before it, its own earlier elements included."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.elements: list[Element] = []

    def stage(
        self,
        topic: str | None,
        operations: Sequence[Operation],
        *,
        evolve: Callable[[Topic | None], Topic | None] = lambda topic: topic,
        holds: Callable[[Image], bool] = lambda _image: True,
    ) -> Element:
        """Add an element; the next one planned sees its effect."""
        element = Element(topic, operations, evolve, holds)
        self.elements.append(element)
        self.image = element.apply(self.image)
        return element


class Job:
    """A request for changes, from its planning to the last of its commits."""

    __slots__ = ("done", "error", "open_elements", "plan", "result", "settled_some")

    def __init__(self, plan: Callable[[Draft], Any]) -> None:
        self.plan = plan
        self.result: Any = None
        self.error: BaseException | None = None
        self.open_elements = 0
        self.settled_some = False
        self.done = trio.Event()

    def fail(self, error: BaseException) -> None:
        if not self.done.is_set():
            self.error = error
            self.done.set()

    def element_settled(self) -> None:
        self.settled_some = True
        self.open_elements -= 1
        if self.open_elements == 0:
            self.done.set()


class Commit:
    """Operations that take effect together. `finishes` are the elements whose last operation is among them."""

    __slots__ = ("elements", "error", "finished", "finishes", "operations", "owners", "weight")

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.owners: list[Element] = []
        """Of each operation."""
        self.finishes: list[Element] = []
        self.weight = 0
        self.finished = False
        self.error: StoreError | None = None

    def add(self, element: Element, operations: Sequence[Operation], total: int, *, last: bool) -> None:
        self.operations.extend(operations)
        self.owners.extend([element] * len(operations))
        self.weight += total
        if last:
            self.finishes.append(element)

    def without(self, element: Element) -> None:
        kept = [(op, owner) for op, owner in zip(self.operations, self.owners, strict=True) if owner is not element]
        self.operations = [op for op, _ in kept]
        self.owners = [owner for _, owner in kept]
        self.finishes = [owner for owner in self.finishes if owner is not element]


class Writer:
    """Plans jobs one at a time and commits them in groups. `image` is what has been committed."""

    def __init__(
        self, store: Store, fence: Check, image: Image, on_commit: Callable[[Image, Image, list[Element]], None]
    ) -> None:
        self.image = image
        self._pending = image
        self._store = store
        self._fence = fence
        self._on_commit = on_commit
        """Called with the image before, the image after, and the elements that took effect, for each commit in order."""
        self._queue: deque[Job] = deque()
        self._urgent: deque[Job] = deque()
        self._in_flight: deque[Commit] = deque()
        self._wake = trio.lowlevel.ParkingLot()
        self._closed: BaseException | None = None

    # ------------------------------------------------------------------ what others call

    @property
    def depth(self) -> int:
        """Jobs that wait to be planned."""
        return len(self._queue) + len(self._urgent)

    async def write(self, plan: Callable[[Draft], Awaitable[T]], *, urgent: bool = False) -> T:
        """Plan, commit, and return what the plan returned; its elements tell in `refusal` which of them the store refused.

        `urgent` jobs pass those that wait: the data plane waits for them. Raises ControllerMoved, or what the plan raised. A caller
        who is cancelled does not stop the job.
        """
        if self._closed is not None:
            raise ControllerMoved from self._closed
        job = Job(plan)
        (self._urgent if urgent else self._queue).append(job)
        self._wake.unpark_all()
        await job.done.wait()
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def reset(self, image: Image) -> None:
        """Go on from this image: what was in doubt is settled by whether the image shows it."""
        in_doubt = [element for commit in self._in_flight for element in commit.finishes]
        self._in_flight.clear()
        self.image = self._pending = image
        for element in in_doubt:
            if not element.holds(image):
                element.refusal = Refusal(ErrorCode.REQUEST_TIMED_OUT)
            element.job.element_settled()

    def adopt(self, image: Image) -> None:
        """Take over a change that came from elsewhere than a job: brokers, or topics that others wrote. Nothing is committed."""
        self.image = image
        self._rebase()

    def close(self, reason: BaseException) -> None:
        """No job gets through any more: those that were in flight may have taken effect, and time out; the others were not begun."""
        self._closed = reason
        for commit in self._in_flight:
            without_effect = commit.error is not None and not isinstance(commit.error, StoreUnavailable)
            for element in commit.finishes:
                if without_effect and not element.job.settled_some:
                    element.job.fail(ControllerMoved())  # nothing of it was done: another controller may do it
                else:
                    element.refusal = Refusal(ErrorCode.REQUEST_TIMED_OUT)
                    element.job.element_settled()
        for job in (*self._urgent, *self._queue):
            job.fail(ControllerMoved())
        self._urgent.clear()
        self._queue.clear()

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
            elif (self._urgent or self._queue) and len(self._in_flight) < MAX_COMMITS_IN_FLIGHT:
                await self._send(await self._plan_waiting(), nursery)
            else:
                await self._wake.park()

    async def _plan_waiting(self) -> list[Element]:
        elements: list[Element] = []
        total, limit = 0, self._store.max_commit_bytes
        while (self._urgent or self._queue) and total < limit:
            job = (self._urgent or self._queue).popleft()
            planned = await self._plan(job)
            elements += planned
            total += sum(element.weight for element in planned)
        return elements

    async def _plan(self, job: Job) -> list[Element]:
        draft = Draft(self._pending)
        try:
            job.result = await job.plan(draft)
        except trio.Cancelled:
            job.fail(ControllerMoved())
            raise
        except Exception as error:  # noqa: BLE001 - the plan's errors belong to its caller; the writer goes on
            job.fail(error)
            return []
        if not draft.elements:
            job.done.set()
            return []
        self._pending = draft.image
        job.open_elements = len(draft.elements)
        for element in draft.elements:
            element.job = job
        return draft.elements

    async def _send(self, elements: Iterable[Element], nursery: trio.Nursery) -> None:
        for commit in self._pack(elements):
            while len(self._in_flight) >= MAX_COMMITS_IN_FLIGHT:
                if self._in_flight[0].finished:
                    await self._collect()
                else:
                    await self._wake.park()
            self._in_flight.append(commit)
            answer = self._store.commit([self._fence, *commit.operations])
            if self._store.commits_at_once:
                await self._finish(commit, answer)
            else:
                nursery.start_soon(self._finish, commit, answer)

    def _pack(self, elements: Iterable[Element]) -> list[Commit]:
        """Elements in order into commits below the store's limit; only an element that exceeds it alone is divided."""
        limit = self._store.max_commit_bytes - weight(self._fence)
        commits: list[Commit] = []
        for element in elements:
            total = element.weight
            if not commits or commits[-1].weight + total > limit:
                commits.append(Commit())
            if total <= limit:
                commits[-1].add(element, element.operations, total, last=True)
                continue
            first = size = 0
            for index, one in enumerate(map(weight, element.operations)):
                if size + one > limit:
                    commits[-1].add(element, element.operations[first:index], size, last=False)
                    commits.append(Commit())
                    first, size = index, 0
                size += one
            commits[-1].add(element, element.operations[first:], size, last=True)
        return commits

    async def _finish(self, commit: Commit, answer: Awaitable[object]) -> None:
        try:
            await answer
        except StoreError as error:
            commit.error = error
        commit.finished = True
        self._wake.unpark_all()

    # ------------------------------------------------------------------ what came back

    async def _collect(self) -> None:
        commit = self._in_flight[0]
        if commit.error is None:
            self._in_flight.popleft()
            self._settle(commit)
            return
        while not all(commit.finished for commit in self._in_flight):
            await self._wake.park()
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
        if isinstance(error, VersionConflict) and error.index == 0:
            raise ControllerMoved from error
        if isinstance(error, SessionExpired):
            raise error
        if isinstance(error, StoreUnavailable) or error is None or error.index is None:
            raise InDoubt from error

    async def _commit_again(self, commit: Commit) -> None:
        """Commit without the elements that the store refuses, one by one, until the rest takes effect."""
        while commit.operations:
            try:
                await self._store.commit([self._fence, *commit.operations])
                break
            except StoreError as error:
                commit.error = error
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
        if element not in commit.finishes:
            raise InDoubt from error  # the first part of a divided element may stand: let the state be loaded
        element.refusal = _refusal(error)
        commit.without(element)
        element.job.element_settled()

    def _settle(self, commit: Commit) -> None:
        before = self.image
        for element in commit.finishes:
            self.image = element.apply(self.image)
        self._on_commit(before, self.image, commit.finishes)
        for element in commit.finishes:
            element.job.element_settled()

    def _rebase(self) -> None:
        image = self.image
        for commit in self._in_flight:
            for element in commit.finishes:
                image = element.apply(image)
        self._pending = image


def _refusal(error: StoreError) -> Refusal:
    match error:
        case NodeExists():
            return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Somebody else has just created {error.path}.")
        case NodeMissing():
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        case _:
            return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
