"""The audit's files as they lie in their folders, and what of them is to be read next.

Rule: a file is known by its path without the ending of a compression, so it stays the same file
when it is compressed, and it is read on from the byte at which reading ended. A line is there when
its end is. Nothing is remembered but what was committed.
"""

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from errno import ENOENT
from itertools import islice
from typing import BinaryIO, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace
from pyarrow import fs

from ...audit.files import ENDINGS, in_order, is_compressed, name_parts, plain_name, to_be_read
from ..location import File, Location, reason
from .digests import Digest

TO_THE_END = -1
UNKNOWN = -1
SEARCH_BYTES = 1 << 16
AT_ONCE = 32
"""How many files of an object store are looked into at the same time: each takes it tens of
milliseconds.
"""
HASHED = 32
"""How many bytes are hashed in the time in which one is ingested."""
UNPACKED = 8
"""How many bytes a byte of a compressed file is thought to hold."""


class AuditFile(NamedTuple):
    file: File
    size: int
    tag: str
    """The file's size and the times of its last changes, by which a file that was written again is
    recognized.
    """

    @property
    def is_compressed(self) -> bool:
        return is_compressed(self.file.name)


class FileProgress(msgspec.Struct, frozen=True, array_like=True):
    consumed: int = 0
    """How many bytes were read, uncompressed, up to a line's end."""
    tag: str = ""
    """The tag of the file that was read to its end, and is all that was ever read of it."""
    rest: int = 0
    """How many bytes follow the last line's end of a compressed file."""
    highest: int = 0
    """How far the file was ever read: it may become shorter, when a controller takes back what it
    could not write to its end.
    """
    digest: Digest | None = None
    """The digest of these bytes; None if a version without digests read them."""
    lines: int = UNKNOWN
    events: int = UNKNOWN
    """How many events these lines hold."""
    most: int = 0
    """How many events the file ever held: with fewer, some were taken from it."""
    is_broken: bool = False
    """Whether the compressed file could not be read to its end, of which a row in quarantine
    tells.
    """


