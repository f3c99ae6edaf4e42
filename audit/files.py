"""The audit log's files: names that tell cluster, epoch, first sequence and node, so that they sort
in the order of what happened.

Rule: whole lines only. What could not be written to its end and made durable is taken back from the
file, and given again. Where even that fails the file is left alone, and what follows goes into a
new one. Nothing counts as written that nobody can find: an open file that somebody removes is a
failure, until all that was in it is in the folder again.
"""

import contextlib
import errno
import os
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

SUFFIX = ".ndjson"
MODE = 0o640
"""Who may read it is the operator's choice, by the folder's group."""
MAX_CHUNK_BYTES = 1 << 20
LOOK_SECONDS = 1.0
"""Between two looks whether the open file is still there."""

NAME = re.compile(
    r"audit-(?P<cluster>.{22})-(?P<epoch>\d{10})-(?P<sequence>\d{12})-(?P<node>\d++)(?:\.(?P<again>\d++))?\.ndjson"
)


class Line(msgspec.Struct, gc=False):
    """One encoded event of the audit log."""

    epoch: int
    sequence: int
    since: float
    """When it was decided, by the monotonic clock."""
    data: bytes


def file_name(cluster_id: str, epoch: int, sequence: int, node: int) -> str:
    return f"audit-{cluster_id}-{epoch:010}-{sequence:012}-{node}{SUFFIX}"


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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._cluster_id = cluster_id
        self._node = node
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._clock = clock
        self._descriptor = -1
        self._path = folder
        """Where the open file lies."""
        self._is_removed = False
        """Somebody has taken it out of the folder, and what was in it is not there again."""
        self._size = 0
        """What is in the file, whole and durable."""
        self._epoch = -1
        self._opened = 0.0
        self.syncs = 0
        """How often lines were forced to the disk."""

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
        """Check that the open file is still there. True if it had been removed and its content is
        there again; OSError if that fails.
        """
        is_restored = self._is_removed
        if is_restored:
            self._restore()
        else:
            self._check(self._size)
        return is_restored

    def commit(self, lines: deque[Line]) -> None:
        """Write `lines` and make them durable; each leaves `lines` when it is. Raises OSError with
        the rest left in `lines`.
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

    def _make_room(self, line: Line) -> None:
        is_full = self._size and self._size + len(line.data) > self._max_bytes
        if self._descriptor >= 0 and (is_full or line.epoch != self._epoch or self.rotates_in == 0.0):
            self._check(self._size)
            self.close()
        if self._descriptor < 0:
            self._open(line)

    def _open(self, line: Line) -> None:
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

    def _fitting(self, lines: Sequence[Line]) -> list[bytes]:
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
