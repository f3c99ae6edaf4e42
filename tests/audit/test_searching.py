"""Searching the audit log backwards: it finds what reading all of it would find, whatever the files
hold, and never more than it may cost.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.audit.event import AuditEvent, Decision, encode
from minicontroller.audit.files import file_name
from minicontroller.audit.searching import SearchCursor, SearchLimits, SearchQuery, SearchResult, parse_cursor, search
from tests.audit.logs import CLUSTER, a_creation, a_log

SMALL = SearchLimits(rows=3, block_bytes=700, max_line_bytes=1500)


def sequence_of(event: AuditEvent) -> tuple[int, int] | None:
    return (event.epoch, event.sequence) if isinstance(event, Decision) and event.name == "t" else None


QUESTION = SearchQuery(CLUSTER, [b'"t"'], sequence_of)


def found_in(
    folder: Path, limits: SearchLimits = SMALL, start: SearchCursor | None = None
) -> SearchResult[tuple[int, int]]:
    return search([folder], QUESTION, limits, start)


def all_of(folder: Path, limits: SearchLimits = SMALL) -> tuple[list[tuple[int, int]], list[str]]:
    """Page by page, to the end."""
    rows: list[tuple[int, int]] = []
    problems: list[str] = []
    start: SearchCursor | None = None
    while True:
        page = found_in(folder, limits, start)
        rows += page.rows
        problems += page.problems
        if page.next is None:
            return rows, problems
        assert page.next != start, "it does not move"
        start = parse_cursor(str(page.next))


def put(folder: Path, data: bytes, *, epoch: int = 1, sequence: int = 1, compressed: bool = False) -> Path:
    file = folder / file_name(CLUSTER, epoch, sequence, 1)
    if compressed:
        file = file.with_name(f"{file.name}.gz")
    file.write_bytes(gzip.compress(data) if compressed else data)
    return file


JUNK = st.sampled_from(
    [
        b'"t"\n',
        b"\n",
        b'{"kind":"decision","name":"t"}\n',
        b'{"schema_version":9,"name":"t"}\n',
        b"\xff\x00\xfe" * 40 + b"\n",
        b'"t"' * 300 + b"\n",
        b"[" * 300 + b'"t"\n',
        encode(a_creation(77, "other")),
        encode(msgspec.structs.replace(a_creation(78, "t"), cluster_id="B" * 22)),
    ]
)


@st.composite
def file_texts(draw: st.DrawFn) -> tuple[bytes, list[int]]:
    """Lines of which some are events of `t`, with their sequences in order; perhaps
    without an end.
    """
    text, sequences = b"", []
    for sequence in range(draw(st.integers(0, 12))):
        text += b"".join(draw(st.lists(JUNK, max_size=3)))
        text += encode(a_creation(sequence, "t"))
        sequences.append(sequence)
    return text + draw(st.sampled_from([b"", encode(a_creation(99, "t"))[:-1], b'"t"', b"x" * 900])), sequences


@given(st.lists(st.tuples(file_texts(), st.booleans()), max_size=4), st.integers(100, 3000), st.integers(1, 20))
def test_it_finds_what_is_there(
    files: Sequence[tuple[tuple[bytes, list[int]], bool]], block_bytes: int, rows: int
) -> None:
    """Page by page every event is found once, the newest first, in plain and in compressed files,
    among all that is broken.
    """
    with TemporaryDirectory() as name:
        folder, expected = Path(name), []
        for epoch, ((text, sequences), compressed) in enumerate(files):
            put(folder, text.replace(b'"epoch":1,', b'"epoch":%d,' % epoch), epoch=epoch, compressed=compressed)
            expected += [(epoch, sequence) for sequence in sequences]
        found, _ = all_of(folder, SMALL._replace(block_bytes=block_bytes, rows=rows))
    assert found == expected[::-1]


@given(st.binary(max_size=4000), st.booleans())
def test_any_bytes_are_survived(data: bytes, compressed: bool) -> None:
    """A search ends whatever bytes an audit file holds."""
    with TemporaryDirectory() as name:
        file = put(Path(name), data)
        if compressed:
            file.rename(f"{file}.gz")
        all_of(Path(name))


def test_it_says_what_it_cannot_read(tmp_path: Path) -> None:
    """Malformed or overlong lines and truncated or missing files are reported, and the rest is
    found.
    """
    put(tmp_path, encode(a_creation(1, "t")) + b'{"name":"t"}\n' + b"x" * 9000 + b"\n", epoch=1)
    cut = put(tmp_path, encode(a_creation(1, "t")) * 1 + bytes(range(256)) * 40, epoch=2, compressed=True)
    cut.write_bytes(cut.read_bytes()[:-20])
    (tmp_path / file_name(CLUSTER, 3, 1, 1)).symlink_to(tmp_path)
    found, problems = all_of(tmp_path)
    assert found == [(1, 1), (1, 1)]  # its epoch is what the line says
    told = " ".join(problems)
    assert "the line that ends at byte" in told and "is too long" in told
    assert f"the line at byte {len(encode(a_creation(1, 't')))} cannot be read: not an event" in told
    assert "is cut, or broken" in told
    assert found_in(tmp_path / "nowhere").problems == []


def test_a_search_costs_what_it_may(tmp_path: Path) -> None:
    """More than its bytes are never read: it stops where the next one goes on, so that all is found
    in the end.
    """
    text = b"".join(encode(event) for number in range(40) for event in a_log(5, number + 1))
    for epoch in range(5):
        put(tmp_path, text + encode(a_creation(epoch, "t", epoch=epoch)), epoch=epoch)
    limits = SMALL._replace(max_bytes=len(text) // 3, block_bytes=5000)
    assert found_in(tmp_path, limits).rows == [(4, 4)]
    assert found_in(tmp_path, limits).next is not None
    assert all_of(tmp_path, limits)[0] == [(epoch, epoch) for epoch in reversed(range(5))]


@pytest.mark.parametrize("size", [100, 50_000_000])
def test_a_file_that_unpacks_to_more_is_told(tmp_path: Path, size: int) -> None:
    """A compressed file that is too large for one search is left out with a word, and those before
    it are searched.
    """
    put(tmp_path, encode(a_creation(1, "t")), epoch=1)
    put(tmp_path, b"0" * size + b"\n" + encode(a_creation(2, "t", epoch=2)), epoch=2, compressed=True)
    rows, problems = all_of(tmp_path, SMALL._replace(max_bytes=1_000_000, block_bytes=100_000))
    assert rows == ([(2, 2), (1, 1)] if size == 100 else [(1, 1)])
    assert any("too large" in problem for problem in problems) == (size != 100)


def test_nobody_waits_for_a_slow_search(tmp_path: Path) -> None:
    """A search is limited in time and bytes, and can be cancelled after every block."""
    for epoch in range(3):
        put(tmp_path, encode(a_creation(1, "t", epoch=epoch)), epoch=epoch)
    impatient = SMALL._replace(max_seconds=-1.0)
    assert found_in(tmp_path, impatient._replace(block_bytes=5000)).rows == [(2, 1)]
    assert all_of(tmp_path, impatient)[0] == [(2, 1), (1, 1), (0, 1)]

    class CalledOffError(Exception):
        pass

    def call_off() -> None:
        raise CalledOffError

    with pytest.raises(CalledOffError):
        search([tmp_path], QUESTION, SMALL, None, call_off)


@pytest.mark.parametrize("text", ["", ":", "x:1", "../../etc/passwd:0", f"{file_name(CLUSTER, 1, 1, 1)}:-1", "a:9e9"])
def test_a_cursor_is_not_believed(text: str) -> None:
    """A cursor that names no position in an audit file is refused."""
    assert parse_cursor(text) is None


def test_a_file_is_searched_once(tmp_path: Path) -> None:
    """While a file is being compressed it lies there twice; files of other clusters and other names
    are none of ours.
    """
    data = encode(a_creation(1, "t"))
    put(tmp_path, data)
    put(tmp_path, data, compressed=True)
    (tmp_path / file_name("B" * 22, 9, 1, 1)).write_bytes(data)
    (tmp_path / "notes.ndjson").write_bytes(data)
    assert all_of(tmp_path) == ([(1, 1)], [])
