"""The lines of a file, however they lie in it, and in bounded memory."""

import gzip
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.audit import compression, lines
from minicontroller.audit.event import MAX_LINE_BYTES
from minicontroller.audit.lines import KEPT_BYTES
from minicontroller.pipeline.ingest.files import TO_THE_END, Read
from minicontroller.pipeline.ingest.lines import Reader
from minicontroller.pipeline.ingest.staging_result import ReadProgress

CHUNK = 8


@contextmanager
def small_chunks() -> Iterator[None]:
    """Chunks of a few bytes, and lines of a few chunks at most: so every way in which they can lie
    is met.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "CHUNK_BYTES", CHUNK)
        patch.setattr(lines, "MAX_LINE_BYTES", 5 * CHUNK)
        patch.setattr(lines, "KEPT_BYTES", CHUNK)
        yield


@given(
    data=st.lists(st.sampled_from([b"\n", b"a", b"bcd", b"\0", b"x" * 11, b"y" * 60])).map(b"".join), begin=st.data()
)
def test_any_bytes(data: bytes, begin: st.DataObject) -> None:
    """Whole lines come as they are, in their order; of one that is too long its beginning; what has
    no end is counted and not told.
    """
    starts = [0, *(index + 1 for index, byte in enumerate(data) if byte == ord("\n"))]
    start = begin.draw(st.sampled_from(starts))
    expected = data[start:].split(b"\n")
    with TemporaryDirectory() as folder, small_chunks():
        file = Path(folder) / "a.ndjson"
        for path, content in ((file, data), (file.with_name("b.ndjson.gz"), gzip.compress(data))):
            path.write_bytes(content)
            reader = Reader(Read(str(path).removesuffix(".gz"), start, TO_THE_END))
            told = [(block.first, block.is_too_long, line) for block in reader.blocks() for line in block.lines]
            assert len(told) == reader.count == len(expected) - 1
            assert reader.rest == len(expected[-1])
            assert reader.consumed == len(data) - len(expected[-1])
            assert reader.lines_before == data[:start].count(b"\n")
            for (_, too_long, line), whole in zip(told, expected, strict=False):
                assert line == (whole[:CHUNK] if too_long else whole)
                assert too_long == (len(whole) > 5 * CHUNK)


def test_a_line_of_50_mb_costs_no_such_memory(tmp_path: Path) -> None:
    """A line without an end in sight is passed over in bounded memory, and the lines behind it are
    there.
    """
    file = tmp_path / "a.ndjson"
    file.write_bytes(b"first\n" + b"x" * (50 << 20) + b"\nlast\n")
    tracemalloc.start()
    blocks = list(Reader(Read(str(file), 0, file.stat().st_size)).blocks())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(block.first, [line[:10] for line in block.lines], block.is_too_long) for block in blocks] == [
        (0, [b"first"], False),
        (1, [b"x" * 10], True),
        (2, [b"last"], False),
    ]
    assert len(blocks[1].lines[0]) == KEPT_BYTES
    assert peak < 3 * MAX_LINE_BYTES


@given(data=st.text("ab\n").map(str.encode), begin=st.integers(1, 10), is_whole=st.booleans())
def test_a_part_that_no_line_ends_before(data: bytes, begin: int, is_whole: bool) -> None:
    """Nothing of it is told or counts as read, and a part that a line ends before is read."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "a.ndjson"
        file.write_bytes(data)
        read = Read(str(file), begin, TO_THE_END if is_whole else begin + 5)
        reader = Reader(read)
        told = b"".join(line + b"\n" for block in reader.blocks() for line in block.lines)
    goes_on = data[begin - 1 : begin] == b"\n"
    part = data[begin : None if is_whole else begin + 5]
    assert told == (part[: part.rfind(b"\n") + 1] if goes_on else b"")
    assert reader.consumed == (begin + len(told) if goes_on else 0)
    assert ReadProgress(read, reader.consumed, reader.rest).size == len(told)
