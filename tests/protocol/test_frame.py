"""Cutting a stream into frames."""

import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.protocol.errors import InvalidFrameSize
from minicontroller.protocol.frame import FrameBuffer
from minicontroller.protocol.other_protocols import protocol_of
from tests.support.grouped import grouped

few = settings(max_examples=6, derandomize=True, database=None)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def drained(buffer: FrameBuffer) -> list[bytes]:
    frames = []
    while (frame := buffer.next_frame()) is not None:
        frames.append(frame)
    return frames


@few
@given(
    bodies=st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    cuts=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3)), max_size=12),
)
def test_any_tearing_gives_the_same_frames(bodies: list[bytes], cuts: list[tuple[int, int]]) -> None:
    """However the stream is torn, and however many frames are taken between two reads, they come
    out in order and unchanged.
    """
    stream = b"".join(framed(body) for body in bodies)
    buffer, frames, start = FrameBuffer(100), [], 0
    for end, taken in sorted(cuts):
        buffer.feed(stream[start:end])
        frames += [frame for _ in range(taken) if (frame := buffer.next_frame()) is not None]
        start = max(start, min(end, len(stream)))
    buffer.feed(stream[start:])
    frames += drained(buffer)
    assert (frames, buffer.buffered_bytes) == (bodies, 0)


def test_many_frames_in_one_read() -> None:
    """All the small frames of one read come out, and the start of the next one waits
    for its rest.
    """
    buffer = FrameBuffer(100)
    bodies = [bytes([number % 256]) * (number % 30 + 1) for number in range(1000)]
    stream = b"".join(framed(body) for body in bodies)
    buffer.feed(stream + framed(b"last")[:6])
    assert drained(buffer) == bodies
    assert buffer.buffered_bytes == 6
    buffer.feed(b"st")
    assert drained(buffer) == [b"last"]


OTHERS = {
    b"HTTP/1.1 400 Bad": "HTTP",
    **{f"{method} / HTTP/1.1".encode(): "HTTP" for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")},
    **{f"{method} / HTTP/1.1".encode(): "HTTP" for method in ("PATCH", "TRACE", "CONNECT", "PROPFIND")},
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": "HTTP",
    b"\x15\x03\x01\0\2\2\x28": "TLS",  # an alert, and the hellos of SSL 3.0 to TLS 1.3 and in the form of SSL 2.0
    **{b"\x16\3" + bytes([minor]) + b"\2\0\1\0\1\xfc\3\3": "TLS" for minor in range(5)},
    b"\x16\3\1\2\0\1\0\1": "TLS",
    b"\x80\x2e\1\3\1\0\x15\0\0": "TLS",
    b"\x80\x2e\1\0\2\0\x15\0\0": "TLS",
    b"PROXY TCP4 192.0.2.1 192.0.2.2 5 9092\r\n": "a PROXY header",
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c": "a PROXY header",
    b"\x10\x0c\0\4MQTT\4\2\0\x3c\0\0": "MQTT",
    b"\x10\x0e\0\6MQIsdp\3\2\0\x3c\0\0": "MQTT",
    b"\x10\x95\3\0\4MQTT\5\2\0\x3c": "MQTT",
    b"SSH-2.0-OpenSSH_9.6\r\n": "SSH",
    b"AMQP\0\0\x09\1": "AMQP",
    b"ruok\n": "text",
    b"*1\r\n$4\r\nPING\r\n": "text",
}


@grouped("first, named", {"all": list(OTHERS.items())})
def test_who_speaks_another_protocol_is_recognized(first: bytes, named: str) -> None:
    """Bytes of other protocols are told as what they are, also where frames may be as large as
    they would say, and byte by byte.
    """
    for limit in (1000, 100 * 1024 * 1024, 2**31 - 1):
        buffer = FrameBuffer(limit)
        for number in range(3):
            buffer.feed(first[number : number + 1])
            assert buffer.next_frame() is None
        buffer.feed(first[3:4])
        with pytest.raises(InvalidFrameSize, match=f"^{named} arrived"):
            buffer.next_frame()


@given(st.integers(1, 200 * 1024 * 1024))
def test_no_first_request_is_taken_for_another_protocol(size: int) -> None:
    """A size up to 200 MiB is one of Kafka's protocol."""
    assert protocol_of(size.to_bytes(4)) is None


@pytest.mark.parametrize("size", [0, -1, -(2**31), 101, 2**31 - 1])
def test_a_bad_size_is_refused_at_once(size: int) -> None:
    """A size of nothing, less, or too much is refused as soon as its four bytes are there."""
    buffer = FrameBuffer(100)
    head = struct.pack(">i", size)
    buffer.feed(framed(b"good") + head[:3])
    assert drained(buffer) == [b"good"]
    buffer.feed(head[3:])
    with pytest.raises(InvalidFrameSize, match=f"{size} bytes"):
        buffer.next_frame()


def test_the_greatest_frame_is_taken() -> None:
    """The limit itself is allowed."""
    buffer = FrameBuffer(100)
    buffer.feed(framed(bytes(100)))
    assert drained(buffer) == [bytes(100)]


def test_an_announced_size_allocates_nothing() -> None:
    """A frame of 100 MB that is announced and never sent costs what came of it."""
    buffer = FrameBuffer(100 * 1024 * 1024)
    tracemalloc.start()
    try:
        buffer.feed(struct.pack(">i", 100 * 1024 * 1024) + b"start")
        assert buffer.next_frame() is None
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()


def test_a_slow_frame_costs_about_itself() -> None:
    """Byte by byte a frame is kept once, and copied once when it is whole: no chunk list, no
    joining at every byte.
    """
    body = bytes(200_000)
    data = framed(body)
    buffer, frames = FrameBuffer(len(body)), []
    tracemalloc.start()
    try:
        for index in range(len(data)):
            buffer.feed(data[index : index + 1])
            frames += drained(buffer)
        assert frames == [body]
        assert tracemalloc.get_traced_memory()[1] < 4 * len(body)
    finally:
        tracemalloc.stop()


@few
@given(
    sizes=st.lists(st.integers(4, 60), max_size=8),
    cuts=st.lists(st.integers(0, 600), max_size=12),
)
def test_what_is_too_large_is_passed_over(sizes: list[int], cuts: list[int]) -> None:
    """The first four bytes of a frame beyond the limit come out and nothing else of it is kept;
    frames behind it are whole.
    """
    bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
    stream = b"".join(framed(body) for body in bodies)
    buffer, frames, start = FrameBuffer(30, skips_too_large=True), [], 0
    for end in sorted({min(cut, len(stream)) for cut in cuts} | {len(stream)}):
        buffer.feed(stream[start:end])
        frames += drained(buffer)
        assert buffer.buffered_bytes <= 34
        start = end
    assert frames == [body if len(body) <= 30 else body[:4] for body in bodies]
