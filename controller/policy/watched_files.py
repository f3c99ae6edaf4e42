"""Files that may change while a node runs: their contents, once they have come to rest.

Rule: whoever watches is given all files together, and only when they held the same at two looks in
a row: a file that is being written, a link that is being replaced and a set whose files change one
after the other are never seen half done. What counts is what the files hold, not when they were
touched; that a file cannot be read is a content like any other. Rules, and whatever else is read
again while a node runs, come this way.
"""

import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
import trio


class Content(msgspec.Struct, frozen=True):
    """The content of a file, or why it cannot be told."""

    path: Path
    data: bytes | None
    fault: str = ""
    """Why there is no data."""


Contents = tuple[Content, ...]


class WatchedFiles:
    """Watches the files of one purpose, in an order that stays."""

    def __init__(self, paths: Sequence[Path], *, max_bytes: int) -> None:
        """Watch these files. One byte more than `max_bytes` is read of each, so that its user can
        tell that it is too large.
        """
        self._paths = tuple(paths)
        self._max_bytes = max_bytes
        self._seen = b""
        self._given = b""

    def read(self) -> Contents:
        """Read what the files hold now, at the start, and count it as given. Blocks."""
        contents = self._read()
        self._given = self._seen = _digest(contents)
        return contents

    async def look(self) -> Contents | None:
        """Return what the files hold if it is the same as at the last look and was
        not given yet.
        """
        contents = await trio.to_thread.run_sync(self._read, abandon_on_cancel=True)  # they may lie on a network
        digest = _digest(contents)
        rests, self._seen = digest == self._seen, digest
        if not rests or digest == self._given:
            return None
        self._given = digest
        return contents

    async def follow(self, interval_seconds: float, use: Callable[[Contents], Awaitable[None]]) -> None:
        """Look again and again, for ever, and call `use` with what is new."""
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
    """Open a file without waiting for the writer that a FIFO in its place would want."""
    return os.open(path, flags | os.O_NONBLOCK)


def _digest(contents: Contents) -> bytes:
    digest = sha256()
    for content in contents:
        held = content.fault.encode() if content.data is None else content.data
        digest.update(b"%d %d %b" % (content.data is None, len(held), held))
    return digest.digest()
