"""The lines of a part of a file.

Rule: memory is bounded, whatever the file holds: of a line that is longer than an event can be, only the beginning is kept.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from .files import COMPRESSIONS, TO_THE_END, Read, path_of

CHUNK_BYTES = 1 << 22
MAX_LINE_BYTES = 16 << 20
KEPT_BYTES = 1 << 12
"""Of a line that is too long."""


class Block(NamedTuple):
    """Lines in a row, without their ends."""

    offset: int
    """Of the first one, in bytes, uncompressed."""
    lines: list[bytes]
    too_long: bool = False
    """It is one line, and only its beginning."""


class Reader:
    """Iterate over `blocks`; afterwards `consumed` tells how far it came, and `failure` why not further."""

    def __init__(self, read: Read) -> None:
        self.read = read
        self.path = path_of(read.file)
        self.consumed = read.begin
        self.rest = 0
        """Bytes after the last line's end."""
        self.failure: str | None = None
        """Why it could not be read at all."""
        self.broken: str | None = None
        """Why it could not be read to its end, and never will."""

    def blocks(self) -> Iterator[Block]:
        carried = bytearray()
        skipped = 0
        for chunk in self._chunks():
            head, newline, tail = chunk.rpartition(b"\n")
            if not newline:
                carried += chunk
                if len(carried) > MAX_LINE_BYTES:
                    skipped += len(carried) - KEPT_BYTES
                    del carried[KEPT_BYTES:]
                continue
            if skipped:
                rest, _, head = (head + b"\n").partition(b"\n")
                yield Block(self.consumed, [bytes(carried)], too_long=True)
                self.consumed += len(carried) + skipped + len(rest) + 1
                carried.clear()
                skipped = 0
                head = head[:-1] if head else b""
                if not head:
                    carried += tail
                    continue
            lines = (bytes(carried) + head).split(b"\n")
            yield Block(self.consumed, lines)
            self.consumed += len(carried) + len(head) + 1
            carried = bytearray(tail)
        self.rest = len(carried) + skipped

    def _chunks(self) -> Iterator[bytes]:
        left = self.read.end - self.read.begin if self.read.end != TO_THE_END else None
        try:
            with ExitStack() as stack:
                stream = stack.enter_context(opened(self.path))
                _skip(stream, self.path, self.read.begin)
                while left is None or left > 0:
                    chunk = stream.read(CHUNK_BYTES if left is None else min(CHUNK_BYTES, left))
                    if not chunk:
                        return
                    if left is not None:
                        left -= len(chunk)
                    yield chunk
        except OSError as error:
            if self.path.suffix in COMPRESSIONS and error.errno is None:
                self.broken = f"the file is cut, or broken: {error}"
            else:
                self.failure = error.strerror or str(error)


def opened(path: Path) -> Any:
    """Arrow's stream of its uncompressed bytes."""
    return pa.input_stream(str(path), compression=COMPRESSIONS.get(path.suffix))


def _skip(stream: Any, path: Path, count: int) -> None:
    if path.suffix not in COMPRESSIONS:
        stream.seek(count)
        return
    while count > 0:
        skipped = len(stream.read(min(CHUNK_BYTES, count)))
        if not skipped:
            return
        count -= skipped


def line_number(path: Path, offset: int) -> int:
    """Of the line that begins at this byte, from 1."""
    number = 1
    with opened(path) as stream:
        while offset > 0:
            chunk = stream.read(min(CHUNK_BYTES, offset))
            if not chunk:
                break
            number += chunk.count(b"\n")
            offset -= len(chunk)
    return number
