"""The audit log as it lies in files: which there are, in which order, and what stands in their
lines.

Rule: whatever a file holds is told and nothing is skipped in silence; a line is a line when its end
is there, and what has no end yet may still get one. Memory is bounded, whatever was taken for an
audit file. A file and what it was compressed to, side by side, are one file kept twice: as long as
the plain one is there it is read, since compression may not have ended.
"""

from collections.abc import Iterable, Iterator
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple

from .compression import BROKEN, CUT, ENDINGS, is_compressed, opened, plain_name, preference
from .event import MAX_LINE_BYTES, AuditEvent, UnknownSchemaError, UnreadableLineError, decode
from .files import NAME, SUFFIX

AUDIT_FILES = (SUFFIX, *(SUFFIX + ending for ending in ENDINGS))
FIRST_LINES = 100
BLOCK_BYTES = 1 << 16


class Torn(UnreadableLineError):  # noqa: N818 - a state of a line, more than an error
    """A file that is cut, within a line or within its compressed content."""


class Place(NamedTuple):
    file: Path
    line: int
    """From 1."""


class Located(NamedTuple):
    """A line of an audit file: its event, or why it is none."""

    place: Place
    event: AuditEvent | None
    problem: UnreadableLineError | None = None
    text: bytes = b""


def audit_files(paths: Iterable[Path]) -> list[Path]:
    """List the audit files at these paths and in these folders in the order of their events, which
    is that of their names.
    """
    return sorted((best for best, *_ in _kept(paths)), key=lambda each: (*_order(each), each))


def copies(paths: Iterable[Path]) -> dict[Path, Path]:
    """List the compressed files that `audit_files` leaves out, each with the file that is read
    instead.
    """
    return {copy: best for best, *others in _kept(paths) for copy in others}


def _kept(paths: Iterable[Path]) -> Iterable[list[Path]]:
    """Group audit files with their compressed copies, in each group the one to be read first."""
    found: set[Path] = set()
    for path in paths:
        if path.is_dir():
            found.update(each for each in path.iterdir() if each.name.endswith(AUDIT_FILES) and each.is_file())
        else:
            found.add(path)
    kept: dict[Path, list[Path]] = {}
    for each in sorted(found, key=preference):
        kept.setdefault(each.with_name(plain_name(each)), []).append(each)
    return kept.values()


def _order(path: Path) -> tuple[str, int, int, int]:
    match = NAME.fullmatch(plain_name(path))
    if match is None:
        return (path.name, 0, 0, 0)
    return (match["cluster"], int(match["epoch"]), int(match["sequence"]), int(match["again"] or 0))


def is_audit_file(file: Path) -> bool:
    """Whether the file's name or one of its first lines says that it is an audit file. An empty or
    unreadable one may be.
    """
    if NAME.fullmatch(plain_name(file)):
        return True
    lines = [each for each in islice(read(file), FIRST_LINES) if each.text]
    return not lines or any(each.event is not None or isinstance(each.problem, UnknownSchemaError) for each in lines)


def read(file: Path) -> Iterator[Located]:
    """Yield the lines of an audit file; where it cannot be read further, the last one says so."""
    number = 0
    try:
        file = _where_it_lies(file)
        with opened(file) as stream:
            for number, line in enumerate(_lines(stream), start=1):
                yield located(Place(file, number), line)
    except CUT as error:
        yield Located(Place(file, number + 1), None, Torn(f"the file is cut: {error}"))
    except BROKEN as error:
        yield Located(Place(file, number + 1), None, UnreadableLineError(f"the file is broken from here on: {error}"))
    except OSError as error:
        yield Located(Place(file, number + 1), None, UnreadableLineError(f"the file cannot be read: {error.strerror}"))


def _where_it_lies(file: Path) -> Path:
    """Return the path of a file, or of its compressed copy if it has been compressed meanwhile."""
    names = (file, *(file.with_name(plain_name(file) + ending) for ending in ENDINGS))
    return next((each for each in names if each.exists()), file)


def is_copy(copy: Path, original: Path) -> bool:
    """Whether all that `copy` holds is what `original` begins with."""
    try:
        with opened(copy) as text, opened(original) as expected:
            while block := text.read(BLOCK_BYTES):
                if block != expected.read(len(block)):
                    return False
    except (*CUT, FileNotFoundError):  # it is being written, or its original was taken away
        return True
    except (*BROKEN, OSError):
        return False
    return True


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream with their ends; a line that is too long is cut."""
    while line := stream.readline(MAX_LINE_BYTES + 1):
        yield line
        while line and not line.endswith(b"\n"):
            line = stream.readline(MAX_LINE_BYTES)


def located(place: Place, line: bytes) -> Located:
    if len(line) - line.endswith(b"\n") > MAX_LINE_BYTES:
        return Located(place, None, UnreadableLineError("the line is too long to be an event"), line)
    if not line.endswith(b"\n"):
        return Located(place, None, Torn("the line has no end: it was cut, or is still being written"), line)
    try:
        return Located(place, decode(line), None, line)
    except UnreadableLineError as problem:
        return Located(place, None, problem, line)


def read_all(paths: Iterable[Path]) -> Iterator[Located]:
    for file in audit_files(paths):
        yield from read(file)


class Follower:
    """Yields the events that are added to audit files, old and new, since it looked last."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = list(paths)
        self._offsets: dict[Path, tuple[int, int]] = {}
        """Bytes and lines of each file that were read."""

    def look(self) -> Iterator[Located]:
        for file in audit_files(self._paths):
            if is_compressed(file):
                continue  # it was read before it was compressed
            offset, number = self._offsets.get(file, (0, 0))
            with file.open("rb") as stream:
                stream.seek(offset)
                yield from self._new_lines(file, stream, offset, number)

    def _new_lines(self, file: Path, stream: BufferedReader, offset: int, number: int) -> Iterator[Located]:
        while line := stream.readline(MAX_LINE_BYTES + 1):
            size, rest = len(line), line
            while rest and not rest.endswith(b"\n"):
                rest = stream.readline(MAX_LINE_BYTES)
                size += len(rest)
            if not rest:
                return  # its end is yet to come
            offset, number = offset + size, number + 1
            self._offsets[file] = offset, number
            yield located(Place(file, number), line)


__all__ = [
    "Follower",
    "Located",
    "Place",
    "Torn",
    "UnknownSchemaError",
    "UnreadableLineError",
    "audit_files",
    "copies",
    "is_audit_file",
    "is_copy",
    "located",
    "read",
    "read_all",
]
