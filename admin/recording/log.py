"""The audit log of one node: the event loop appends lines, and a thread writes them into files.

Writing and fsync release the interpreter lock, so they do not stop the event loop. A full queue and
a full disk are shown by attributes; `audit.on.failure` decides whether changes are then refused.
"""

import heapq
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import trio

from ...audit.event import AuditEvent
from ...audit.lines import encode_line
from ...audit.writing import AuditFiles, EncodedLine
from ...cluster.errors import ConfigurationError
from ...process.observe.logs import NODE
from ...process.settings.node_config import NodeConfig

log = logging.getLogger("minicontroller.audit")

MAX_BATCH_EVENTS = 4096
PAUSE_SECONDS = 0.000_5
"""The pause of the thread after each event that it makes.

The event loop releases the interpreter lock at each system call, and gets it back from a busy
thread after 5 ms. With a snapshot of 10,000 topics its longest pause is about 12 ms, and was about
30 ms without these pauses of the thread.
"""
RETRY_SECONDS = 1.0
CLOSE_SECONDS = 10.0


class AuditSettings(msgspec.Struct, frozen=True, kw_only=True):
    folder: Path
    always: bool = False
    """Whether answers wait for the fsync of their decisions (`audit.flush=always`)."""
    interval_seconds: float = 1.0
    refuses: bool = True
    """Whether changes are refused while the log cannot be written; if not, events are dropped."""
    max_bytes: int = 1 << 26
    max_seconds: float = 3600.0
    max_queue: int = 100_000
    retry_seconds: float = RETRY_SECONDS


def audit_settings(config: NodeConfig) -> AuditSettings | None:
    """Read the settings of the audit log, or return None if it is off. Raises ConfigurationError if
    its folder cannot be written.
    """
    folder = config.optional_string("audit.dir")
    if not folder:
        return None
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".writable-{config.integer('broker.id')}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise ConfigurationError(f"audit.dir={folder} cannot be written: {error.strerror}.") from None
    return AuditSettings(
        folder=path,
        always=config.string("audit.flush") == "always",
        interval_seconds=config.integer("audit.flush.interval.ms") / 1000,
        refuses=config.string("audit.on.failure") == "refuse",
        max_bytes=config.integer("audit.max.bytes"),
        max_seconds=config.integer("audit.max.ms") / 1000,
        max_queue=config.integer("audit.queue.events"),
    )


class _Unmade(msgspec.Struct, gc=False):
    """An event that the thread has still to make."""

    epoch: int
    sequence: int
    since: float
    make: Callable[[], AuditEvent]


class Loss(msgspec.Struct):
    """Consecutive events of one epoch that were dropped."""

    epoch: int
    first_sequence: int
    last_sequence: int
    reason: str


