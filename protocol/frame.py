"""Cuts a stream into frames: four bytes of size, then as many bytes.

Rule: a size outside 1..max is refused before anything is kept for it, and every byte is copied a
bounded number of times, however the stream was torn: many small frames in one read, or one frame
byte by byte. Where many share a stream, what is too large is passed over instead, and its beginning
tells whose it was.
"""

import struct

from .errors import InvalidFrameSize

_SIZE = struct.Struct(">i")
HEAD_BYTES = 4
"""Of an answer: its correlation id."""
MOST_TIMES_TOO_LARGE = 8
"""What is larger still is no frame, but something else that stands where a size should."""
_TLS = "TLS comes on a connection that has none: one end has a security protocol with SSL, the other one without"
_HTTP = "HTTP comes, and not Kafka's protocol: one end is not what the other takes it for"
_OTHER_PROTOCOLS = {
    b"\x15\x03": _TLS,  # an alert
    b"\x16\x03": _TLS,  # a handshake
    **dict.fromkeys((b"HT", b"GE", b"PO", b"HE", b"PU", b"OP", b"PR"), _HTTP),  # answers, methods
}
"""What the first bytes of another protocol mean where a size is expected. As sizes they are larger
than any limit.
"""


class FrameBuffer:
    """Cuts a stream into frames: bytes in by `feed`, frames out by `next_frame` until it gives
    None.
    """

    def __init__(self, max_bytes: int, *, passes_over: bool = False) -> None:
        """Begin a stream. With `passes_over` the first HEAD_BYTES of a frame that is too large come
        out, and the stream goes on behind it.
        """
        self.max_bytes = max_bytes
        """Kafka: socket.request.max.bytes."""
        self._passes_over = passes_over
        self._left_over = 0  # bytes of a frame that is passed over, which have not come yet
        self._whole = b""  # what was read in one go and is cut up from _offset on
        self._offset = 0
        self._torn = bytearray()  # the start of a frame whose rest has not come
        self.needed = 0
        """How many bytes of the frame that is torn, its size included, `next_frame` is waiting for;
        0 if none is.
        """

    @property
    def buffered_bytes(self) -> int:
        """How many bytes are kept at the moment: 0 between frames."""
        return len(self._whole) - self._offset + len(self._torn)

    def feed(self, data: bytes) -> None:
        """Take bytes that were read."""
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
        """Drop the bytes that are kept: nobody will ask for them any more."""
        self._whole, self._offset = b"", 0
        self._torn = bytearray()

    def next_frame(self) -> bytes | None:
        """The next whole frame without its size, or None until more is fed.

        Raises:
            InvalidFrameSize: the size is not in 1..max_bytes; nothing sensible can come on this
            stream any more.
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
            if not 0 < size <= self.max_bytes:
                return self._too_large(size, left)
            start = self._offset + _SIZE.size
            if left >= _SIZE.size + size:
                self._offset = start + size
                return self._whole[start : self._offset]
            self._tear(_SIZE.size + size)
        elif left:
            self._tear(_SIZE.size)
        else:  # a large frame is not kept for as long as nothing comes behind it
            self._whole, self._offset = b"", 0
        return None

    def _too_large(self, size: int, left: int) -> bytes | None:
        other = _OTHER_PROTOCOLS.get(self._whole[self._offset : self._offset + 2])
        is_frame = 0 < size <= MOST_TIMES_TOO_LARGE * self.max_bytes
        if other or not is_frame or not self._passes_over:
            raise InvalidFrameSize(other or f"a frame of {size} bytes is announced, 1 to {self.max_bytes} are allowed")
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
