"""A thread of its own for foreign code: one call at a time, none waited for longer than a limit.

Rule: the event loop waits for an answer, never for the thread. A call that exceeds the limit is abandoned together with its thread
(Python cannot stop one), and the next call gets a new thread; while too many hang, calls are refused. The threads are daemons, so
that none of them holds the process back from ending.

How loop and thread meet: the thread sets `finished`, then looks whether somebody wants to be woken; the loop sets `wake`, then
looks whether the call has finished. Whichever comes second sees the other, so no wake-up is lost.
"""

import logging
import sys
import threading
import traceback
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import trio

PATIENCE_SECONDS = 0.0002
"""How long the loop waits in place before it turns to other tasks: to be woken by a thread costs it about as much (measured: a
call 25 us in place, 90 us by way of the loop, and no less with `trio.to_thread`)."""

MAX_ABANDONED = 4

logger = logging.getLogger("minicontroller.policy")

T = TypeVar("T")


class CallHangsError(Exception):
    """The call took longer than the limit; the text shows where it was then."""


class TooManyCallsHangError(Exception):
    """As many threads hang as may: the call was not made."""


class PolicyThread:
    """Makes calls for the tasks of one trio run, in the order in which they come."""

    def __init__(self, limit_seconds: float) -> None:
        self._limit = limit_seconds
        self._turn = trio.Lock()
        self._worker: _Worker | None = None
        self._running: _Call[Any] | None = None
        """A call whose caller was cancelled stays here: the next one waits for what is left of its time."""
        self._abandoned: set[_Worker] = set()

    @property
    def abandoned(self) -> int:
        """How many threads hang."""
        return len(self._abandoned)

    async def call(self, function: Callable[[], T]) -> T:
        """What `function` returns or raises when the thread calls it.

        Error handling: `CallHangsError`, `TooManyCallsHangError`, RuntimeError if the system has no thread left.
        """
        async with self._turn:
            if self._running is not None:
                await self._settle(self._running)
            call = _Call(function, trio.current_time() + self._limit)
            worker = self._started()
            self._running = call
            worker.calls.put(call)
            await self._settle(call)
        if not call.finished:
            raise CallHangsError(call.where)
        return call.outcome()

    def stop(self) -> None:
        """Let the thread end after its last call."""
        if self._worker is not None:
            self._worker.calls.put(None)
            self._worker = None

    def _started(self) -> "_Worker":
        if self._worker is None:
            if len(self._abandoned) >= MAX_ABANDONED:
                raise TooManyCallsHangError
            self._worker = _Worker(self._ended)
        return self._worker

    async def _settle(self, call: "_Call[Any]") -> None:
        """Wait until the call has finished or exceeds the limit; in both cases the next one may begin."""
        if not call.ready.acquire(timeout=PATIENCE_SECONDS):
            call.wake = trio.Event()
            if not call.finished:
                with trio.move_on_at(call.deadline):
                    await call.wake.wait()
        self._running = None
        if not call.finished:
            self._abandon(call)

    def _abandon(self, call: "_Call[Any]") -> None:
        worker, self._worker = self._worker, None
        assert worker is not None
        call.where = worker.stack()
        worker.calls.put(None)
        self._abandoned.add(worker)

    def _ended(self, worker: "_Worker") -> None:
        if worker in self._abandoned:
            self._abandoned.remove(worker)
            logger.warning("A call that was given up has returned; %d hang.", len(self._abandoned))


class _Call(Generic[T]):
    __slots__ = ("deadline", "error", "finished", "function", "ready", "result", "wake", "where")

    def __init__(self, function: Callable[[], T], deadline: float) -> None:
        self.function = function
        self.deadline = deadline
        self.ready = threading.Lock()
        self.ready.acquire()
        self.finished = False
        self.wake: trio.Event | None = None
        self.error: BaseException | None = None
        self.result: T
        self.where = ""

    def make(self) -> None:
        try:
            self.result = self.function()
        except BaseException as error:  # noqa: BLE001 - it is raised again where the call was asked for
            self.error = error
        self.finished = True
        self.ready.release()

    def outcome(self) -> T:
        if self.error is not None:
            raise self.error
        return self.result


class _Worker:
    def __init__(self, ended: Callable[["_Worker"], None]) -> None:
        self.calls: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        self._ended = ended
        self._loop = trio.lowlevel.current_trio_token()
        self._context = copy_context()
        """Of the node: what the thread says is about it."""
        self._thread = threading.Thread(target=self._serve, name="policy", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            while (call := self.calls.get()) is not None:
                call.make()
                if call.wake is not None:
                    self._loop.run_sync_soon(call.wake.set)
                del call  # what it holds shall not live until the next one comes
            self._loop.run_sync_soon(self._context.run, self._ended, self)
        except trio.RunFinishedError:
            return  # nobody is there to hear of it

    def stack(self) -> str:
        """Where the call is now, from the function that was called inwards."""
        frame = sys._current_frames().get(self._thread.ident or 0)  # noqa: SLF001 - the documented way to see another thread
        frames = traceback.extract_stack(frame) if frame is not None else []
        ours = max((index for index, entry in enumerate(frames) if entry.filename == __file__), default=-1)
        return "".join(traceback.format_list(frames[ours + 1 :]))
