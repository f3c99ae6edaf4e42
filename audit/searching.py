"""A search for events, newest first, in files that may be many, large, compressed or broken.

Rule: a search is bounded in the bytes that it reads, the time that it takes and the events that it
holds, whatever lies in the folder; it ends with a cursor from which another search goes on. Lines
are looked at as bytes, and only those that contain a needle are decoded. What cannot be read is
reported and never raised. Searching blocks on files, so it belongs into a thread.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BufferedIOBase
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

from .compression import BROKEN, opened
from .event import MAX_LINE_BYTES, AuditEvent, UnreadableLineError
from .files import NameParts, audit_files, is_compressed, name_parts, plain_name
from .lines import decode_line

BLOCK_BYTES = 1 << 20
MAX_PROBLEMS = 5
END_OF_FILE = 1 << 50
"""An offset past the end of every audit file."""

T = TypeVar("T")


class SearchCursor(NamedTuple):
    """The place from which a search goes on: before this byte of this file, and in older files."""

    file: str
    """The name of the file without the ending of a compression, since it may be compressed
    meanwhile.
    """
    offset: int
    """The offset in the uncompressed text, in bytes."""

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"


def parse_cursor(text: str) -> SearchCursor | None:
    file, _, offset = text.rpartition(":")
    valid = (
        name_parts(file) is not None and offset.isascii() and offset.isdigit() and len(offset) <= len(str(END_OF_FILE))
    )
    return SearchCursor(file, int(offset)) if valid else None


class SearchQuery(NamedTuple, Generic[T]):
    cluster_id: str
    needles: Sequence[bytes]
    """Texts of which a line must contain one, or it is not decoded."""
    wanted: Callable[[AuditEvent], T | None]
    """Returns the row of an event, or None if the event is not wanted."""


class SearchLimits(NamedTuple):
    rows: int
    max_bytes: int = 256 << 20
    max_seconds: float = 2.0
    block_bytes: int = BLOCK_BYTES
    max_line_bytes: int = MAX_LINE_BYTES


class SearchResult(msgspec.Struct, Generic[T]):
    """The rows that a search found, newest first."""

    rows: list[T]
    next: SearchCursor | None
    """Where the next search goes on; None if everything was searched."""
    problems: list[str]


class _Exhausted(Exception):  # noqa: N818 - it is planned for
    """The search reached one of its limits."""


class _Line(NamedTuple):
    offset: int
    data: bytes


def search(
    folders: Iterable[Path],
    question: SearchQuery[T],
    limits: SearchLimits,
    start: SearchCursor | None = None,
    check_cancelled: Callable[[], None] = lambda: None,
) -> SearchResult[T]:
    """Search the folders from `start`, or from the newest event, backwards in time."""
    return _Search(question, limits, check_cancelled).run(folders, start)


class _Search(Generic[T]):
    def __init__(self, question: SearchQuery[T], limits: SearchLimits, check_cancelled: Callable[[], None]) -> None:
        self._question = question
        self._limits = limits
        self._check_cancelled = check_cancelled
        self._bytes_left = limits.max_bytes
        self._deadline = float("inf")
        """When the search ends. It is set after the first block, so that a search gets on even if
        the disk is slow.
        """
        self._rows: list[tuple[SearchCursor, T]] = []
        self._problems: list[str] = []
        self._more_problems = 0

    def run(self, folders: Iterable[Path], start: SearchCursor | None) -> SearchResult[T]:
        for path, end in self._files(folders, start):
            went_on = SearchCursor(plain_name(path.name), end)
            is_first = self._bytes_left == self._limits.max_bytes
            try:
                for offset, row in self._matches(path, went_on.offset):
                    went_on = SearchCursor(went_on.file, offset)
                    self._rows.append((went_on, row))
                    if len(self._rows) > self._limits.rows:
                        return self._found(self._rows[-2][0])
            except _Exhausted as exhausted:
                (reached,) = exhausted.args
                if reached is not None:
                    return self._found(SearchCursor(went_on.file, reached))
                if not is_first:
                    return self._found(went_on)
                self._complain(f"{path.name} is too large to be searched while it is compressed")
                return self._found(SearchCursor(went_on.file, 0))
            except OSError as error:
                self._complain(f"{path.name} cannot be read: {error.strerror}")
        return self._found(None)

    def _found(self, following: SearchCursor | None) -> SearchResult[T]:
        if self._more_problems:
            self._problems.append(f"... and {self._more_problems} more")
        return SearchResult([row for _, row in self._rows[: self._limits.rows]], following, self._problems)

    def _complain(self, problem: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)
        else:
            self._more_problems += 1

    # ------------------------------------------------------------------ files

    def _files(self, folders: Iterable[Path], start: SearchCursor | None) -> list[tuple[Path, int]]:
        """Return the cluster's files, newest first, with the offset at which to begin in each."""
        names: dict[str, Path] = {}
        for folder in folders:
            try:
                paths = audit_files([folder])
            except OSError as error:
                self._complain(f"{folder} cannot be read: {error.strerror}")
                continue
            for path in paths:
                name = plain_name(path.name)
                parts = name_parts(name)
                if parts is not None and parts.cluster_id == self._question.cluster_id:
                    known = names.get(name)
                    if known is None or is_compressed(known.name):  # both are there while it is being compressed
                        names[name] = path
        ordered = sorted(names, key=_order, reverse=True)
        if start is None:
            return [(names[name], END_OF_FILE) for name in ordered]
        return [
            (names[name], start.offset if name == start.file else END_OF_FILE)
            for name in ordered
            if _order(name) <= _order(start.file)
        ]

    def _matches(self, path: Path, end: int) -> Iterator[tuple[int, T]]:
        """Yield the offset and row of each wanted event of a file, newest first. Raises _Exhausted
        with the offset to go on at, or with None if the file must be read from its beginning.
        """
        if not is_compressed(path.name):
            with opened(path) as stream:
                yield from self._events(path, self._backwards(path, stream, min(end, path.stat().st_size)))
            return
        last: deque[tuple[int, T]] = deque(maxlen=self._limits.rows + 1 - len(self._rows))
        try:
            with opened(path) as stream:
                last.extend(self._events(path, self._forwards(path, stream, end)))
        except BROKEN as error:
            self._complain(f"{path.name} is cut, or broken: {error}")
        yield from reversed(last)

    # ------------------------------------------------------------------ lines

    def _events(self, path: Path, lines: Iterable[_Line]) -> Iterator[tuple[int, T]]:
        for line in lines:
            try:
                event = decode_line(line.data, is_too_long=len(line.data) > MAX_LINE_BYTES + 1)
            except UnreadableLineError as problem:
                self._complain(f"{path.name}: the line at byte {line.offset} cannot be read: {problem}"[:300])
                continue
            if event.cluster_id == self._question.cluster_id and (row := self._question.wanted(event)) is not None:
                yield line.offset, row

    def _backwards(self, path: Path, stream: BufferedIOBase, end: int) -> Iterator[_Line]:
        """Yield the complete lines with a needle that end at or before `end`, the last
        one first.
        """
        carry, skips, position = b"", True, end
        while position > 0:
            begin = max(0, position - self._limits.block_bytes)
            self._spend(position - begin, at=position + len(carry))
            stream.seek(begin)
            data = stream.read(position - begin)
            position = begin
            if skips:
                data = data[: data.rfind(b"\n") + 1]
                skips = not data
            data += carry
            cut = data.find(b"\n") + 1 if begin else 0
            carry = data[: cut or len(data)] if begin else b""
            yield from self._with_needle(begin + cut, data[len(carry) :], newest_first=True)
            if len(carry) > self._limits.max_line_bytes:
                self._complain(f"{path.name}: the line that ends at byte {begin + len(carry)} is too long to be read")
                carry, skips = b"", True
            if len(carry) < len(data):
                self._start_clock()

    def _forwards(self, path: Path, stream: BufferedIOBase, end: int) -> Iterator[_Line]:
        """Yield the lines with a needle that begin before `end`, the first one first."""
        carry, offset, skips = b"", 0, False
        while offset < end and (data := stream.read(self._limits.block_bytes)):
            self._spend(len(data), at=None)
            data = carry + data
            cut = data.rfind(b"\n") + 1
            whole, carry = data[:cut], data[cut:]
            skipped = whole.find(b"\n") + 1 if skips else 0
            lines = self._with_needle(offset + skipped, whole[skipped:], newest_first=False)
            yield from (line for line in lines if line.offset < end)
            self._start_clock()
            offset, skips = offset + cut, skips and not cut
            if len(carry) > self._limits.max_line_bytes:
                if not skips:
                    self._complain(f"{path.name}: the line at byte {offset} is too long to be read")
                offset, carry, skips = offset + len(carry), b"", True

    def _with_needle(self, offset: int, block: bytes, *, newest_first: bool) -> Iterator[_Line]:
        """Yield the lines with a needle of a block of whole lines that begins at `offset`."""
        found: set[tuple[int, int]] = set()
        for needle in self._question.needles:
            at = block.find(needle)
            while at >= 0:
                begin, end = block.rfind(b"\n", 0, at) + 1, block.find(b"\n", at) + 1
                found.add((begin, end))
                at = block.find(needle, end)
        for begin, end in sorted(found, reverse=newest_first):
            self._spend(0, at=offset + end if newest_first else None)
            yield _Line(offset + begin, block[begin:end])

    def _start_clock(self) -> None:
        self._deadline = min(self._deadline, time.perf_counter() + self._limits.max_seconds)

    def _spend(self, count: int, *, at: int | None) -> None:
        self._check_cancelled()
        if self._bytes_left < count or time.perf_counter() > self._deadline:
            raise _Exhausted(at)
        self._bytes_left -= count


def _order(name: str) -> tuple[NameParts, str]:
    parts = name_parts(name)
    assert parts is not None
    return parts, name
