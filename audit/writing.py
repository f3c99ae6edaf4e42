"""The audit files of one node, as its thread for the audit log writes them.

Rule: a file holds whole lines only. Lines that could not be written to their end and made durable
are cut off the file and written again. If even that fails the file is left alone, and what
follows goes into a new one. Lines that nobody can find do not count as written: if somebody removes
the open file, that is a failure until everything that was in it is in the folder again.
"""

import contextlib
import errno
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from .files import SUFFIX, file_name

MODE = 0o640
"""The permissions of a new file. The operator chooses by the folder's group who may read it."""
MAX_CHUNK_BYTES = 1 << 20
LOOK_SECONDS = 1.0
"""The time between two checks of whether the open file is still there."""


class EncodedLine(msgspec.Struct, gc=False):
    epoch: int
    sequence: int
    since: float
    """When the event was decided, in seconds of the monotonic clock."""
    data: bytes


class AuditFiles:
    """The audit files of one node, at most one of them open. It is not thread-safe."""

    def __init__(
        self,
        folder: Path,
        *,
        cluster_id: str,
        node: int,
        max_bytes: int,
        max_seconds: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._folder = folder
        self._cluster_id = cluster_id
        self._node = node
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._clock = clock
        self._descriptor = -1
        self._path = folder
        """The path of the open file."""
        self._is_removed = False
        """Whether somebody removed the open file and its content is not in the folder again yet."""
        self._size = 0
        """The bytes of the open file that are whole lines and durable."""
        self._epoch = -1
        self._opened = 0.0
        self.syncs = 0
        """The number of fsyncs of lines."""

    @property
    def rotates_in(self) -> float | None:
        """Seconds until the open file is old enough to be closed; None if no file is open."""
        return None if self._descriptor < 0 else max(0.0, self._opened + self._max_seconds - self._clock())

    @property
    def looks_in(self) -> float | None:
        """Seconds until the open file must be looked at or rotated; None if no file is open."""
        rotates_in = self.rotates_in
        return None if rotates_in is None else min(rotates_in, LOOK_SECONDS)

    def look(self) -> bool:
        """Check that the open file is still there. Return whether it had been removed and was
        restored now. Raises OSError if it cannot be restored.
        """
        is_restored = self._is_removed
        if is_restored:
            self._restore()
        else:
            self._check(self._size)
        return is_restored

    def commit(self, lines: deque[EncodedLine]) -> None:
        """Write `lines` and make them durable. Durable lines are removed from `lines`. Raises
        OSError, with the other lines left in `lines`.
        """
        if self._is_removed:
            self._restore()
        while lines:
            self._make_room(lines[0])
            chunk = self._fitting(lines)
            data = b"".join(chunk)
            try:
                _write(self._descriptor, data)
                os.fsync(self._descriptor)
            except OSError:
                self._take_back()
                raise
            self._check(self._size + len(data))
            self.syncs += 1
            self._size += len(data)
            for _ in chunk:
                lines.popleft()

    def rotate_if_old(self) -> None:
        if self.rotates_in == 0.0:
            self.close()

    def close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor, self._is_removed = self._descriptor, -1, False
            os.close(descriptor)

    def _make_room(self, line: EncodedLine) -> None:
        is_full = self._size and self._size + len(line.data) > self._max_bytes
        if self._descriptor >= 0 and (is_full or line.epoch != self._epoch or self.rotates_in == 0.0):
            self._check(self._size)
            self.close()
        if self._descriptor < 0:
            self._open(line)

    def _open(self, line: EncodedLine) -> None:
        path = self._folder / file_name(self._cluster_id, line.epoch, line.sequence, self._node)
        self._descriptor, self._path = _created(path)
        self._size, self._epoch, self._opened = 0, line.epoch, self._clock()
        self._sync_folder()

    def _check(self, size: int) -> None:
        """Raise OSError if somebody has removed the open file, or cut it below `size`."""
        if self._descriptor < 0:
            return
        mine = os.fstat(self._descriptor)
        if mine.st_nlink == 0:
            self._is_removed = True
            raise OSError(errno.ENOENT, "the open file was removed", self._path)
        if mine.st_size < size:
            self.close()
            raise OSError(errno.EIO, "the open file was cut by somebody else", self._path)
        if not self._is_in_folder(mine):  # moved to where others find it
            self.close()

    def _is_in_folder(self, mine: os.stat_result) -> bool:
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)

    def _restore(self) -> None:
        """Write the content of the removed file, which is still open, to a new file."""
        descriptor, path = _created(self._path)
        try:
            position = 0
            while position < self._size:
                chunk = os.pread(self._descriptor, min(MAX_CHUNK_BYTES, self._size - position), position)
                if not chunk:
                    raise OSError(errno.EIO, "the removed file cannot be read", self._path)
                position += len(chunk)
                _write(descriptor, chunk)
            os.fsync(descriptor)
            self._sync_folder()
        except OSError:
            with contextlib.suppress(OSError):
                path.unlink()
            os.close(descriptor)
            raise
        os.close(self._descriptor)
        self._descriptor, self._path, self._is_removed = descriptor, path, False

    def _sync_folder(self) -> None:
        """Make the names of new files durable."""
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _fitting(self, lines: Sequence[EncodedLine]) -> list[bytes]:
        """Return the first lines that fit into the open file, at least one."""
        chunk: list[bytes] = []
        room, epoch = min(self._max_bytes - self._size, MAX_CHUNK_BYTES), self._epoch
        for line in lines:
            room -= len(line.data)
            if chunk and (room < 0 or line.epoch != epoch):
                break
            chunk.append(line.data)
        return chunk

    def _take_back(self) -> None:
        """Cut the file to its durable size: after a failed fsync the kernel may have forgotten the
        rest.
        """
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            with contextlib.suppress(OSError):
                self.close()


def _created(path: Path) -> tuple[int, Path]:
    """Create a file at `path`, or beside a file that is there, and return its descriptor and its
    path.
    """
    attempt, wanted = 0, path
    while True:
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            return os.open(wanted, flags, MODE), wanted
        except FileExistsError:  # one that had to be left alone
            attempt += 1
            wanted = path.with_name(f"{path.name.removesuffix(SUFFIX).partition('.')[0]}.{attempt}{SUFFIX}")


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
