"""Reads frames from a transport piece by piece, so that a frame of any size costs the memory of one
piece.

Rule: a frame is begun, its head may be looked at, and then it is taken, whole or in pieces, before
the next one is begun.
"""

import struct
from collections.abc import Awaitable, Callable

from ..network.transport import Disconnected, Transport
from ..protocol.errors import InvalidFrameSize
from ..protocol.other_protocols import explained, protocol_of

PIECE_BYTES = 256 * 1024
"""The largest piece of a frame, and so the most that is read at once."""
MOST_WHOLE_BYTES = 128 * 1024 * 1024
"""The longest frame that is taken as a whole: Metadata of a million partitions has less."""
_SIZE = struct.Struct(">i")


SIZE_BYTES = _SIZE.size


def size_of(frame: bytes) -> bytes:
    """Return the bytes that stand in front of a frame."""
    return _SIZE.pack(len(frame))


def _nobody() -> None:
    pass


class FrameReader:
    """The frames that one end sends."""

    __slots__ = ("_data", "_is_known", "_max_bytes", "_offset", "_on_read", "_transport", "left")

    def __init__(self, transport: Transport, max_bytes: int, on_read: Callable[[], None] = _nobody) -> None:
        """Read from a transport. A frame of more than `max_bytes` ends the stream. `on_read` is
        called when some bytes have come.
        """
        self.left = 0
        """How many bytes of the current frame were not taken yet, its size of four bytes
        included.
        """
        self._transport = transport
        self._max_bytes = max_bytes
        self._on_read = on_read
        self._data = b""
        self._offset = 0
        self._is_known = False
        """Whether the stream is Kafka's, by its first frame."""

    async def begin(self) -> int | None:
        """Begin the next frame, and return its size in bytes; None at the end of the stream.

        Raises:
            InvalidFrameSize: the size is not in 1..max_bytes, or the stream is of another protocol.
                It cannot be used any more.
            Disconnected: the stream ended within a frame.
        """
        assert self.left == 0, "the frame before was not taken"
        if not await self._read(_SIZE.size, may_end=True):
            return None
        if not self._is_known:
            self._recognize()
        size = self._next_size()
        if not 0 < size <= self._max_bytes:
            raise InvalidFrameSize(f"a frame of {size} bytes is announced, 1 to {self._max_bytes} are allowed")
        self.left = _SIZE.size + size
        return size

    @property
    def has_whole_next(self) -> bool:
        """Whether all bytes of the next frame were read already."""
        have = len(self._data) - self._offset
        return have >= _SIZE.size and have >= _SIZE.size + self._next_size()

    @property
    def buffered(self) -> tuple[bytes, int, int]:
        """What was read of the frame and not taken: bytes, where it begins in them, and where it
        ends.
        """
        return self._data, self._offset, min(self._offset + self.left, len(self._data))

    async def look(self, count: int) -> bytes:
        """Return the first `count` bytes of the frame after its size, or all if it has fewer. No
        piece of it was taken yet. Raises Disconnected.
        """
        end = min(_SIZE.size + count, self.left)
        if len(self._data) - self._offset < end:
            await self._read(end)
        return self._data[self._offset + _SIZE.size : self._offset + end]

    async def piece(self, most: int = PIECE_BYTES) -> memoryview:
        """Take the next piece of the frame, which has `most` bytes at most; the first one begins
        with the size. Raises Disconnected.
        """
        if self._offset == len(self._data):
            await self._read(1)
        end = min(self._offset + min(self.left, most), len(self._data))
        taken = memoryview(self._data)[self._offset : end]
        self._offset = end
        self.left -= len(taken)
        return taken

    async def peek(self, count: int) -> bytes:
        """Return the next `count` bytes of the frame, or all that it has left, without taking
        them. Raises Disconnected.
        """
        count = min(count, self.left)
        await self._read(count)
        return self._data[self._offset : self._offset + count]

    async def drop(self) -> None:
        """Take the whole frame, and keep nothing of it. Raises Disconnected."""
        while self.left:
            await self.piece()

    async def rest(self) -> bytes:
        """Take all that is left of the frame. Raises Disconnected."""
        taken = await self.peek(self.left)
        self._offset += self.left
        self.left = 0
        return taken

    async def whole(self) -> bytes:
        """Take the whole frame, and return it without its size. Raises InvalidFrameSize,
        Disconnected.
        """
        if self.left > MOST_WHOLE_BYTES:
            text = f"a frame of {self.left} bytes is announced, {MOST_WHOLE_BYTES} are allowed for one that is read as a whole"
            raise InvalidFrameSize(text)
        return (await self.rest())[_SIZE.size :]

    def _recognize(self) -> None:
        other = protocol_of(self._data[self._offset : self._offset + _SIZE.size])
        if other is not None:
            raise InvalidFrameSize(explained(other))
        self._is_known = True

    def _next_size(self) -> int:
        size: int = _SIZE.unpack_from(self._data, self._offset)[0]
        return size

    async def _read(self, count: int, *, may_end: bool = False) -> bool:
        """Read until `count` bytes are there. Return False if the stream ends before the first of
        them and `may_end`.
        """
        have = len(self._data) - self._offset
        if have >= count:
            return True
        parts = [self._data[self._offset :]] if have else []
        self._data, self._offset = b"", 0  # a connection on which nothing comes keeps no memory
        while have < count:
            data = await self._transport.receive(PIECE_BYTES)
            if not data:
                if may_end and not have:
                    return False
                raise Disconnected("the connection was closed within a frame")
            self._on_read()
            parts.append(data)
            have += len(data)
        self._data = parts[0] if len(parts) == 1 else b"".join(parts)
        return True


