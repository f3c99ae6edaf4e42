"""The operating system's side of a policy process: it is started, exchanges messages, is listened
to and is killed.

Rule: the process inherits nothing of the node but one end of a pair of sockets, a pipe for traces
and a socket for its output. Waiting for it happens in the event loop. Killing it is final: its
whole process group is killed, and the process is reaped.
"""

import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from secrets import token_hex
from typing import Annotated

import msgspec
import trio

from ...policies.loading import is_secret
from ...protocol.errors import ProtocolError
from ...protocol.frame import FrameBuffer
from .messages import LOG_MARK, MAX_FROM_POLICY, FromPolicy, Message, framed, from_policy

MODULE = f"{__package__}.child"
READ_BYTES = 1 << 16
PATIENCE_MS = 1
"""How long the event loop blocks for an answer, if the last one came within this time, before it
turns to other tasks. Most answers take a tenth of it, and waking a task costs more than an answer.
"""
TRACE_MS = 100
"""How long to wait for the stack trace of a process that is about to be killed."""
MAX_TRACE_BYTES = 1 << 14
MAX_LINE_BYTES = 1 << 16
"""The longest line of output that is logged as one; a longer line is logged in pieces."""
PIECE_BYTES = 1 << 13
MAX_LOGGERS = 100
"""How many loggers a policy may use; records of further ones are logged by the policy's logger."""
OURS = "minicontroller"
"""The root of the node's own loggers, which a policy cannot use."""
MARK_BYTES = 16
LINES_IN_A_ROW = 100
REST_SECONDS = 0.1
"""The pause after so many lines. A policy that prints without end is slowed down by it, and exceeds
its time limit in the end.
"""

logger = logging.getLogger("minicontroller.policy")


class LinkLostError(Exception):
    """The policy process has ended, or sent a message that is not expected."""


class PolicyLink:
    """The node's end of the link to one policy process, and this process."""

    def __init__(self) -> None:
        """Start the process. Raises OSError."""
        mark = LOG_MARK + token_hex(MARK_BYTES)
        self._end, theirs = socket.socketpair()
        output, their_output = socket.socketpair()
        self._trace, their_trace = os.pipe()
        try:
            given = (theirs.fileno(), their_trace)
            self._process = subprocess.Popen(  # noqa: S603 - our own module, with numbers
                [sys.executable, "-P", "-m", MODULE, *map(str, given), str(os.getpid()), mark],
                stdin=subprocess.DEVNULL,
                stdout=their_output.fileno(),
                stderr=their_output.fileno(),
                pass_fds=given,
                env=_environment(),
                process_group=0,  # signals of a terminal are for the node, and what the policy starts ends with it
            )
        except BaseException:
            self._end.close()
            output.close()
            os.close(self._trace)
            raise
        finally:
            theirs.close()
            their_output.close()
            os.close(their_trace)
        self._end.setblocking(False)
        self._look = select.poll()
        self._look.register(self._end, select.POLLIN)
        self._frames = FrameBuffer(MAX_FROM_POLICY)
        self._is_quick = True
        self._output = Output(output, mark, self._wait)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        if self._process.returncode is None and self._process.poll() is not None:
            self._kill_group()
        return self._process.returncode is not None

    async def send(self, message: Message) -> None:
        data = memoryview(framed(message))
        while data:
            try:
                data = data[self._end.send(data) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._end)
            except OSError as error:
                raise LinkLostError(f"its process has ended ({error.strerror})") from None

    async def receive(self) -> FromPolicy:
        """Return the next message of the process. Raises LinkLostError."""
        try:
            while (frame := self._frames.next_frame()) is None:
                self._frames.feed(await self._read())
            return from_policy.decode(frame)
        except (ProtocolError, msgspec.MsgspecError) as error:
            raise LinkLostError(f"its process sent a message that cannot be read: {error}") from None

    async def _read(self) -> bytes:
        began = time.perf_counter()
        if not self._look.poll(PATIENCE_MS if self._is_quick else 0):
            await trio.lowlevel.wait_readable(self._end)
        self._is_quick = time.perf_counter() - began < PATIENCE_MS / 1000
        try:
            data = self._end.recv(READ_BYTES)
        except OSError as error:
            raise LinkLostError(f"its process has ended ({error.strerror})") from None
        if not data:
            raise LinkLostError("its process has ended")
        return data

    async def end(self) -> None:
        """Kill the process and its children. Cancellation does not interrupt this."""
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(self.kill)

    async def where(self) -> str:
        """Return a stack trace of the process as it is now; empty if the process does not react."""
        return await trio.to_thread.run_sync(self._traced)

    def _traced(self) -> str:
        if not self.has_ended:
            os.kill(self.pid, signal.SIGUSR1)
        look = select.poll()
        look.register(self._trace, select.POLLIN)
        text = b""
        while (
            len(text) < MAX_TRACE_BYTES
            and look.poll(TRACE_MS if not text else 1)
            and (data := os.read(self._trace, READ_BYTES))
        ):
            text += data
        return text.decode("utf-8", "replace")

    def kill(self) -> None:
        """Kill the process at once. Blocks until it is gone, which takes as long as the system
        needs to free its memory.
        """
        if not self.has_ended:
            self._kill_group()
            self._process.wait()
        self._end.close()
        self._output.stop()
        if self._trace >= 0:
            os.close(self._trace)
            self._trace = -1

    def _kill_group(self) -> None:
        """Kill the process and its children, or its children alone if it has just ended. This is
        never done later, because another process may have its id by then.
        """
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)

    def _wait(self) -> None:
        if self._process.returncode is None:
            self._process.wait()
            self._kill_group()


