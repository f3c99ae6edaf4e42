"""The audit's files as they lie in their folders, and what of them is to be read next.

Rule: a file is known by its path without the ending of a compression, so it stays the same file when it is compressed, and it is read on
from the byte at which reading ended. A line is there when its end is. Nothing is remembered but what was committed.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

SUFFIX = ".ndjson"
COMPRESSIONS = {"": None, ".gz": "gzip", ".zst": "zstd"}
"""Endings, and Arrow's names for them. A plain file comes first: beside it a compressed one may not be complete yet."""
TO_THE_END = -1
CANONICAL = re.compile(r"audit-.{22}-\d{10}-\d{12}-\d+(?:\.\d+)?\.ndjson", re.DOTALL)
"""Names that the controller gives, each once: a file of such a name may be moved to another folder."""
SEARCH_BYTES = 1 << 16
UNPACKED = 8
"""How many bytes a byte of a compressed file is thought to hold."""


class Found(NamedTuple):
    """A file that is there."""

    path: Path
    ending: str
    size: int
    tag: str
    """Of a compressed file: another one when it was written again."""


class Progress(msgspec.Struct, frozen=True, array_like=True):
    """How far a file was read."""

    consumed: int = 0
    """Bytes, uncompressed, up to a line's end."""
    tag: str = ""
    """Of the compressed file that was read to its end."""
    rest: int = 0
    """Bytes after the last line's end of a compressed file."""


class Read(msgspec.Struct, frozen=True, array_like=True):
    """A part of a file that is to be read: whole lines."""

    file: str
    begin: int
    """Bytes, uncompressed."""
    end: int
    """`TO_THE_END` of a compressed file."""
    tag: str = ""
    again: bool = False
    """It was read before, and is another than it was: what is in it twice is no duplicate."""


def listing(folders: Iterable[Path]) -> dict[str, Found]:
    """By their names for us, in the order in which they are to be read. Raises OSError."""
    found: dict[str, Found] = {}
    for folder in folders:
        for path in folder.iterdir():
            ending = path.suffix if path.suffix in COMPRESSIONS else ""
            name = str(path).removesuffix(ending)
            if not name.endswith(SUFFIX) or not _is_utf8(name):
                continue
            try:
                status = path.stat()
            except FileNotFoundError:  # compressed, or taken away, in this moment
                continue
            if path.is_file() and (name not in found or _is_better(ending, found[name].ending)):
                found[name] = Found(path, ending, status.st_size, f"{status.st_size}:{status.st_mtime_ns}")
    return dict(sorted(found.items(), key=_order))


def _order(item: tuple[str, Found]) -> tuple[str, str]:
    name = item[0]
    return name.rpartition("/")[2], name


def _is_better(ending: str, other: str) -> bool:
    endings = list(COMPRESSIONS)
    return endings.index(ending) < endings.index(other)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def path_of(name: str) -> Path:
    """Where the file lies now: it may have been compressed since it was looked for."""
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
    """What is to be read next: of all that is new and not `given` as much as fits into `max_bytes`, but one piece at least."""
    reads: list[Read] = []
    size = 0
    for name, file in found.items():
        for read in _reads(name, file, progress_of(name, found, files), piece_bytes):
            if read in given:
                continue
            length = file.size * UNPACKED if read.end == TO_THE_END else read.end - read.begin
            if reads and size + length > max_bytes:
                return reads
            reads.append(read)
            size += length
    return reads


def progress_of(name: str, found: Mapping[str, Found], files: Mapping[str, Progress]) -> Progress:
    """How far it was read, under this name or, if it was moved here, under its former one."""
    if name in files:
        return files[name]
    former = former_name(name, found, files)
    return Progress() if former is None else files[former]


def former_name(name: str, found: Mapping[str, Found], files: Mapping[str, Progress]) -> str | None:
    base = name.rpartition("/")[2]
    if CANONICAL.fullmatch(base) is None:
        return None
    gone = (other for other in files if other.rpartition("/")[2] == base and other not in found)
    return next(gone, None)


def _reads(name: str, file: Found, progress: Progress, piece_bytes: int) -> Iterator[Read]:
    if file.ending:
        if file.tag != progress.tag:
            yield Read(name, progress.consumed, TO_THE_END, file.tag)
        return
    if file.size == progress.consumed:
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
            yield Read(name, begin, after, again=is_other)
            begin = after


def _is_line_end(stream: BinaryIO, offset: int) -> bool:
    if offset == 0:
        return True
    stream.seek(offset - 1)
    return stream.read(1) == b"\n"


def _last_line_end(stream: BinaryIO, begin: int, size: int) -> int:
    """The end of the last whole line in [begin, size); `begin` if there is none."""
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
