"""Compressed audit files: gzip and Zstandard, by the ending of their names.

Rule: what is cut or broken is told as `BROKEN`, whatever the library calls it, after all that could
be read; and it costs bounded memory. The library for Zstandard is loaded with the first such file,
not before.
"""

import gzip
import io
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from zstandard import ZstdDecompressionObj

GZIP, ZSTANDARD = ".gz", ".zst"
ENDINGS = (GZIP, ZSTANDARD)
GZIP_BEGINS = b"\x1f"
CHUNK_BYTES = 1024
"""Of what is compressed: a file made to burst gives some 40 MiB of it at most."""
MAX_WINDOW_BYTES = 1 << 27
"""As the `zstd` command reads it without being asked for more."""


class CutFileError(Exception):
    """A compressed file ends before its content does."""


class BrokenFileError(Exception):
    """A file is not of the compressed kind that its name says, or was changed."""


CUT = (CutFileError, EOFError)
BROKEN = (*CUT, BrokenFileError, gzip.BadGzipFile, zlib.error)
"""What reading a file may raise besides OSError."""


def is_compressed(file: Path) -> bool:
    return file.name.endswith(ENDINGS)


def preference(file: Path) -> tuple[bool, str]:
    """Return a sort key by which a file precedes its compressed copies: the first is read."""
    return is_compressed(file), file.name


def plain_name(file: Path) -> str:
    """Return the name that an audit file had before it was compressed."""
    name = file.name
    for ending in ENDINGS:
        name = name.removesuffix(ending)
    return name


def opened(file: Path) -> IO[bytes]:
    """Open an audit file for its text, compressed or not. Raises OSError; reading it raises one of
    BROKEN.
    """
    if file.name.endswith(ZSTANDARD):
        return cast("IO[bytes]", io.BufferedReader(_Zstandard(file), io.DEFAULT_BUFFER_SIZE))
    if file.name.endswith(GZIP):
        return cast("IO[bytes]", _Gzip(file, "rb"))
    return file.open("rb")


class _Gzip(gzip.GzipFile):
    """Reads gzip. No bytes at all are a whole file for Python's own class, and a single one is
    none; here both are files that were cut.
    """

    def __init__(self, file: Path, mode: str) -> None:
        with file.open("rb") as raw:
            if raw.read(2) in {b"", GZIP_BEGINS}:
                raise CutFileError("it ends in its beginning")
        super().__init__(file, mode)


class _Zstandard(io.RawIOBase):
    """Reads Zstandard frames one after the other; the library alone would not tell that the last
    one is cut.
    """

    def __init__(self, file: Path) -> None:
        import zstandard

        self._error = zstandard.ZstdError
        self._library = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
        self._file = file.open("rb")
        self._frame: ZstdDecompressionObj | None = self._library.decompressobj()
        """The one that is being read; None between two."""
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
                self._compressed = self._file.read(CHUNK_BYTES)
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