class Read(msgspec.Struct, frozen=True, array_like=True):
    """A part of a file that is to be read, of whole lines."""

    file: str
    begin: int
    """The offset of the part's first byte, uncompressed."""
    end: int
    """The offset of the part's end in bytes; `TO_THE_END` for a compressed file."""
    tag: str = ""
    again: bool = False
    """Whether the part was read before, and the file is another than it was: what is in it twice is
    no duplicate.
    """
    former: str | None = None
    """The name under which the file is known, if it was moved."""
    known: Digest | None = None
    """The digest of what was read before, which the file is compared with first."""
    is_whole: bool = False
    """Whether all that was read before is hashed, and not only the last block of it."""

    @property
    def size(self) -> int:
        """How many bytes are to be read, uncompressed, hashed ones by the time that they take; for
        a compressed file a guess.
        """
        if self.end == TO_THE_END:
            return int(self.tag.partition(":")[0]) * UNPACKED
        return self.end - self.begin + (self.begin // HASHED if self.is_whole else 0)


def listing(folders: Iterable[Location]) -> dict[str, AuditFile]:
    """List the files of the folders by name, in the order in which they are to be read. Raises
    OSError.
    """
    found: dict[str, AuditFile] = {}
    for file in sorted(_files(folders), key=lambda found: to_be_read(found.file.name)):
        found.setdefault(str(file.file.folder.child(plain_name(file.file.name))), file)
    return dict(sorted(found.items(), key=lambda named: (*in_order(named[1].file.name), named[0])))


def _files(folders: Iterable[Location]) -> Iterator[AuditFile]:
    for folder in folders:
        try:
            infos = folder.filesystem().get_file_info(fs.FileSelector(""))
        except FileNotFoundError:  # a folder of an object store is there while something lies in it
            if folder.is_local:
                raise FileNotFoundError(ENOENT, os.strerror(ENOENT), str(folder)) from None
            infos = []
        except OSError as error:
            raise OSError(error.errno or 0, reason(error), str(folder)) from None
        for info in infos:
            name = _name(info)
            if info.is_file and name.endswith(ENDINGS):
                yield AuditFile(File(folder, name), info.size, f"{info.size}:{info.mtime_ns}{_changed(folder, name)}")


def _changed(folder: Location, name: str) -> str:
    """Return when a local file was changed in any way, which nobody can set; empty in a store,
    where files are replaced as a whole.
    """
    if folder.is_local:
        with suppress(OSError):
            return f":{(folder.path / name).stat().st_ctime_ns}"
    return ""


def _name(info: fs.FileInfo) -> str:
    try:
        return str(info.base_name)
    except UnicodeDecodeError as error:
        return os.fsdecode(error.object)


def as_text(name: str) -> str:
    """Return the name of a file as it can stand in a table: it may be no text at all."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def next_reads(
    found: Mapping[str, AuditFile],
    files: Mapping[str, FileProgress],
    *,
    given: Container[Read] = (),
    max_bytes: int,
    piece_bytes: int,
    is_thorough: bool = True,
) -> list[Read]:
    """Choose what is read next: of all that is new and not `given`, as much as fits into
    `max_bytes`, but one piece at least. If it `is_thorough`, all that was read of files that were
    changed since is compared, and otherwise its last block.
    """
    reads: list[Read] = []
    size = 0
    former = former_names(found, files)

    def of_file(name: str) -> list[Read]:
        known_as = former.get(name, name)
        all_reads = _reads(name, found[name], files.get(known_as, FileProgress()), piece_bytes, is_thorough=is_thorough)
        return [each if known_as == name else replace(each, former=known_as) for each in all_reads]

    unread = (
        name
        for name, file in found.items()
        if as_text(name) == name and not is_read(file, files.get(former.get(name, name), FileProgress()))
    )
    for some in _inspected(of_file, unread, found):
        for read in some:
            if read in given:
                continue
            if reads and size + read.size > max_bytes:
                return reads
            reads.append(read)
            size += read.size
    return reads


def unread(found: Mapping[str, AuditFile], files: Mapping[str, FileProgress]) -> list[int]:
    """Estimate how many bytes of each file that is not read are unread, uncompressed."""
    former = former_names(found, files)
    known = [(file, files.get(former.get(name, name), FileProgress())) for name, file in found.items()]
    sizes = [
        (file.size * UNPACKED if file.is_compressed else file.size) - progress.consumed
        for file, progress in known
        if not is_read(file, progress)
    ]
    return [size for size in sizes if size > 0]


Inspected = TypeVar("Inspected")


def _inspected(
    look: Callable[[str], Inspected], names: Iterator[str], found: Mapping[str, AuditFile]
) -> Iterator[Inspected]:
    """Look into files in their order, into some at the same time where that is quicker."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        while some := list(islice(names, AT_ONCE)):
            is_local = all(found[name].file.folder.is_local for name in some)
            yield from map(look, some) if is_local else threads.map(look, some)


def former_names(found: Mapping[str, AuditFile], files: Mapping[str, FileProgress]) -> dict[str, str]:
    """Match files that were moved between folders with the names by which they are known."""
    new = {lasting_name(name): name for name in found if name not in files}
    known = {lasting_name(name): name for name in files if name not in found} if new else {}
    return {new[lasting]: name for lasting, name in known.items() if lasting in new}


def lasting_name(name: str) -> str:
    """Return the part of a file's name that stays when it is compressed and moved: a controller
    gives each name once, and other names may be in several folders.
    """
    plain = plain_name(name)
    return base_name(plain) if name_parts(base_name(plain)) else plain


def base_name(name: str) -> str:
    return name.rpartition("/")[2]


def is_read(file: AuditFile, progress: FileProgress) -> bool:
    return file.tag == progress.tag and (file.is_compressed or file.size == progress.consumed)


def _reads(
    name: str, file: AuditFile, progress: FileProgress, piece_bytes: int, *, is_thorough: bool
) -> Iterator[Read]:
    known, digest = progress.consumed, progress.digest
    if file.is_compressed:
        yield Read(name, known, TO_THE_END, file.tag, again=known < progress.highest, known=digest, is_whole=known > 0)
        return
    try:
        stream = file.file.open()
    except OSError:  # gone, or not for us: the run reports it when it has read the rest
        return
    with stream:
        is_other = file.size < known or _last_line_end(stream, max(0, known - 1), known) != known
        begin = 0 if is_other else known
        end = _last_line_end(stream, begin, file.size)
        tag = file.tag if is_thorough or not begin else ""
        first = Read(name, begin, end, tag, again=begin < progress.highest)
        if begin:
            first = replace(first, known=digest, is_whole=is_thorough)
        if begin == end and (is_other or (is_thorough and file.tag != progress.tag)):
            yield first  # what was read is compared, or gone: what comes yet is no continuation of it
        while begin < end:
            after = end if end - begin <= piece_bytes else _next_line_end(stream, begin + piece_bytes, end)
            yield (
                replace(first, end=after)
                if begin == first.begin
                else Read(name, begin, after, tag, again=begin < progress.highest)
            )
            begin = after


def _last_line_end(stream: BinaryIO, begin: int, size: int) -> int:
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
    while stream.readline(SEARCH_BYTES)[-1:] not in {b"\n", b""}:
        pass
    return min(end, stream.tell())
