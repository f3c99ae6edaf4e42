"""The lines of a part of an audit file, read by `audit/` as all its readers do."""

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property

from ...audit.compression import BROKEN, chunks, opened
from ...audit.lines import LineReader
from ...audit.names import COMPRESSED
from ...audit.reading import FileText
from ..location import File, reason
from .files import TO_THE_END, Read


class Reader(LineReader):
    """Reads a part of a file: iterate over `blocks`, after which it tells how far it came. That is
    nowhere if no line ends where the part begins: it is another file than the one that was read.
    """

    def __init__(self, read: Read) -> None:
        self.read = read
        self.file = _current(File.parse(read.file))
        begin = max(0, read.begin - 1)
        self._text = FileText(self.file, begin, None if read.end == TO_THE_END else read.end - begin)
        super().__init__(self._part(), read.begin)

    def _part(self) -> Iterator[bytes]:
        text = iter(self._text)
        if self.read.begin:
            first = next(text, b"")
            if first.startswith(b"\n"):
                yield first[1:]
            elif first or self._text.problem is None:
                self.consumed = 0
                return
        yield from text

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
        count = 0
        with suppress(*BROKEN), opened(self.file) as stream:
            for chunk in chunks(stream, self.read.begin):
                count += chunk.count(b"\n")
        return count


def _current(file: File) -> File:
    """Return where a listed file lies now: it may have been compressed meanwhile."""
    copies = (file, *(File(file.folder, file.name + ending) for ending in COMPRESSED))
    return next((copy for copy in copies if copy.exists()), file)
