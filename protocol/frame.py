"""Cuts a stream of bytes into frames. A frame is a size of four bytes and as many bytes after it.

A size outside 1..max is refused before memory is reserved for the frame. Each byte is copied a
bounded number of times, whether the stream comes as many frames in one read or as one frame byte by
byte. On a connection that many requests share, a frame that is too large is skipped instead of
refused, and only its first bytes, which identify the request, come out.
"""

import struct

from .errors import InvalidFrameSize
from .other_protocols import explained, protocol_of

_SIZE = struct.Struct(">i")
HEAD_BYTES = 4
"""How many bytes of a skipped frame come out: the correlation id of a response."""
MOST_TIMES_TOO_LARGE = 8
"""A size above the limit times this is not a frame's; the stream is not Kafka's protocol."""


class FrameBuffer:
    """Cuts a stream into frames: `feed` takes bytes, and `next_frame` returns a frame, or None when
    more bytes are needed.
    """

    def __init__(self, max_bytes: int, *, skips_too_large: bool = False) -> None:
        """Begin a stream. With `skips_too_large`, a frame that is too large is skipped, and only
        its first HEAD_BYTES come out.
        """
        self.max_bytes = max_bytes
        """Kafka: socket.request.max.bytes."""
        self._skips_too_large = skips_too_large
        self._is_known = False  # that the stream is Kafka's, by its first frame
        self._left_over = 0  # bytes of a skipped frame that are yet to come
        self._whole = b""  # the bytes of one read; those from _offset on are not used yet
        self._offset = 0
        self._torn = bytearray()  # the beginning of a frame whose end has not come
        self.needed = 0
        """The length of the incomplete frame that `next_frame` waits for, its size included; 0 if
        there is none.
        """

    @property
    def buffered_bytes(self) -> int:
        """How many bytes are kept; 0 between frames."""
        return len(self._whole) - self._offset + len(self._torn)

    def feed(self, data: bytes) -> None:
        if self._left_over:
            passed = min(self._left_over, len(data))
            self._left_over -= passed
            data = data[passed:]
        if self._offset < len(self._whole):  # frames are left
            self._tear(0)
        if self._torn:
            self._torn += data
        else:
            self._whole, self._offset = data, 0

    def forget(self) -> None:
        """Free the bytes that are kept, at the end of the stream."""
        self._whole, self._offset = b"", 0
        self._torn = bytearray()

    def next_frame(self) -> bytes | None:
        """Return the next complete frame without its size, or None if more bytes are needed.

        Raises:
            InvalidFrameSize: the size is not in 1..max_bytes, or the stream is of another protocol.
                It cannot be used any more.
        """
        if self._torn:
            if len(self._torn) < self.needed:
                return None
            self._whole, self._offset = bytes(self._torn), 0
            self._torn.clear()
            self.needed = 0
        left = len(self._whole) - self._offset
        if left >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._whole, self._offset)
            if not self._is_known:
                self._recognize()
            if not 0 < size <= self.max_bytes:
                return self._too_large(size, left)
            start = self._offset + _SIZE.size
            if left >= _SIZE.size + size:
                self._offset = start + size
                return self._whole[start : self._offset]
            self._tear(_SIZE.size + size)
        elif left:
            self._tear(_SIZE.size)
        else:  # so that a large frame is freed before the next one comes
            self._whole, self._offset = b"", 0
        return None

    def _recognize(self) -> None:
        other = protocol_of(self._whole[self._offset : self._offset + _SIZE.size])
        if other is not None:
            raise InvalidFrameSize(explained(other))
        self._is_known = True

    def _too_large(self, size: int, left: int) -> bytes | None:
        is_frame = 0 < size <= MOST_TIMES_TOO_LARGE * self.max_bytes
        if not is_frame or not self._skips_too_large:
            raise InvalidFrameSize(f"a frame of {size} bytes is announced, 1 to {self.max_bytes} are allowed")
        if left < _SIZE.size + HEAD_BYTES:
            self._tear(_SIZE.size + HEAD_BYTES)
            return None
        start = self._offset + _SIZE.size
        here = min(size, left - _SIZE.size)
        self._offset = start + here
        self._left_over = size - here
        return self._whole[start : start + HEAD_BYTES]

    def _tear(self, needed: int) -> None:
        self._torn += self._whole[self._offset :]
        self._whole, self._offset = b"", 0
        self.needed = needed
