"""Frames are moved piece by piece, whatever the pieces in which their bytes come."""

import struct
from itertools import pairwise

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.gateway.frames import MOST_WHOLE_BYTES, FrameReader, FrameWriter
from minicontroller.network.transport import Disconnected, Transport
from minicontroller.protocol.errors import InvalidFrameSize

MOST = 1000


class Pipe(Transport):
    """A transport whose other end has sent some pieces and then no more. It keeps what it is sent,
    of which the kernel takes `taken` bytes at once.
    """

    def __init__(self, pieces: list[bytes], *, taken: int = 1 << 20) -> None:
        self._pieces = list(pieces)
        self._taken = taken
        self.sent: list[bytes] = []

    @property
    def has_left(self) -> bool:
        return not self._pieces

    async def secure(self) -> bytes | None:
        return None

    async def receive(self, most: int = MOST, *, expected: bool = True) -> bytes:  # noqa: ARG002
        await trio.lowlevel.checkpoint()
        if not self._pieces:
            return b""
        piece, self._pieces[0] = self._pieces[0][:most], self._pieces[0][most:]
        if not self._pieces[0]:
            del self._pieces[0]
        return piece

    def send_nowait(self, data: bytes | memoryview) -> int:
        self.sent.append(bytes(data[: self._taken]))
        return min(self._taken, len(data))

    async def send_rest(self, data: memoryview) -> None:
        self.sent.append(bytes(data))

    def close(self) -> None:
        self._pieces = []


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut bytes at these places."""
    ends = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(ends)]


FRAMES = st.lists(st.binary(min_size=1, max_size=60), max_size=6)
PLACES = st.lists(st.integers(0, 500), max_size=12)


@given(FRAMES, PLACES, st.lists(st.integers(0, 2)), st.integers(1, 50))
def test_frames_pass_unchanged(frames: list[bytes], places: list[int], ways: list[int], taken: int) -> None:
    """Frames that are passed on, looked at before, or taken whole, come out in their order."""
    source = Pipe(cut(b"".join(map(framed, frames)), places))
    sink = Pipe([], taken=taken)

    async def move() -> None:
        reader, writer = FrameReader(source, MOST), FrameWriter(sink)
        for index, frame in enumerate(frames):
            assert await reader.begin() == len(frame)
            way = ways[index] if index < len(ways) else 0
            if way:
                assert await reader.look(7) == frame[:7]
            if way == 2:
                whole = await reader.whole()
                await writer.send(framed(whole))
            else:
                await writer.pass_on(reader)
        assert await reader.begin() is None

    trio.run(move)
    assert b"".join(sink.sent) == b"".join(map(framed, frames))


async def test_what_came_together_leaves_together() -> None:
    """Three frames of one read are one send, so that they are one packet."""
    frames = [b"a" * 10, b"b", b"c" * 100]
    sink = Pipe([])
    reader, writer = FrameReader(Pipe([b"".join(map(framed, frames))]), MOST), FrameWriter(sink)
    while await reader.begin() is not None:
        await writer.pass_on(reader)
    assert len(sink.sent) == 1


@pytest.mark.parametrize("size", [0, -1, MOST + 1, 2**31 - 1])
async def test_a_size_out_of_range(size: int) -> None:
    """A frame that is too large is refused by its size, before its bytes are read."""
    reader = FrameReader(Pipe([struct.pack(">i", size)]), MOST)
    with pytest.raises(InvalidFrameSize, match=f"a frame of {size} bytes is announced"):
        await reader.begin()


@pytest.mark.parametrize("data", [b"\0", b"\0\0\0\5", b"\0\0\0\5abcd"])
async def test_an_end_within_a_frame(data: bytes) -> None:
    """A stream that ends within a frame is a broken connection, and not the end of its requests."""
    reader, writer = FrameReader(Pipe([data]), MOST), FrameWriter(Pipe([]))

    async def move() -> None:
        await reader.begin()
        await writer.pass_on(reader)

    with pytest.raises(Disconnected, match="within a frame"):
        await move()


async def test_a_frame_that_is_too_long_to_be_held() -> None:
    """A frame that may pass in pieces is not read as a whole if it is announced to be very long."""
    pipe = Pipe([struct.pack(">i", MOST_WHOLE_BYTES + 1), b"x"])
    reader = FrameReader(pipe, 2**31 - 1)
    assert await reader.begin() == MOST_WHOLE_BYTES + 1
    with pytest.raises(InvalidFrameSize, match="134217728 are allowed"):
        await reader.whole()
