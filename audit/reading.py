"""The lines of audit files with their places: each is an event, or a problem that says why not.

Rule: nothing in a file is skipped without a word, and memory is bounded whatever file is given. A
line counts once its end is there; a line that has none yet may still get one.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from .compression import BROKEN, CUT, Openable, chunks, opened
from .event import MAX_LINE_BYTES, AuditEvent, UnknownSchemaError, UnreadableLineError
from .files import audit_files, current_path, is_compressed, name_parts, plain_name
from .lines import LineBlock, LineReader, decode_line

FIRST_LINES = 100
COMPARED_BYTES = 1 << 16


class TornError(UnreadableLineError):
    """A file is cut, within a line or within its compressed content."""


class LinePlace(NamedTuple):
    file: Path
    line: int
    """The number of the line, from 1."""


class LocatedEvent(NamedTuple):
    """A line of an audit file: its event, or why it is none."""

    place: LinePlace
    event: AuditEvent | None
    problem: UnreadableLineError | None = None
    text: bytes | None = None
    """The line without its end, or the beginning of a line that is too long; None if the file
    cannot be read any further.
    """


def is_audit_file(file: Path) -> bool:
    """Whether the name of a file or one of its first lines says that it is an audit file. A file
    that is empty or cannot be read may be one.
    """
    if name_parts(plain_name(file.name)):
        return True
    lines = [each for each in islice(read(file), FIRST_LINES) if each.text is not None]
    return not lines or any(each.event is not None or isinstance(each.problem, UnknownSchemaError) for each in lines)


def read_all(paths: Iterable[Path]) -> Iterator[LocatedEvent]:
    """Yield the lines of all audit files at these paths and in these folders, in order. Raises
    OSError if a folder cannot be read.
    """
    for file in audit_files(paths):
        yield from read(file)


def read(file: Path) -> Iterator[LocatedEvent]:
    """Yield the lines of an audit file, or of its compressed copy if it has been compressed
    meanwhile. If the file cannot be read to its end, the last element says why.
    """
    file = current_path(file)
    text = FileText(file)
    lines = LineReader(text)
    for block in lines.blocks():
        yield from _events(file, block)
    place = LinePlace(file, lines.count + 1)
    if text.problem is not None:
        yield LocatedEvent(place, None, text.problem)
    elif lines.rest > MAX_LINE_BYTES:
        yield _event(place, lines.unfinished, is_too_long=True)
    elif lines.rest:
        problem = TornError("the line has no end: it was cut, or is still being written")
        yield LocatedEvent(place, None, problem, lines.unfinished)


class FileText:
    """Iterates over the uncompressed text of an audit file in chunks, as far as it can be read;
    after that, `failure` and `problem` say what went wrong. It can be iterated over once.
    """

    def __init__(self, file: Openable, offset: int = 0, count: int | None = None) -> None:
        self._file = file
        self._offset = offset
        self._count = count
        self.failure: OSError | None = None
        """Why the file could not be read this time."""
        self.problem: UnreadableLineError | None = None
        """The sentence that says why, or that the content of the file is cut or broken and will
        never be read to its end.
        """

    def __iter__(self) -> Iterator[bytes]:
        try:
            with opened(self._file, self._offset) as stream:
                yield from chunks(stream, self._count)
        except CUT as error:
            self.problem = TornError(f"the file is cut: {error}")
        except BROKEN as error:
            self.problem = UnreadableLineError(f"the file is broken from here on: {error}")
        except OSError as error:
            self.failure = error
            self.problem = UnreadableLineError(f"the file cannot be read: {error.strerror}")


def _events(file: Path, block: LineBlock) -> Iterator[LocatedEvent]:
    for number, line in enumerate(block.lines, block.first + 1):
        yield _event(LinePlace(file, number), line, is_too_long=block.is_too_long)


def _event(place: LinePlace, line: bytes, *, is_too_long: bool) -> LocatedEvent:
    try:
        return LocatedEvent(place, decode_line(line, is_too_long=is_too_long), None, line)
    except UnreadableLineError as problem:
        return LocatedEvent(place, None, problem, line)


def is_copy(copy: Path, original: Path) -> bool:
    """Whether everything that the compressed file `copy` holds is what `original` begins with."""
    try:
        with opened(copy) as text, opened(original) as expected:
            while block := text.read(COMPARED_BYTES):
                if block != expected.read(len(block)):
                    return False
    except (*CUT, FileNotFoundError):  # it is being written, or the original was taken away
        return True
    except (*BROKEN, OSError):
        return False
    return True


class Follower:
    """Yields the events that were added to audit files, and to new ones, since the last look."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = list(paths)
        self._read: dict[Path, tuple[int, int]] = {}
        """How many bytes and lines of each file were read."""

    def look(self) -> Iterator[LocatedEvent]:
        """Yield the new lines whose ends are there. Raises OSError."""
        for file in audit_files(self._paths):
            if not is_compressed(file.name):  # a compressed file was read before it was compressed
                yield from self._new_events(file)

    def _new_events(self, file: Path) -> Iterator[LocatedEvent]:
        offset, number = self._read.get(file, (0, 0))
        with opened(file, offset) as stream:
            lines = LineReader(chunks(stream), offset)
            for block in lines.blocks():
                self._read[file] = lines.consumed, number + lines.count
                yield from _events(file, block._replace(first=number + block.first))
