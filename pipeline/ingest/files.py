"""The audit's files as they lie in their folders, and what of them is to be read next.

Rule: a file is known by its path without the ending of a compression, so it stays the same file
when it is compressed, and it is read on from the byte at which reading ended. A line is there when
its end is. Nothing is remembered but what was committed.
"""

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
from msgspec.structs import replace

SUFFIX = ".ndjson"
COMPRESSIONS = {"": None, ".gz": "gzip", ".zst": "zstd"}
"""Endings, and Arrow's names for them. A plain file comes first: beside it a compressed one may not
be complete yet.
"""
TO_THE_END = -1
CANONICAL = re.compile(r"audit-.{22}-\d{10}-\d{12}-\d++(?:\.\d++)?\.ndjson", re.DOTALL)
"""Names that the controller gives, each once: a file of such a name may be moved to another folder.
"""
SEARCH_BYTES = 1 << 16
UNPACKED = 8
"""How many bytes a byte of a compressed file is thought to hold."""


class Found(NamedTuple):
    """A file that lies in one of the folders."""

    path: Path
    ending: str
    size: int
    tag: str
    """Of a compressed file: another one when it was written again."""

    def unread(self, progress: "Progress") -> int:
        """Return how many bytes are unread, uncompressed; for a compressed file a guess."""
        if is_read(self, progress):
            return 0
        return max(0, (self.size * UNPACKED if self.ending else self.size) - progress.consumed)


class Progress(msgspec.Struct, frozen=True, array_like=True):
    """How far a file was read."""

    consumed: int = 0
    """Bytes, uncompressed, up to a line's end."""
    tag: str = ""
    """Of the compressed file that was read to its end."""
    rest: int = 0
    """Bytes after the last line's end of a compressed file."""
    highest: int = 0
    """How far it was ever read: a file may become shorter, when a controller takes back what it
    could not write to its end.
    """


class Read(msgspec.Struct, frozen=True, array_like=True):
    """A part of a file that is to be read, of whole lines."""

    file: str
    begin: int
    """Bytes, uncompressed."""
    end: int
    """`TO_THE_END` of a compressed file."""
    tag: str = ""
    again: bool = False
    """It was read before, and is another than it was: what is in it twice is no duplicate."""
    former: str | None = None
    """The name under which it is known, if it was moved."""

    @property
    def size(self) -> int:
        """How many bytes are to be read, uncompressed; for a compressed file a guess."""
        return self.end - self.begin if self.end != TO_THE_END else int(self.tag.partition(":")[0]) * UNPACKED


def listing(folders: Iterable[Path]) -> dict[str, Found]:
    """List the files of the folders by name, in the order in which they are to be read. Raises
    OSError.
    """
    found: dict[str, Found] = {}
    for folder in folders:
        for entry in os.scandir(folder):
            path = Path(entry.path)
            ending = path.suffix if path.suffix in COMPRESSIONS else ""
            name = entry.path.removesuffix(ending)
            if not name.endswith(SUFFIX) or (name in found and not _is_better(ending, found[name].ending)):
                continue
            try:
                if not entry.is_file():
                    continue
                status = entry.stat()
            except OSError:  # compressed, or taken away, in this moment
                continue
            found[name] = Found(path, ending, status.st_size, f"{status.st_size}:{status.st_mtime_ns}")
    return dict(sorted(found.items(), key=_order))


def is_told(name: str) -> bool:
    """Whether a file's name can stand in a table: it may be no text at all."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _order(item: tuple[str, Found]) -> tuple[str, str]:
    return _base(item[0]), item[0]


def _is_better(ending: str, other: str) -> bool:
    endings = list(COMPRESSIONS)
    return endings.index(ending) < endings.index(other)


def path_of(name: str) -> Path:
    """Return where a file lies now: it may have been compressed meanwhile."""
    paths = [Path(name + ending) for ending in COMPRESSIONS]
    return next((path for path in paths if path.exists()), paths[0])


def next_reads(
    found: Mapping[str, Found],
    files: Mapping[str, Progress],
    *,
    given: Container[Read] = (),
    max_bytes: int,
    piece_bytes: int,
) -> list[Read]:
    """Choose what is read next: of all that is new and not `given`, as much as fits into
    `max_bytes`, but one piece at least.
    """
    reads: list[Read] = []
    size = 0
    former = former_names(found, files)
    for name, file in found.items():
        known_as = former.get(name, name)
        progress = files.get(known_as, Progress())
        if not is_told(name) or is_read(file, progress):
            continue
        for each in _reads(name, file, progress, piece_bytes):
            read = each if known_as == name else replace(each, former=known_as)
            if read in given:
                continue
            if reads and size + read.size > max_bytes:
                return reads
            reads.append(read)
            size += read.size
    return reads


def former_names(found: Mapping[str, Found], files: Mapping[str, Progress]) -> dict[str, str]:
    """Match files that were moved between folders with the names by which they are known."""
    new = {_base(name): name for name in found if name not in files and CANONICAL.fullmatch(_base(name))}
    return {new[_base(name)]: name for name in files if _base(name) in new and name not in found} if new else {}


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def is_read(file: Found, progress: Progress) -> bool:
    return file.tag == progress.tag if file.ending else file.size == progress.consumed


def what_is_left(read: Read, files: Mapping[str, Progress]) -> Read | None:
    """Return what is unread of a part that a batch wants; None if it was read, even by a batch that
    Spark has forgotten.
    """
    progress = files.get(read.file) or files.get(read.former or read.file)
    if progress is None:
        return read
    is_taken = read.tag == progress.tag if read.end == TO_THE_END else read.end <= progress.consumed
    if is_taken:
        return None
    return replace(read, again=True) if read.begin < progress.highest and not read.again else read


def _reads(name: str, file: Found, progress: Progress, piece_bytes: int) -> Iterator[Read]:
    if file.ending:
        yield Read(name, progress.consumed, TO_THE_END, file.tag)
        return
    try:
        stream = file.path.open("rb")
    except OSError:  # gone, or not for us: the run tells of it when it has read the rest
        return
    with stream:
        is_other = file.size < progress.consumed or not _is_line_end(stream, progress.consumed)
        begin = 0 if is_other else progress.consumed
        end = _last_line_end(stream, begin, file.size)
        while begin < end:
            after = end if end - begin <= piece_bytes else _next_line_end(stream, begin + piece_bytes, end)
            yield Read(name, begin, after, again=begin < progress.highest)
            begin = after


def _is_line_end(stream: BinaryIO, offset: int) -> bool:
    if offset == 0:
        return True
    stream.seek(offset - 1)
    return stream.read(1) == b"\n"


def _last_line_end(stream: BinaryIO, begin: int, size: int) -> int:
    """Return the end of the last whole line in [begin, size); `begin` if there is none."""
    end = size
    while end > begin:
        start = max(begin, end - SEARCH_BYTES)
        stream.seek(start)
        at = stream.read(end - start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return begin


def _next_line_end(stream: BinaryIO, offset: int, end: int) -> int:
    stream.seek(offset)
    while offset < end:
        chunk = stream.read(SEARCH_BYTES)
        at = chunk.find(b"\n")
        if at >= 0:
            return min(end, offset + at + 1)
        if not chunk:
            break
        offset += len(chunk)
    return end