class FrameWriter:
    """Sends the pieces of frames, those of several frames at once if they were read at once."""

    __slots__ = ("_kept_bytes", "_on_taken", "_pieces", "_transport", "is_blocked")

    def __init__(self, transport: Transport, on_taken: Callable[[], None] = _nobody) -> None:
        """Send to a transport. `on_taken` is called when an end that was waited for has taken a
        piece.
        """
        self.is_blocked = False
        """Whether the other end has not taken yet what there is for it."""
        self._transport = transport
        self._on_taken = on_taken
        self._pieces: list[bytes | memoryview] = []
        self._kept_bytes = 0

    def forget(self) -> None:
        """Drop what was not sent, and who is called; the connection has ended."""
        self._pieces.clear()
        self._on_taken = _nobody

    async def pass_on(self, frames: FrameReader) -> None:
        """Send the frame that was begun, or keep it if the next one can be sent with it: `flush`
        comes before anything else is awaited. Raises Disconnected.
        """
        while True:
            self._pieces.append(await frames.piece())
            if frames.left or not frames.has_whole_next:
                await self.flush()
            if not frames.left:
                return

    async def keep(self, piece: bytes | memoryview) -> None:
        """Keep a piece, to be sent with those after it, unless there are many. Raises
        Disconnected.
        """
        self._pieces.append(piece)
        self._kept_bytes += len(piece)
        if self._kept_bytes >= PIECE_BYTES:
            await self.flush()

    async def send(self, frame: bytes) -> None:
        """Send what was kept, and bytes that are made already. Raises Disconnected."""
        self._pieces.append(frame)
        await self.flush()

    async def flush(self) -> None:
        """Send what was kept, waiting for the kernel where it does not take all. Raises
        Disconnected.
        """
        if not self._pieces:
            return
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._kept_bytes = 0
        sent = self._transport.send_nowait(data)
        if sent < len(data):
            self.is_blocked = True
            await self._transport.send_rest(memoryview(data)[sent:])
            self.is_blocked = False
            self._on_taken()


Move = Callable[[FrameReader, FrameWriter], Awaitable[None]]
"""Moves a response that was begun to the client, in whatever form the client gets it. Raises
MalformedMessage, Disconnected.
"""