class AuditLog:
    """The queue and the thread that write a node's audit log. It is used from one event loop.
    Ordinals count its events over all epochs.
    """

    def __init__(self, settings: AuditSettings, *, cluster_id: str, node: int) -> None:
        self.settings = settings
        self._node = node
        self.failure: str | None = None
        """The reason why nothing can be written now; None if it can."""
        self.written_events = 0
        self.dropped_events = 0
        self.failed_writes = 0
        self.refused_requests = 0
        self._recovered: Callable[[], None] = lambda: None
        self._files = AuditFiles(
            settings.folder,
            cluster_id=cluster_id,
            node=node,
            max_bytes=settings.max_bytes,
            max_seconds=settings.max_seconds,
        )
        self._queue: deque[EncodedLine | _Unmade] = deque()
        self._made: deque[EncodedLine] = deque()
        self._ordinal = 0
        self._durable = 0
        self._taken = 0
        """The ordinal of the last event that the thread took from the queue."""
        self._losses: list[Loss] = []
        """The losses that the thread met. The event loop takes them when writing works again."""
        self._overflow: list[Loss] = []
        """The losses that the event loop met."""
        self._is_unbounded = False
        self._waiters: list[tuple[int, int, trio.Event]] = []
        self._lock = threading.Lock()
        self._wake, self._closing = threading.Event(), threading.Event()
        self._hurry = threading.Event()
        """Set when the thread is to write at once, before the flush interval ends."""
        self._thread: threading.Thread | None = None
        self._token: trio.lowlevel.TrioToken | None = None

    # ------------------------------------------------------------------ the state of the log

    def on_recovered(self, recovered: Callable[[], None]) -> None:
        """Call this in the event loop from now on, when events were lost and the log can be written
        again. Only the last who asks is called: the recorder of the newest epoch.
        """
        self._recovered = recovered

    @property
    def waiting_events(self) -> int:
        return self._ordinal - self._durable

    @property
    def syncs(self) -> int:
        """The number of fsyncs. With `audit.flush=always` many decisions may share one."""
        return self._files.syncs

    @property
    def lag_seconds(self) -> float:
        """The age in seconds of the oldest event that is not durable."""
        for waiting in (self._made, self._queue):
            try:
                return max(0.0, time.perf_counter() - waiting[0].since)
            except IndexError:
                continue
        return 0.0

    @property
    def refusal(self) -> str | None:
        """A sentence that says why no change may be decided now; None if changes are allowed."""
        if not self.settings.refuses:
            return None
        if self.failure is not None:
            return f"The audit log cannot be written ({self.failure}); changes are refused until it can."
        if len(self._queue) >= self.settings.max_queue:
            return "The audit log's queue is full; changes are refused until it has room."
        return None

    # ------------------------------------------------------------------ the event loop's side

    def append(self, epoch: int, sequence: int, line: bytes | Callable[[], AuditEvent]) -> int:
        """Queue an encoded event, or a function that the thread calls to make it and that uses
        immutable values only. Returns the event's ordinal, or the ordinal before it if the queue is
        full.
        """
        if self._thread is None:
            self._start()
        if not (self.settings.refuses or self._is_unbounded) and len(self._queue) >= self.settings.max_queue:
            self.dropped_events += 1
            _add_loss(self._overflow, epoch, sequence, "the queue was full")
            return self._ordinal
        since = time.perf_counter()
        if isinstance(line, bytes):
            self._queue.append(EncodedLine(epoch, sequence, since, line))
        else:
            self._queue.append(_Unmade(epoch, sequence, since, line))
        self._ordinal += 1
        if not self._wake.is_set():
            self._wake.set()
        return self._ordinal

    @contextmanager
    def unbounded(self) -> Iterator[None]:
        """Return a context manager in which appended events are never dropped."""
        self._is_unbounded = True
        try:
            yield
        finally:
            self._is_unbounded = False

    async def wait_durable(self, ordinal: int) -> None:
        """Wait until the event with this ordinal and all before it are durable or dropped."""
        if self._durable < ordinal:
            waiter = (ordinal, id(reached := trio.Event()), reached)
            heapq.heappush(self._waiters, waiter)
            try:
                await reached.wait()
            except trio.Cancelled:
                if not reached.is_set():
                    self._waiters.remove(waiter)
                    heapq.heapify(self._waiters)
                raise

    async def flush(self, patience_seconds: float) -> int:
        """Write the waiting events at once, and return how many are not durable after
        `patience_seconds`.
        """
        ordinal = self._ordinal
        if self._durable < ordinal:
            self._hurry.set()
        with trio.move_on_after(patience_seconds):
            await self.wait_durable(ordinal)
        return max(0, ordinal - self._durable)

    def take_losses(self) -> list[Loss]:
        """Return the losses since the last call."""
        with self._lock:
            losses, self._losses = self._losses, []
        overflow, self._overflow = self._overflow, []
        return losses + overflow

    async def close(self) -> None:
        """Write the waiting events, if possible, and end the thread."""
        if self._thread is None:
            return
        self._closing.set()
        self._hurry.set()
        self._wake.set()
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(self._thread.join, CLOSE_SECONDS)

    def _start(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def _reached(self, ordinal: int) -> None:
        self._durable = max(self._durable, ordinal)
        while self._waiters and self._waiters[0][0] <= ordinal:
            heapq.heappop(self._waiters)[2].set()

    # ------------------------------------------------------------------ the thread's side

    def _run(self) -> None:
        NODE.set(self._node)
        try:
            while not (self._closing.is_set() and not self._queue and not self._made):
                self._wait()
                self._wake.clear()
                self._hurry.clear()
                last = self._ordinal  # later events are flushed by themselves
                while self._made or self._taken < last:
                    if not self._write_batch():
                        break
                if self.failure is not None and self._closing.is_set():
                    break
        finally:
            if self._queue or self._made:
                log.error("%d audit events could not be written and are lost", len(self._queue) + len(self._made))
            self._files.close()

    def _wait(self) -> None:
        if self._closing.is_set():
            return
        if self._made:  # writing failed and is tried again later
            self._closing.wait(self.settings.retry_seconds)
            return
        while not self._wake.wait(self._files.looks_in):
            self._look()
        if not self.settings.always:
            self._hurry.wait(self.settings.interval_seconds)

    def _look(self) -> None:
        """Check, while there is nothing to write, that the written files still exist."""
        try:
            is_restored = self._files.look()
        except OSError as error:
            self._failed(error, self._taken)
            return
        if is_restored:
            self.failure = None
            log.warning("the open audit file had been removed from the folder; its content is there again")
        self._files.rotate_if_old()

    def _write_batch(self) -> bool:
        """Write the waiting events up to a limit. Return False if they must be written again
        later.
        """
        self._take()
        ordinal, last, count = self._taken, self._made[-1].sequence, len(self._made)
        try:
            self._files.commit(self._made)
        except OSError as error:
            self.written_events += count - len(self._made)
            return self._failed(error, ordinal)
        self.written_events += count
        if self.failure is not None:
            log.warning("the audit log can be written again; its newest event is %d", last)
            self.failure = None
        self._call_soon(self._reached, ordinal)
        if self._losses or (self._overflow and not self._queue):
            self._call_soon(self._recovered)
        return True

    def _take(self) -> None:
        while self._queue and len(self._made) < MAX_BATCH_EVENTS:
            line = self._queue.popleft()
            if isinstance(line, _Unmade):
                line = EncodedLine(line.epoch, line.sequence, line.since, encode_line(line.make()))
                time.sleep(PAUSE_SECONDS)
            self._made.append(line)
            self._taken += 1

    def _failed(self, error: OSError, ordinal: int) -> bool:
        self.failed_writes += 1
        if self.failure is None:
            log.error("the audit log cannot be written: %s", error)
        self.failure = error.strerror or type(error).__name__
        if self.settings.refuses:
            return False
        self.dropped_events += len(self._made)
        with self._lock:
            for line in self._made:
                _add_loss(self._losses, line.epoch, line.sequence, self.failure)
        self._made.clear()
        self._call_soon(self._reached, ordinal)
        return True

    def _call_soon(self, function: Callable[..., None], *arguments: Any) -> None:
        assert self._token is not None
        try:
            self._token.run_sync_soon(function, *arguments)
        except trio.RunFinishedError:
            log.debug("the event loop has ended: nothing waits for the audit log")


def _add_loss(losses: list[Loss], epoch: int, sequence: int, reason: str) -> None:
    if losses and losses[-1].epoch == epoch and losses[-1].last_sequence == sequence - 1:
        losses[-1].last_sequence = sequence
    else:
        losses.append(Loss(epoch, sequence, sequence, reason))
