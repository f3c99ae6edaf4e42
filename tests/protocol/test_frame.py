"""Cutting a stream into frames."""

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.protocol.errors import InvalidFrameSize
from minicontroller.protocol.frame import FrameBuffer
from tests.protocol.instances import few


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


@pytest.mark.parametrize(
    ("first", "named"),
    [
        (b"HTTP/1.1 400 Bad", "HTTP"),
        (b"GET / HTTP/1.1", "HTTP"),
        (b"\x15\x03\x01\x00", "TLS"),
        (b"\x16\x03\x03\x01", "TLS"),
    ],
)
def test_who_speaks_another_protocol_is_recognized(first: bytes, named: str) -> None:
    """Bytes of HTTP and of TLS are told as what they are, at the limit that a node and a client
    have.
    """
    buffer = FrameBuffer(100 * 1024 * 1024)
    buffer.feed(first)
    with pytest.raises(InvalidFrameSize, match=f"^{named} arrived"):
        buffer.next_frame()


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
