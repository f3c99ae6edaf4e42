"""The lines of a part of a file.

Rule: memory is bounded, whatever the file holds: of a line that is longer than an event can be,
only the beginning is kept.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ...audit.event import MAX_LINE_BYTES
from .files import COMPRESSIONS, TO_THE_END, Read, path_of

CHUNK_BYTES = 1 << 20
KEPT_BYTES = 4096
"""Of a line that is too long."""


class Block(NamedTuple):
    """Consecutive lines of a file, without their ends."""

    first: int
    """How many lines of the read come before."""
    lines: list[bytes]
    too_long: bool = False
    """It is one line, and only its beginning."""


class Reader:
    """Reads a part of a file: iterate over `blocks`, after which it tells how far it came."""

    def __init__(self, read: Read) -> None:
        self.read = read
        self.path = path_of(read.file)
        self.consumed = read.begin
        """Up to the end of the last line."""
        self.rest = 0
        """Bytes after it."""
        self.lines = 0
        self.failure: str | None = None
        """Why the file cannot be read, now."""
        self.broken: str | None = None
        """Why it cannot be read to its end, and never will be."""

    def blocks(self) -> Iterator[Block]:
        carried = bytearray()
        skipped = 0
        for chunk in self._chunks():
            head, newline, tail = chunk.rpartition(b"\n")
            if not newline:
                carried += chunk
                if skipped or len(carried) > MAX_LINE_BYTES:
                    skipped += len(carried) - KEPT_BYTES
                    del carried[KEPT_BYTES:]
                continue
            if skipped:
                rest, _, head = (head + newline).partition(b"\n")
                yield self._block([bytes(carried)], len(carried) + skipped + len(rest) + 1, too_long=True)
                carried.clear()
                skipped = 0
                if not head:
                    carried += tail
                    continue
                head = head[:-1]
            whole = bytes(carried) + head
            yield self._block(whole.split(b"\n"), len(whole) + 1)
            carried = bytearray(tail)
        self.rest = len(carried) + skipped

    def _block(self, lines: list[bytes], size: int, *, too_long: bool = False) -> Block:
        block = Block(self.lines, lines, too_long)
        self.lines += len(lines)
        self.consumed += size
        return block

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
            if error.errno is None and self.path.suffix in COMPRESSIONS:
                self.broken = f"the file is cut, or broken: {error}"
            else:
                self.failure = error.strerror or str(error)

    def lines_before(self) -> int:
        """Count the lines before the part, which reads the file: ask only where a
        number is told.
        """
        number = 0
        offset = self.read.begin
        with opened(self.path) as stream:
            while offset > 0 and (chunk := stream.read(min(CHUNK_BYTES, offset))):
                number += chunk.count(b"\n")
                offset -= len(chunk)
        return number


def opened(path: Path) -> Any:
    """Open a file as a stream of Arrow's, uncompressed."""
    return pa.input_stream(str(path), compression=COMPRESSIONS.get(path.suffix))


def _skip(stream: Any, path: Path, count: int) -> None:
    if path.suffix not in COMPRESSIONS:
        stream.seek(count)
        return
    while count > 0 and (skipped := len(stream.read(min(CHUNK_BYTES, count)))):
        count -= skipped