def _environment() -> dict[str, str]:
    """Return the environment for the process: the node's own without secrets of its configuration,
    and with the node's module search path.
    """
    public = {name: value for name, value in os.environ.items() if not is_secret(name.lower().replace("_", "."))}
    return {**public, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}


class Output:
    """Writes what a policy prints and logs to the node's log, in a thread of its own, which reaps
    the process at the end.
    """

    def __init__(self, end: socket.socket, mark: str, collect: Callable[[], None]) -> None:
        """Read from `end`. Lines that begin with `mark` are log records; the mark is random, so
        that a text from elsewhere that the policy prints cannot be taken for one.
        """
        self._end = end
        self._mark = mark
        self._collect = collect
        self._is_stopped = False
        self._loggers: set[str] = set()
        context = copy_context()  # records are attributed to this node
        threading.Thread(target=context.run, args=(self._read,), name="policy output", daemon=True).start()

    def stop(self) -> None:
        """Stop reading, even if a child of the policy holds the other end open or much output was
        not read yet.
        """
        self._is_stopped = True
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_RD)

    def _read(self) -> None:
        with self._end:
            for number, line in enumerate(self._lines(), start=1):
                self._log_line(line)
                if number % LINES_IN_A_ROW == 0:
                    if self._is_stopped:
                        break
                    time.sleep(REST_SECONDS)
        self._collect()

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        while data := self._receive():
            *lines, rest = (rest + data).split(b"\n")
            yield from filter(None, lines)
            if len(rest) > MAX_LINE_BYTES:
                yield rest
                rest = b""
        yield rest

    def _receive(self) -> bytes:
        try:
            return self._end.recv(PIECE_BYTES)
        except OSError:
            return b""

    def _log_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "backslashreplace").rstrip()
        if text.startswith(self._mark):
            with suppress(msgspec.MsgspecError):
                record = msgspec.json.decode(text[len(self._mark) :], type=_Logged)
                if len(self._loggers) < MAX_LOGGERS and not record.logger.startswith(OURS):
                    self._loggers.add(record.logger)
                to = logging.getLogger(record.logger) if record.logger in self._loggers else logger
                to.log(record.level, "%s", record.text)
                return
        if text:
            logger.info("The policy prints: %s", text)


class _Logged(msgspec.Struct):
    """A log record of the policy."""

    level: Annotated[int, msgspec.Meta(ge=0, le=1_000)]
    logger: str
    text: str
