"""Files that change behind what was read of them: they are compared with it, read again, and what
they hold no more is told.
"""

import gzip
import io
import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.audit.event import encode
from minicontroller.pipeline.ingest.derived import problem_rows
from minicontroller.pipeline.ingest.digests import BLOCK_BYTES, Digest, Hashing, block_begin
from minicontroller.pipeline.ingest.files import listing, next_reads
from minicontroller.pipeline.ingest.leftovers import leftovers, note_leftovers
from minicontroller.pipeline.ingest.state import State
from minicontroller.pipeline.location import Location
from minicontroller.pipeline.schemas import Table
from minicontroller.pipeline.status import print_differences
from tests.audit.logs import CLUSTER, a_creation, a_log
from tests.pipeline.ingest.local import ingest_here, places, rows_of

NAME = f"audit-{CLUSTER}-{1:010}-{1:012}-1.ndjson"
LINES = [encode(event) for event in a_log(58)]


@pytest.fixture(name="audit")
def a_folder(tmp_path: Path) -> Path:
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / NAME).write_bytes(b"".join(LINES))
    return tmp_path / "audit"


def problems(tables: Path, audit: Path) -> list[tuple[str, int | None]]:
    """The kinds of problems with their first places, after another run."""
    state = ingest_here(tables, audit)
    found = listing([Location.local(audit)])
    note_leftovers(state, found, leftovers(found, state.files))
    return [(row["kind"], row["first_sequence"]) for row in problem_rows(state)]


def compared(tables: Path) -> tuple[bool, str]:
    said = io.StringIO()
    return print_differences(Location.local(tables), said), said.getvalue()


