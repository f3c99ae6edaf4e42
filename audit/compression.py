"""The text of audit files, plain or compressed by gzip or Zstandard.

Rule: a file that is cut or broken raises one of `BROKEN`, whatever the library calls it, after
everything was returned that can be read. Memory is bounded whatever the file holds. The library for
Zstandard is loaded with the first such file and not before.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal, Protocol

from .files import GZIP, ZSTANDARD, is_compressed

GZIP_BEGINS = b"\x1f"
CHUNK_BYTES = 4 << 20
"""How much of a file is read at once: a column of many lines costs little more than one of few."""
COMPRESSED_CHUNK_BYTES = 1024
"""How much of a compressed file is read at once. A file that is made to burst turns this into some
40 MiB at most.
"""
MAX_WINDOW_BYTES = 1 << 27
"""The largest window of Zstandard that is accepted; the `zstd` command has the same default."""


class CutFileError(Exception):
    """A compressed file ends before its content does."""


class BrokenFileError(Exception):
    """A file was changed, or was not compressed in the way that its name says."""


CUT = (CutFileError, EOFError)
BROKEN = (*CUT, BrokenFileError, gzip.BadGzipFile, zlib.error)
"""The exceptions besides OSError that reading a file may raise."""


class Openable(Protocol):
    """A file, wherever it lies: a path, or what has a name and is opened as a path is."""

    @property
    def name(self) -> str: ...

    def open(self, mode: Literal["rb"], /) -> io.BufferedReader: ...


@contextmanager
def opened(file: Openable, offset: int = 0) -> Iterator[io.BufferedIOBase]:
    """Open an audit file for its uncompressed text, from byte `offset` of the text on. Raises
    OSError, and one of BROKEN; so does reading it.
    """
    with _stream(file) as stream:
        if is_compressed(file.name):
            for _ in chunks(stream, offset):
                pass
        else:
            stream.seek(offset)
        yield stream


def _stream(file: Openable) -> io.BufferedIOBase:
    if file.name.endswith(ZSTANDARD):
        return io.BufferedReader(_Zstandard(file.open("rb")))
    if file.name.endswith(GZIP):
        return _Gzip(file.open("rb"))
    return file.open("rb")


def chunks(stream: io.BufferedIOBase, count: int | None = None) -> Iterator[bytes]:
    """Yield the next `count` bytes of a stream, or all, in chunks of at most CHUNK_BYTES. What was
    read before a failure is yielded before it is raised.
    """
    while count is None or count > 0:
        chunk, failure = _chunk(stream, CHUNK_BYTES if count is None else min(CHUNK_BYTES, count))
        if chunk:
            yield chunk
        if failure is not None:
            raise failure
        if not chunk:
            return
        count = None if count is None else count - len(chunk)


def _chunk(stream: io.BufferedIOBase, size: int) -> tuple[bytes, Exception | None]:
    """Read `size` bytes, or fewer if the stream ends or fails before."""
    parts: list[bytes] = []
    failure: Exception | None = None
    try:
        while size > 0 and (part := stream.read1(size)):
            parts.append(part)
            size -= len(part)
    except (*BROKEN, OSError) as error:
        failure = error
    return (parts[0] if len(parts) == 1 else b"".join(parts)), failure


class _Gzip(gzip.GzipFile):
    """Reads gzip. A file without a byte counts as whole for Python's own class, and a file with a
    single byte as broken; here both are cut.
    """

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file
        with ExitStack() as on_failure:
            on_failure.callback(file.close)
            if file.read(2) in {b"", GZIP_BEGINS}:
                raise CutFileError("it ends within its header")
            file.seek(0)
            super().__init__(fileobj=file, mode="rb")
            on_failure.pop_all()

    def close(self) -> None:
        super().close()
        self._file.close()


class _Zstandard(io.RawIOBase):
    """Reads Zstandard frames one after the other, and raises CutFileError if the last one is cut,
    which the library alone would not report.
    """

    def __init__(self, file: io.BufferedReader) -> None:
        import zstandard

        self._error = zstandard.ZstdError
        self._library = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
        self._file = file
        self._frame: Any = self._library.decompressobj()
        """The frame that is being read; None between two frames."""
        self._compressed = b""
        self._text = memoryview(b"")

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: Any, /) -> int:
        room = memoryview(buffer)
        while not self._text:
            if not self._compressed:
                self._compressed = self._file.read(COMPRESSED_CHUNK_BYTES)
            if not self._compressed:
                if self._frame is not None:
                    raise CutFileError("it ends in the middle")
                return 0
            self._decompress()
        count = min(len(room), len(self._text))
        room[:count], self._text = self._text[:count], self._text[count:]
        return count

    def _decompress(self) -> None:
        self._frame = self._frame or self._library.decompressobj()
        try:
            self._text = memoryview(self._frame.decompress(self._compressed))
        except self._error as error:
            raise BrokenFileError(str(error)) from None
        self._compressed = b""
        if self._frame.eof:
            self._compressed, self._frame = self._frame.unused_data, None
