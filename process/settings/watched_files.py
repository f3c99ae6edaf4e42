"""Files that may change while a node runs, and their contents once they have stopped changing.

Rule: contents are given for all files together, and only if they were the same at two looks in a
row, so that a file that is being written, a link that is being replaced, or a set whose files
change one after the other is never seen half done. Only contents count, not times of modification;
that a file cannot be read counts as a content, too.
"""

import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
import trio

LOOK_SECONDS = 1.0
"""How often files are looked at. Two equal looks make a change."""


class Content(msgspec.Struct, frozen=True):
    """The content of a file, or why it cannot be read."""

    path: Path
    data: bytes | None
    fault: str = ""
    """Why there is no data; empty if there is."""


Contents = tuple[Content, ...]


class WatchedFiles:
    """Watches files, and gives their contents in the order of the given paths."""

    def __init__(self, paths: Sequence[Path], *, max_bytes: int) -> None:
        """Watch these files. At most `max_bytes` and one byte of each are read, which shows that a
        file is too large.
        """
        self._paths = tuple(paths)
        self._max_bytes = max_bytes
        self._seen = b""
        self._given = b""

    def read(self) -> Contents:
        """Read the files for the start, and count their contents as given. Blocks."""
        contents = self._read()
        self._given = self._seen = _digest(contents)
        return contents

    async def look(self) -> Contents | None:
        """Return the contents of the files if they are the same as at the last look and were not
        given yet.
        """
        contents = await trio.to_thread.run_sync(self._read, abandon_on_cancel=True)  # they may lie on a network
        digest = _digest(contents)
        rests, self._seen = digest == self._seen, digest
        if not rests or digest == self._given:
            return None
        self._given = digest
        return contents

    async def follow(self, interval_seconds: float, use: Callable[[Contents], Awaitable[None]]) -> None:
        """Look at the files in intervals, for ever, and call `use` with new contents."""
        while True:
            await trio.sleep(interval_seconds)
            if (contents := await self.look()) is not None:
                await use(contents)

    def _read(self) -> Contents:
        return tuple(_content(path, self._max_bytes) for path in self._paths)


def _content(path: Path, max_bytes: int) -> Content:
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return Content(path, file.read(max_bytes + 1))
            return Content(path, None, "it is not a regular file")
    except OSError as error:
        return Content(path, None, error.strerror or str(error))


def _without_waiting(path: str, flags: int) -> int:
    """Open a file for reading. A FIFO in its place would otherwise wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _digest(contents: Contents) -> bytes:
    digest = sha256()
    for content in contents:
        held = content.fault.encode() if content.data is None else content.data
        digest.update(b"%d %d %b" % (content.data is None, len(held), held))
    return digest.digest()
