"""Files that grow, are compressed and moved between runs: each of their events is in the tables
once.
"""

import gzip
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.audit.event import encode
from minicontroller.audit.verifying import Verification
from minicontroller.pipeline.ingest.batches import note, work_units
from minicontroller.pipeline.ingest.files import FileProgress, Read, listing
from minicontroller.pipeline.ingest.leftovers import leftovers, note_leftovers
from minicontroller.pipeline.ingest.staging_result import ReadProgress, StagingResult
from minicontroller.pipeline.ingest.state import State
from minicontroller.pipeline.location import Location
from minicontroller.pipeline.schemas import Table
from tests.audit.logs import CLUSTER, a_creation, a_log, write
from tests.pipeline.ingest.local import ingest_here, places, rows_of

NAME = f"audit-{CLUSTER}-{1:010}-{1:012}-1.ndjson"


def duplicates(state: State) -> int:
    return sum(epoch.duplicates for cluster in state.clusters.values() for epoch in cluster.epochs.values())


def compress(file: Path, ending: str) -> Path:
    made = file.with_name(file.name + ending)
    if ending == ".gz":
        made.write_bytes(gzip.compress(file.read_bytes()))
    else:
        with pa.output_stream(made, compression="zstd") as stream:
            stream.write(file.read_bytes())
    file.unlink()
    return made


class World:
    """Two folders and what happens to the files in them."""

    def __init__(self, root: Path) -> None:
        self.folders = root / "one", root / "two"
        for folder in self.folders:
            folder.mkdir()
        self.tables = root / "tables"
        self.lines: list[bytes] = []
        self.half = self.garbled = 0
        self.ever = set[tuple[int, str]]()
        """The lines that a run has met."""
        self.state = State()

    @property
    def file(self) -> Path | None:
        return next((path for folder in self.folders for path in folder.iterdir()), None)

    def append(self, count: int) -> None:
        """Whole events, if the file is plain."""
        for _ in range(count):
            self._finish_line()
            self._add(self._line())

    def garble(self) -> None:
        """A line that is no event, and as long as no other one."""
        self._finish_line()
        self.garbled += 1
        self._add(b"x" * self.garbled + b".\n")

    def mend(self, at: int) -> None:
        """A line that was no event becomes one, or another one becomes something of its size."""
        if self.lines and (file := self._plain()) is not None:
            at %= len(self.lines)
            event = encode(a_creation(at + 1))
            self.lines[at] = event if self.lines[at] != event else b"." * (len(event) - 1) + b"\n"
            half = file.read_bytes()[len(file.read_bytes()) - self.half :] if self.half else b""
            file.write_bytes(b"".join(self.lines) + half)

    def cut(self, count: int) -> None:
        """The controller takes back what it could not write to its end."""
        if (file := self._plain()) is not None:
            self.lines, self.half = self.lines[:-count], 0
            file.write_bytes(b"".join(self.lines))

    def begin_line(self, share: float) -> None:
        """A part of an event whose rest is yet to come."""
        if not self.half and (file := self._plain()) is not None:
            line = self._line()
            self.half = max(1, int(share * (len(line) - 1)))
            with file.open("ab") as stream:
                stream.write(line[: self.half])

    def compress(self, ending: str) -> None:
        if (file := self._plain()) is not None:
            self._finish_line()
            compress(file, ending)

    def move(self) -> None:
        if (file := self.file) is not None:
            other = self.folders[file.parent == self.folders[0]]
            shutil.move(file, other / file.name)

    def run(self, batch_bytes: int) -> None:
        self.state = ingest_here(self.tables, *self.folders, batch_bytes=batch_bytes)
        self.ever.update(enumerate((line.decode().strip() for line in self.lines), start=1))

    def _plain(self) -> Path | None:
        file = self.file
        if file is None:
            file = self.folders[0] / NAME
            file.touch()
        return file if file.suffix == ".ndjson" else None

    def _line(self) -> bytes:
        return encode(a_creation(len(self.lines) + 1))

    def _finish_line(self) -> None:
        if self.half and (file := self._plain()) is not None:
            with file.open("ab") as stream:
                stream.write(self._line()[self.half :])
            self.lines.append(self._line())
            self.half = 0

    def _add(self, line: bytes) -> None:
        if (file := self._plain()) is not None:
            with file.open("ab") as stream:
                stream.write(line)
            self.lines.append(line)


