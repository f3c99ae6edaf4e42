"""Sends frames that were encoded beforehand and keeps the answers: nothing else happens while the
clock runs.

The driver must cost less than what it measures. So requests are bytes before the start, answers are
decoded after the end, and in between there is one send and, as a rule, one receive for each. A
correlation id that does not match, or a connection that ends, stops the measurement; error codes
are the caller's to check, on `Timed.answers`.
"""

import contextlib
import gc
import select
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final, Self

from .peers.base import Address

SIZE: Final = struct.Struct(">i")
RECEIVE_BYTES: Final = 1 << 20
ANSWER_SECONDS: Final = 120.0  # Kafka takes some ten seconds for a batch of 100 topics


class DriverError(Exception):
    """The other side broke the protocol, closed the connection or did not answer."""


@dataclass
class Timed:
    """The result of a run: answers without size prefix, in the order of the frames, and the arrival
    time of each.
    """

    seconds: float
    answers: list[bytes]
    latencies: list[float]

    @property
    def rate(self) -> float:
        return len(self.answers) / self.seconds

    def percentile(self, fraction: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * fraction))]


@dataclass
class Repeated:
    """The result of asking the same again and again: how often a second all of it was answered, and
    the first answers.
    """

    rate: float
    answers: list[bytes]


class Connection:
    """A blocking connection with one request in flight. It receives into a buffer of its own:
    memory that is new for each answer costs the driver more than a large answer costs some systems.
    """

    def __init__(self, address: Address, *, timeout: float = ANSWER_SECONDS) -> None:
        self._buffer = bytearray(RECEIVE_BYTES)
        self.socket = socket.create_connection(address, timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, frame: bytes) -> bytes:
        """Sends a frame and returns its answer without the size prefix."""
        return bytes(self.exchange(frame))

    def exchange(self, frame: bytes) -> memoryview:
        """Sends a frame and returns its answer as `call` does, which lasts until the next one."""
        self.socket.sendall(frame)
        received, end = 0, SIZE.size
        while received < end:
            received += self._receive(received, end)
            if received >= SIZE.size:
                end = SIZE.size + SIZE.unpack_from(self._buffer)[0]
        if received > end:
            raise DriverError("more than one answer came for one request")
        return memoryview(self._buffer)[SIZE.size : end]

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _receive(self, start: int, end: int) -> int:
        """Receives bytes of a frame that has at least `end` of them, of which `start` have come."""
        if end > len(self._buffer):
            self._buffer = self._buffer[:start] + bytes(end - start)
        received = self.socket.recv_into(memoryview(self._buffer)[start:])
        if not received:
            raise DriverError("the connection was closed before the answer was complete")
        return received


def one_by_one(connection: Connection, frames: Sequence[bytes], *, seconds: float, at_least: int = 1) -> Timed:
    """Sends the frames, each after the answer to the one before, until none is left or the time is
    over.
    """
    answers: list[bytes] = []
    latencies: list[float] = []
    call = connection.call
    with without_collector():
        begin = before = perf_counter()
        for frame in frames:
            answers.append(call(frame))
            now = perf_counter()
            latencies.append(now - before)
            before = now
            if now - begin > seconds and len(answers) >= at_least:
                break
    check_correlation(frames, answers)
    return Timed(before - begin, answers, latencies)


def over_and_over(connection: Connection, frames: Sequence[bytes], *, seconds: float) -> Repeated:
    """Sends all frames again and again, each after the answer to the one before, until the time is
    over. The answers to the first time, which is not timed, are kept; later ones must be as long.
    """
    answers = [connection.call(frame) for frame in frames]
    check_correlation(frames, answers)
    lengths = list(map(len, answers))
    times = 0
    with without_collector():
        begin = perf_counter()
        while (took := perf_counter() - begin) < seconds or not times:
            if [len(connection.exchange(frame)) for frame in frames] != lengths:
                raise DriverError(f"the answers are no longer {lengths} bytes long")
            times += 1
    return Repeated(times / took, answers)


def side_by_side(connections: Sequence[Connection], frames: Sequence[bytes], *, seconds: float) -> Timed:
    """Keeps one request in flight on every connection until no frame is left or the
    time is over.
    """
    return _SideBySide(connections, frames, seconds).run()


class _SideBySide:
    """One epoll loop; the state of a connection is the index of its frame and what has arrived of
    the answer.
    """

    def __init__(self, connections: Sequence[Connection], frames: Sequence[bytes], seconds: float) -> None:
        self._frames = frames
        self._seconds = seconds
        self._sockets = {connection.socket.fileno(): connection.socket for connection in connections}
        self._partial: dict[int, bytearray] = {}
        self._flying: dict[int, int] = {}  # file descriptor to index of the frame
        self._sent: dict[int, float] = {}
        self._answers: dict[int, bytes] = {}
        self._latencies: list[float] = []

    def run(self) -> Timed:
        with without_collector(), contextlib.closing(select.epoll()) as poller:
            for descriptor in self._sockets:
                poller.register(descriptor, select.EPOLLIN)
            begin = perf_counter()
            self._loop(poller, begin)
            seconds = perf_counter() - begin
        indexes = sorted(self._answers)
        answers = [self._answers[index] for index in indexes]
        check_correlation([self._frames[index] for index in indexes], answers)
        return Timed(seconds, answers, self._latencies)

    def _loop(self, poller: select.epoll, begin: float) -> None:
        upcoming = 0
        for descriptor in self._sockets:
            upcoming += self._send(descriptor, upcoming)
        while self._flying:
            ready = poller.poll(ANSWER_SECONDS)
            if not ready:
                raise DriverError(f"no answer on {len(self._flying)} connections within {ANSWER_SECONDS:.0f} s")
            for descriptor, _ in ready:
                if self._receive(descriptor) and perf_counter() - begin < self._seconds:
                    upcoming += self._send(descriptor, upcoming)

    def _send(self, descriptor: int, index: int) -> int:
        """Puts the frame of that index on the connection; how many were sent: 0 when
        none is left.
        """
        if index >= len(self._frames):
            return 0
        self._flying[descriptor] = index
        self._sent[descriptor] = perf_counter()
        self._sockets[descriptor].sendall(self._frames[index])
        return 1

    def _receive(self, descriptor: int) -> bool:
        """Reads once; whether the answer is complete."""
        data = self._sockets[descriptor].recv(RECEIVE_BYTES)
        if not data:
            raise DriverError("the connection was closed before the answer was complete")
        if descriptor in self._partial:
            self._partial[descriptor] += data
            data = bytes(self._partial[descriptor])
        if len(data) < 4 or len(data) - 4 < SIZE.unpack_from(data)[0]:
            self._partial.setdefault(descriptor, bytearray(data))
            return False
        self._partial.pop(descriptor, None)
        self._answers[self._flying.pop(descriptor)] = data[4:]
        self._latencies.append(perf_counter() - self._sent[descriptor])
        return True


def check_correlation(frames: Sequence[bytes], answers: Sequence[bytes]) -> None:
    """Every answer begins with the correlation id of its request, which lies behind size, key and
    version.
    """
    for frame, answer in zip(frames, answers, strict=False):
        if answer[:4] != frame[8:12]:
            raise DriverError(f"correlation id {answer[:4].hex()} came for {frame[8:12].hex()}")


def numbered(frame: bytes, count: int) -> list[bytes]:
    """Return a request `count` times, each with a correlation id of its own."""
    head, tail = frame[:8], frame[12:]
    return [head + SIZE.pack(number) + tail for number in range(1, count + 1)]


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """The driver's own garbage collector must not show in anyone's latencies."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