def overwritten(file: Path, data: bytes) -> None:
    """As an editor that keeps the time of the last change."""
    before = file.stat()
    file.write_bytes(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_principal_of_the_same_length_is_noticed(tmp_path: Path, audit: Path) -> None:
    """Another line in the place of one that was read is a conflict, also if the file's size and
    time are as before, and the first one stays.
    """
    tables = tmp_path / "tables"
    assert problems(tables, audit) == []
    lines = [*LINES]
    lines[30] = lines[30].replace(b"User:alice", b"User:mallo")
    overwritten(audit / NAME, b"".join(lines))
    assert compared(tables) == (
        False,
        f"{audit / NAME} differs from what was read of it: it was cut or changed.\n1 audit file compared with what was read.\n",
    )
    assert problems(tables, audit) == [("conflict", 31)]
    assert {row["principal"] for row in rows_of(tables, Table.EVENTS)} == {"User:alice", None}
    assert compared(tables) == (True, "1 audit file compared with what was read.\n")


@pytest.mark.parametrize("lines", [LINES[:-7], [*LINES[:20], *LINES[27:]]], ids=["its tail", "some lines"])
def test_what_was_cut_off_is_told(tmp_path: Path, audit: Path, lines: list[bytes]) -> None:
    """Events that a file holds no more stay in the tables, and are told until they are back."""
    tables = tmp_path / "tables"
    ingest_here(tables, audit)
    (audit / NAME).write_bytes(b"".join(lines))
    assert problems(tables, audit) == [("lost", None)]
    assert compared(tables)[1].startswith(f"{audit / NAME} holds 7 events fewer than were read from it.\n")
    assert len(places(tables)) == len(LINES)
    (audit / NAME).write_bytes(b"".join(LINES))
    assert problems(tables, audit) == []
    (audit / NAME).unlink()
    assert "1 file that was read is no longer in any folder." in compared(tables)[1]


def test_what_was_removed_and_counted_anew_is_told(tmp_path: Path, audit: Path) -> None:
    """Later events in the places of those that were removed are in conflict with them."""
    tables = tmp_path / "tables"
    ingest_here(tables, audit)
    anew = [
        line.replace(b'"sequence":%d,' % (number + 7), b'"sequence":%d,' % number)
        for number, line in enumerate(LINES[27:], start=21)
    ]
    anew = [line.replace(b'"name":"t', b'"name":"x') for line in anew]
    (audit / NAME).write_bytes(b"".join([*LINES[:20], *anew]))
    kinds = [kind for kind, _ in problems(tables, audit)]
    assert set(kinds) == {"conflict", "lost"}


def test_a_file_that_is_filled_from_its_end(tmp_path: Path, audit: Path) -> None:
    """Zeros that become lines later are read then, and leave the quarantine."""
    tables, data = tmp_path / "tables", b"".join(LINES)
    middle = len(b"".join(LINES[:31])) - 10
    (audit / NAME).write_bytes(b"\0" * middle + data[middle:])
    ingest_here(tables, audit)
    assert (len(places(tables)), len(rows_of(tables, Table.QUARANTINE))) == (len(LINES) - 31, 1)
    (audit / NAME).write_bytes(data)
    assert problems(tables, audit) == []
    state = ingest_here(tables, audit)
    assert (len(places(tables)), rows_of(tables, Table.QUARANTINE), state.quarantined) == (len(LINES), [], 0)


def test_a_compressed_file_that_was_seen_half_written(tmp_path: Path, audit: Path) -> None:
    """What it lacked comes when it is whole, and its row in quarantine goes."""
    tables, whole = tmp_path / "tables", gzip.compress(b"".join(LINES), 0)
    (audit / NAME).unlink()
    for half in (whole[: len(whole) // 2], whole[: len(whole) // 3] + b"\0" * (len(whole) - len(whole) // 3)):
        (audit / f"{NAME}.gz").write_bytes(half)
        ingest_here(tables, audit)
        assert len(rows_of(tables, Table.QUARANTINE)) >= 1
    (audit / f"{NAME}.gz").write_bytes(whole)
    state = ingest_here(tables, audit)
    assert (len(places(tables)), rows_of(tables, Table.QUARANTINE), state.quarantined) == (len(LINES), [], 0)
    assert problems(tables, audit) == []


def test_what_did_not_change_is_not_read_again(tmp_path: Path, audit: Path) -> None:
    """A file with another time, another place or a compressed copy is compared, and nothing of it
    is read again; while a log is followed, a quiet file is left alone.
    """
    tables = tmp_path / "tables"

    def reads(state: State, *, is_thorough: bool = True) -> list[tuple[int, int, bool]]:
        found = listing([Location.local(audit)])
        chosen = next_reads(found, state.files, max_bytes=1 << 30, piece_bytes=1 << 30, is_thorough=is_thorough)
        return [(each.begin, each.end, each.again) for each in chosen]

    state = ingest_here(tables, audit)
    size = (audit / NAME).stat().st_size
    assert reads(state) == []
    os.utime(audit / NAME)
    assert (reads(state, is_thorough=False), reads(state)) == ([], [(size, size, False)])
    state = ingest_here(tables, audit)
    assert reads(state) == [] and len(places(tables)) == len(LINES)
    (audit / f"{NAME}.gz").write_bytes(gzip.compress((audit / NAME).read_bytes()))
    (audit / NAME).unlink()
    state = ingest_here(tables, audit)
    assert (reads(state), problems(tables, audit)) == ([], [])


@given(st.data(), st.integers(0, 3 * BLOCK_BYTES))
def test_parts_come_to_the_digest_of_the_whole(data: st.DataObject, size: int) -> None:
    """However a text is divided, and in whatever pieces it comes; another text has another one."""
    text = (a_creation(1).cluster_id.encode() * size)[:size]

    def digest(begin: int, end: int, step: int) -> Digest:
        hashing = Hashing(begin)
        for offset in range(begin, end, step):
            hashing.update(text[offset : min(end, offset + step)])
        hashing.mark()
        return hashing.marked

    cuts = sorted({*data.draw(st.lists(st.integers(0, size), max_size=4)), size})
    found, step = digest(0, cuts[0], BLOCK_BYTES), data.draw(st.integers(1_000, 2 * BLOCK_BYTES))
    for before, end in pairwise(cuts):
        found = found.followed_by(digest(block_begin(before), end, step))
    whole = Hashing(0)
    whole.update(text)
    whole.mark()
    assert found == whole.marked
    other = Hashing(0)
    other.update(text[:-1] + b"\0" if text else b"\0")
    other.mark()
    assert other.marked != found