STEP = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 40)),
    st.tuples(st.just("begin_line"), st.floats(0, 1)),
    st.tuples(st.just("garble")),
    st.tuples(st.just("cut"), st.integers(1, 20)),
    st.tuples(st.just("mend"), st.integers(0, 100)),
    st.tuples(st.just("compress"), st.sampled_from([".gz", ".zst"])),
    st.tuples(st.just("move")),
    st.tuples(st.just("run"), st.sampled_from([1000, 1 << 20])),
    st.tuples(st.just("run"), st.just(1 << 20)),
)


@given(st.lists(STEP, max_size=12))
@settings(max_examples=60)
def test_whatever_happens_to_a_file(steps: Sequence[tuple[Any, ...]]) -> None:
    """A file that grows, line by half line, becomes shorter, changes in its midst, is compressed,
    moved and read in between is in the tables once, and nothing is a duplicate (P-1d). Quarantine
    has what is no event now.
    """
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        for name, *values in [*steps, ("run", 1 << 20)]:
            getattr(world, name)(*values)
        events = [(CLUSTER, 1, number) for number, text in sorted(world.ever) if text.startswith("{")]
        garbage = sorted(
            (number, line.decode().strip()) for number, line in enumerate(world.lines, 1) if line.endswith(b".\n")
        )
        quarantined = sorted((row["line"], row["text"]) for row in rows_of(world.tables, Table.QUARANTINE))
        assert (places(world.tables), quarantined) == (events, garbage)
        assert (duplicates(world.state), world.state.quarantined) == (0, len(garbage))


