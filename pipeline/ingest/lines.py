"""The lines of a part of an audit file, read by `audit/` as all its readers do."""

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from itertools import chain

from ...audit.compression import BROKEN, chunks, opened
from ...audit.files import COMPRESSED
from ...audit.lines import LineReader
from ...audit.reading import FileText
from ..location import File, reason
from .digests import Digest, Hashing, block_begin
from .files import TO_THE_END, Read


class Reader(LineReader):
    """Reads a part of a file: iterate over `blocks`, after which it knows how far it came. That is
    nowhere if what stands before the part is not what was read: it is another file then.
    """

    def __init__(self, read: Read) -> None:
        self.read = read
        self.file = _current(File.parse(read.file))
        self._begin = 0 if read.is_whole else block_begin(max(0, read.begin - 1))
        self._text = FileText(self.file, self._begin, None if read.end == TO_THE_END else read.end - self._begin)
        self._hashing = Hashing(0 if read.is_whole else block_begin(read.begin))
        self._lines = 0
        super().__init__(self._part(), read.begin)

    def _part(self) -> Iterator[bytes]:
        text = iter(self._text)
        rest = b""
        left = self.read.begin - self._begin
        while left > 0:
            chunk = next(text, b"")
            if not chunk:
                if self._text.problem is None:
                    self.consumed = 0
                return
            before, rest = chunk[:left], chunk[left:]
            if self.read.is_whole or self._begin == block_begin(self.read.begin):
                self._hashing.update(before)
            self._lines += before.count(b"\n")
            left -= len(before)
            if not left and not self._goes_on(before):
                self.consumed = 0
                return
        for chunk in chain((rest,), text):
            end = chunk.rfind(b"\n") + 1
            self._hashing.update(memoryview(chunk)[:end])
            if end:
                self._hashing.mark()
            self._hashing.update(memoryview(chunk)[end:])
            yield chunk

    def _goes_on(self, before: bytes) -> bool:
        """Whether the part goes on from what was read, of which these are the last bytes."""
        self._hashing.mark()
        known, found = self.read.known, self._hashing.marked
        if not before.endswith(b"\n"):
            return False
        return known is None or (found == known if self.read.is_whole else found.tail == known.tail)

    @property
    def digest(self) -> Digest:
        """The digest up to the last line's end, from the begin of the block in which the part
        begins or, of a read that is whole, from that of the file.
        """
        return self._hashing.marked

    @property
    def lines(self) -> int:
        """How many lines were read; of a read that is whole, and those before."""
        return self.count + (self._lines if self.read.is_whole else 0)

    @property
    def failure(self) -> str | None:
        """The reason why the file could not be read this time; None if it could."""
        failure = self._text.failure
        return None if failure is None else reason(failure)

    @property
    def broken(self) -> str | None:
        """The reason why the file cannot be read to its end, and never will be; None if it can."""
        return None if self._text.failure is not None or self._text.problem is None else str(self._text.problem)

    @cached_property
    def lines_before(self) -> int:
        """How many lines are before the part. This reads the file up to there, so it is called only
        where a line number is reported. Of a file that is broken before, the lines that can be read
        are counted.
        """
        if self.read.is_whole:
            return self._lines
        count = 0
        with suppress(*BROKEN), opened(self.file) as stream:
            for chunk in chunks(stream, self.read.begin):
                count += chunk.count(b"\n")
        return count


def _current(file: File) -> File:
    """Return where a listed file lies now: it may have been compressed meanwhile."""
    copies = (file, *(File(file.folder, file.name + ending) for ending in COMPRESSED))
    return next((copy for copy in copies if copy.exists()), file)
