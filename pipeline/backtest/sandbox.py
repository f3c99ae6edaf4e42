"""The sandbox in which a candidate in Python is asked: it limits the time of a verdict, discards
output and records side effects.

The policy runs in this thread. A signal interrupts it at its time limit in Python code, sleeps and
waits, but not within a native function. Files that it opens, connections and processes are
recorded, because its verdict may depend on them.
"""

import io
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import FrameType
from typing import Any

from ...policies.interface import ClusterState, JudgedRequest
from ...policies.judging import PolicyJudge, PolicyReply
from ...policies.verdict import PolicyOutcome, Verdict

ALLOWED: PolicyReply = (PolicyOutcome.ALLOWED, None)
SOURCES = (".py", ".pyc", ".so", ".pyd")
"""The endings of the files that imports and tracebacks open."""
TIME_ZONES = ("zoneinfo", "tzdata")

Listener = Callable[[str, tuple[Any, ...]], None]


class Sandbox:
    """Asks a policy from one thread, with a time limit, and records its side effects."""

    def __init__(self, judge: PolicyJudge, *, timeout_ms: int, names: Mapping[str, str] | None = None) -> None:
        """Prepare to ask a judge; `names` maps folders of unpacked files to the original ones."""
        self._judge = judge
        self._owner = os.getpid()
        self.names = names or {}
        self._seconds = timeout_ms / 1000
        self._too_late: PolicyReply = PolicyOutcome.BROKEN, f"it takes more than policy.timeout.ms ({timeout_ms})"
        self._has_clock = self._is_ticking = False
        self._deadline: float | None = None
        """The end of the time for the question that is asked now, in seconds of the monotonic
        clock.
        """
        self.timed_out = False
        """Whether the last question took too long."""
        self.side_effects: set[str] = set()
        """Descriptions of what the policy did besides judging, while it was asked."""
        self._allowed = judge.verdict((), None, ALLOWED)
        self.rules = judge.rules
        self.has_code = judge.has_code
        self.judged_apis = judge.judged_apis
        self.kinds = judge.policy.kinds
        """The class names of the requests that Python code is asked about."""
        self.asks = judge.asks

    @contextmanager
    def running(self) -> Iterator[None]:
        """Ask the policy within this block. Only the first thread has a time limit, since only that
        one gets signals.
        """
        if not self.has_code:
            yield
            return
        _watch_process()
        lost, numbers = _DiscardedOutput(), random.getstate()
        out = io.TextIOWrapper(io.BufferedWriter(lost), encoding="utf-8", errors="replace", write_through=True)
        with redirect_stdout(out), redirect_stderr(out), self._clock():
            yield
            out.flush()
        if lost.written:
            self.side_effects.add("prints; the output is discarded")
        if random.getstate() != numbers:
            self.side_effects.add("uses Python's random generator")

    def ask(self, request: JudgedRequest, cluster: ClusterState) -> Verdict:
        """Ask the policy and return its verdict. Raises nothing of the policy's."""
        self.timed_out = False
        judge = self._judge
        findings, fault = judge.found(request, cluster)
        question = judge.question(request, cluster)
        said = ALLOWED if question is None else self._said(question)
        if said == ALLOWED and not findings and fault is None:  # mostly
            return self._allowed
        return judge.verdict(findings, fault, said)

    def _said(self, question: Callable[[], PolicyReply]) -> PolicyReply:
        global _listener  # noqa: PLW0603 - a process has one audit hook for good
        self._deadline = time.monotonic() + self._seconds
        if self._has_clock and not self._is_ticking:
            self._tick(self._seconds)
        _listener = self._note
        try:
            said = question()
            if os.getpid() != self._owner:
                os._exit(1)  # the policy forked, and this is the child
        except _TooLateError:  # between the policy and us
            said = self._too_late
        finally:
            _listener = None
            self._deadline = None
            if self.timed_out:
                sys.settrace(None)
        return self._too_late if self.timed_out else said

    @contextmanager
    def _clock(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handler = signal.signal(signal.SIGALRM, self._interrupt)
        left, interval = signal.setitimer(signal.ITIMER_REAL, 0)
        self._has_clock = True
        try:
            yield
        finally:
            self._has_clock = self._is_ticking = False
            signal.setitimer(signal.ITIMER_REAL, left, interval)
            signal.signal(signal.SIGALRM, handler)

    def _tick(self, seconds: float) -> None:
        """Have `_interrupt` called soon. To set the clock for each question would take longer than
        many a question. It rings again, because a sleep does not notice a signal that came just
        before it.
        """
        self._is_ticking = True
        signal.setitimer(signal.ITIMER_REAL, seconds, self._seconds)

    def _interrupt(self, _signal: int, frame: FrameType | None) -> None:
        self._is_ticking = False
        if self._deadline is None:
            return
        left = self._deadline - time.monotonic()
        self._tick(left if left > 0 else self._seconds)
        if left > 0 or (frame is not None and frame.f_code is Sandbox._said.__code__):
            return  # there is time left, it is not begun yet, or it is over already
        if self.timed_out:
            _insist(frame)
        self.timed_out = True
        raise _TooLateError

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        side_effect = side_effect_of(event, arguments)
        if side_effect is not None:
            self.side_effects.add(side_effect)


class _TooLateError(BaseException):
    """The time limit has passed. It is no Exception, so that a policy does not catch it."""


def _insist(frame: FrameType | None) -> None:
    """Interrupt a policy that catches everything again, at the next line that it comes to."""
    sys.settrace(_raise)
    while frame is not None and frame.f_code is not Sandbox._said.__code__:  # noqa: SLF001 - it is of this module
        frame.f_trace = _raise
        frame = frame.f_back


def _raise(_frame: FrameType, event: str, _argument: Any) -> Any:
    """Raise at a line: what is raised while another exception is on its way would be caught with
    it.
    """
    if event == "line":
        raise _TooLateError
    return _raise


class _DiscardedOutput(io.RawIOBase):
    """A stream that counts what is written to it, and drops it."""

    written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.written += len(data)
        return len(data)


# ------------------------------------------------------------------ what a process does

_listener: Listener | None = None
_is_sandbox = False


@contextmanager
def audit_events_to(listener: Listener) -> Iterator[None]:
    """Call `listener` for each audit event of this process in the block (`sys.addaudithook`)."""
    global _listener  # noqa: PLW0603 - a process has one audit hook for good
    _watch_process()
    _listener = listener
    try:
        yield
    finally:
        _listener = None


def _watch_process() -> None:
    global _is_sandbox  # noqa: PLW0603 - a hook cannot be taken away again
    if not _is_sandbox:
        sys.addaudithook(_hear)
        _is_sandbox = True


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _listener is not None:
        _listener(event, arguments)


def opened(event: str, arguments: tuple[Any, ...]) -> str | None:
    """Return the file that an event opens, unless an import opens it."""
    if event != "open" or not isinstance(arguments[0], str | bytes):
        return None
    path = arguments[0] if isinstance(arguments[0], str) else arguments[0].decode("utf-8", "backslashreplace")
    return None if path.endswith(SOURCES) or any(word in path for word in TIME_ZONES) else path


def side_effect_of(event: str, arguments: tuple[Any, ...]) -> str | None:
    """Describe an audit event that a verdict must not depend on; None for any other event."""
    path = opened(event, arguments)
    if path is not None:
        return f"opens {path}"
    match event:
        case "socket.getaddrinfo" | "socket.gethostbyname" | "socket.gethostbyaddr":
            return f"looks up {arguments[0]}"
        case "socket.connect" | "socket.sendto" | "socket.bind":
            return f"uses the network: {arguments[-1]}"
        case "subprocess.Popen" | "os.posix_spawn" | "os.exec" | "os.system":
            return f"starts {arguments[0]}"
        case "os.fork" | "os.forkpty":
            return "forks"
    return None