def test_a_plain_file_counts_while_it_is_compressed(tmp_path: Path) -> None:
    """While `gzip` writes, the plain file is still there, and the compressed one is not complete:
    it is not read.
    """
    file = write(tmp_path / NAME, a_log(3))
    whole = gzip.compress(file.read_bytes())
    (tmp_path / f"{NAME}.gz").write_bytes(whole[: len(whole) // 2])
    ingest_here(tmp_path / "tables", tmp_path)
    (tmp_path / f"{NAME}.gz").write_bytes(whole)
    file.unlink()
    state = ingest_here(tmp_path / "tables", tmp_path)
    assert len(places(tmp_path / "tables")) == 5
    assert (duplicates(state), state.quarantined) == (0, 0)


@pytest.mark.parametrize("share", [0.5, 1])
def test_verify_counts_the_same_of_a_file_that_is_kept_twice(tmp_path: Path, share: float) -> None:
    """`audit verify` and the tables take each event of a plain file with its copy
    beside it once.
    """
    audit = tmp_path / "audit"
    audit.mkdir()
    file = write(audit / NAME, a_log(3))
    whole = gzip.compress(file.read_bytes())
    (audit / f"{NAME}.gz").write_bytes(whole[: int(len(whole) * share)])
    state = ingest_here(tmp_path / "tables", audit)
    verification = Verification([audit])
    assert list(verification.findings()) == []
    assert (len(places(tmp_path / "tables")), duplicates(state)) == (verification.summary.events, 0)


@pytest.mark.parametrize(
    ("ending", "data"), [(".gz", b""), (".gz", b"\x1f"), (".gz", b"none"), (".zst", b""), (".zst", b"none")]
)
def test_a_compressed_file_without_a_beginning_stops_nothing(ending: str, data: bytes, tmp_path: Path) -> None:
    """What a crash left of a compressed file does not keep the files beside it out."""
    write(tmp_path / NAME, a_log(3))
    (tmp_path / f"other.ndjson{ending}").write_bytes(data)
    ingest_here(tmp_path / "tables", tmp_path)
    assert len(places(tmp_path / "tables")) == 5
    rows = rows_of(tmp_path / "tables", Table.QUARANTINE)
    assert [(row["line"], row["reason"].startswith("the file is")) for row in rows] == [(1, True)] * len(rows)


def test_a_torn_file_that_is_moved(tmp_path: Path) -> None:
    """It is told where it is now, and no more when it is whole."""
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
    whole = write(one / NAME, a_log(3)).read_bytes()
    (one / NAME).write_bytes(whole[:-20])
    write(one / NAME.replace("0001-1.", "0005-1."), a_log(3)[4:])
    state = ingest_here(tmp_path / "tables", one, other)

    def noted() -> list[str]:
        found = listing([Location.local(one), Location.local(other)])
        note_leftovers(state, found, leftovers(found, state.files))
        return list(state.torn)

    assert noted() == [str(one / NAME)]
    (one / NAME).rename(other / NAME)
    assert noted() == [str(other / NAME)]
    (other / NAME).write_bytes(whole)
    state.files.update(ingest_here(tmp_path / "tables", one, other).files)
    assert noted() == []


def test_a_cut_compressed_file_is_told_and_read_on_when_it_is_whole(tmp_path: Path) -> None:
    """What a broken file gives is taken, why there is no more is in quarantine, and a better copy
    adds the rest.
    """
    file = write(tmp_path / NAME, a_log(4000))
    whole = gzip.compress(file.read_bytes())
    file.unlink()
    (tmp_path / f"{NAME}.gz").write_bytes(whole[:-1000])
    ingest_here(tmp_path / "tables", tmp_path)
    some = len(places(tmp_path / "tables"))
    [row] = rows_of(tmp_path / "tables", Table.QUARANTINE)
    assert 0 < some < 4002
    assert row["line"] == some + 1
    assert row["reason"].startswith("the file is cut: ")
    (tmp_path / f"{NAME}.gz").write_bytes(whole)
    state = ingest_here(tmp_path / "tables", tmp_path)
    assert (len(places(tmp_path / "tables")), duplicates(state)) == (4002, 0)


def test_a_file_that_became_shorter_is_read_again(tmp_path: Path) -> None:
    """After a failed write the controller takes back the last lines and gives them again: no event
    is lost, and none is called a duplicate.
    """
    events = a_log(6)
    write(tmp_path / NAME, events)
    ingest_here(tmp_path / "tables", tmp_path)
    write(tmp_path / NAME, events[:4])
    ingest_here(tmp_path / "tables", tmp_path)
    write(tmp_path / NAME, [*events, a_creation(9)])
    state = ingest_here(tmp_path / "tables", tmp_path)
    assert [sequence for _, _, sequence in places(tmp_path / "tables")] == list(range(1, 10))
    assert duplicates(state) == 0


@pytest.mark.parametrize("left", [b"", b"{"])
def test_a_file_that_became_empty_is_another_one(tmp_path: Path, left: bytes) -> None:
    """What it gets later is read, even if a line ends where reading had ended."""
    for sequences in ([3], [4], [5, 6]):
        write(tmp_path / NAME, list(map(a_creation, sequences)))
        ingest_here(tmp_path / "tables", tmp_path)
        (tmp_path / NAME).write_bytes(left)
        ingest_here(tmp_path / "tables", tmp_path)
    assert [sequence for _, _, sequence in places(tmp_path / "tables")] == [3, 4, 5, 6]


def test_how_far_a_moved_file_was_read() -> None:
    """It is known under its new name once a part was read, whatever the parts, and until then under
    its old one.
    """
    state = State(files={"a/x": FileProgress(10, highest=10)})
    parts = [Read("b/x", begin, begin + 10, former="a/x") for begin in (10, 20)]
    note(state, StagingResult(0, progress=[ReadProgress(parts[0], 10, 0, "Permission denied")]))
    assert state.files == {"a/x": FileProgress(10, highest=10)}
    note(state, StagingResult(0, progress=[ReadProgress(each, each.end, 0) for each in parts]))
    assert state.files == {"b/x": FileProgress(30, highest=30)}


def test_a_compressed_file_that_became_shorter_is_read_again(tmp_path: Path) -> None:
    """Another file in its place is no continuation of it."""
    events, file = [*a_log(200), a_creation(203)], tmp_path / f"{NAME}.gz"
    file.write_bytes(gzip.compress(b"".join(map(encode, events[:-1]))))
    ingest_here(tmp_path / "tables", tmp_path)
    file.write_bytes(gzip.compress(b"".join(map(encode, events[-3:]))))
    state = ingest_here(tmp_path / "tables", tmp_path)
    assert [sequence for _, _, sequence in places(tmp_path / "tables")] == list(range(1, 204))
    assert duplicates(state) == 0


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize(("name", "conflicts"), [("t", 0), ("another", 3)])
def test_a_file_that_lost_its_end_before_it_was_compressed(
    tmp_path: Path, name: str, conflicts: int, ending: str
) -> None:
    """Other lines are no continuation of those that were read, and the same ones no duplicates."""
    events = [*a_log(1), *(a_creation(sequence) for sequence in range(4, 11))]
    write(tmp_path / NAME, events)
    ingest_here(tmp_path / "tables", tmp_path)
    write(tmp_path / NAME, events[:7])
    if not conflicts:
        ingest_here(tmp_path / "tables", tmp_path)
    compress(write(tmp_path / NAME, [*events[:7], *(a_creation(sequence, name) for sequence in range(8, 15))]), ending)
    state = ingest_here(tmp_path / "tables", tmp_path)
    assert [sequence for _, _, sequence in places(tmp_path / "tables")] == list(range(1, 15))
    assert (duplicates(state), state.quarantined) == (0, 0)
    assert [run.count for run in state.clusters[CLUSTER].epochs[1].conflicts] == [conflicts] * bool(conflicts)


def test_a_file_that_is_gone_is_read_when_it_comes_back(tmp_path: Path) -> None:
    """Between the plan and the reader a file can vanish: the run goes on, and a later
    one reads it.
    """
    folder, tables = tmp_path / "audit", tmp_path / "tables"
    folder.mkdir()
    write(folder / "a.ndjson", a_log(3))
    ingest_here(tables, folder)
    hidden = write(tmp_path / "hidden", [*a_log(3), a_creation(6)])
    (folder / "a.ndjson").unlink()
    (folder / "a.ndjson").symlink_to(hidden)
    (folder / "b.ndjson").symlink_to(hidden.with_name("nowhere"))
    ingest_here(tables, folder)
    assert len(places(tables)) == 6


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_compressed_in_several_pieces(tmp_path: Path, ending: str) -> None:
    """A compressed file may be several, one after the other, as `cat a.gz b.gz` makes it."""
    one, other = (write(tmp_path / name, events) for name, events in (("1", a_log(3)), ("2", [a_creation(6)])))
    joined = b"".join(compress(file, ending).read_bytes() for file in (one, other))
    (tmp_path / f"a.ndjson{ending}").write_bytes(joined)
    ingest_here(tmp_path / "tables", tmp_path)
    assert len(places(tmp_path / "tables")) == 6


def test_work_units_are_about_equal() -> None:
    """Each read is in one share, in order, and no share is half a read away from its size."""
    reads = [Read("a", begin, begin + size) for begin, size in ((0, 30), (30, 3), (33, 64), (97, 1), (98, 22))]
    found = work_units(reads * 10, 240)
    assert [read for share in found for read in share.reads] == reads * 10
    assert [share.number for share in found] == [*range(5)]
    assert all(abs(sum(read.size for read in share.reads) - 240) <= 64 for share in found)
