"""Files: named in the order of what happened, rotated by size and by age, of whole lines only."""

import os
from collections import deque
from pathlib import Path

import pytest

from minicontroller.audit.files import audit_files, file_name
from minicontroller.audit.writing import AuditFiles, EncodedLine

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lines(*sequences: int, epoch: int = 1, size: int = 10) -> deque[EncodedLine]:
    return deque(EncodedLine(epoch, sequence, 0.0, b"x" * (size - 1) + b"\n") for sequence in sequences)


def files_in(folder: Path, clock: Clock, max_bytes: int = 30) -> AuditFiles:
    return AuditFiles(folder, cluster_id=CLUSTER, node=3, max_bytes=max_bytes, max_seconds=60.0, clock=clock)


def sizes(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in audit_files([folder])}


def test_rotation(tmp_path: Path) -> None:
    """A file that is full is followed by another one, which is named by its first event; so is one
    that is old, and another epoch's.
    """
    clock = Clock()
    files = files_in(tmp_path, clock)
    files.commit(lines(1, 2, 3, 4))
    clock.now = 61.0
    files.commit(lines(5))
    files.commit(lines(1, epoch=2))
    files.close()
    assert sizes(tmp_path) == {
        file_name(CLUSTER, 1, 1, 3): 30,
        file_name(CLUSTER, 1, 4, 3): 10,
        file_name(CLUSTER, 1, 5, 3): 10,
        file_name(CLUSTER, 2, 1, 3): 10,
    }


def test_an_event_larger_than_a_file(tmp_path: Path) -> None:
    """An event larger than a file gets a file of its own."""
    files = files_in(tmp_path, Clock())
    files.commit(deque([*lines(1), *lines(2, size=100), *lines(3)]))
    files.close()
    assert list(sizes(tmp_path).values()) == [10, 100, 10]


def test_what_cannot_be_written_stays(tmp_path: Path) -> None:
    """A write that fails leaves whole lines in the file, and the rest with the caller, who may try
    again.
    """
    files = files_in(tmp_path, Clock(), max_bytes=1000)
    files.commit(lines(1))
    os.dup2(os.open("/dev/full", os.O_WRONLY), files._descriptor)
    waiting = lines(2, 3)
    with pytest.raises(OSError, match="No space left"):
        files.commit(waiting)
    assert [line.sequence for line in waiting] == [2, 3]
    assert list(sizes(tmp_path).values()) == [10]
    files.close()
    files.commit(waiting)
    files.close()
    assert list(sizes(tmp_path).values()) == [10, 20]


def test_a_file_that_is_there_is_never_touched(tmp_path: Path) -> None:
    """Another one is begun beside it, and sorts behind it."""
    there = tmp_path / file_name(CLUSTER, 1, 1, 3)
    there.write_bytes(b"there\n")
    files = files_in(tmp_path, Clock())
    files.commit(lines(1))
    files.close()
    assert there.read_bytes() == b"there\n"
    again = there.name.replace(".ndjson", ".1.ndjson")
    assert [file.name for file in audit_files([tmp_path])] == [there.name, again]


def test_an_open_file_that_somebody_removes(tmp_path: Path) -> None:
    """Events in a removed file are written again to the folder before any later event, and count as
    written only then.
    """
    files = files_in(tmp_path, Clock(), max_bytes=1000)
    files.commit(lines(1, 2))
    (tmp_path / file_name(CLUSTER, 1, 1, 3)).unlink()
    waiting = lines(3)
    with pytest.raises(OSError, match="the open file was removed"):
        files.commit(waiting)
    assert len(waiting) == 1
    assert sizes(tmp_path) == {}
    files.commit(waiting)
    assert sizes(tmp_path) == {file_name(CLUSTER, 1, 1, 3): 30}
    assert files.look() is False
    files.close()


def test_a_removed_file_whose_folder_is_gone(tmp_path: Path) -> None:
    """Each check fails while there is no folder to which the removed file can be written again."""
    folder = tmp_path / "audit"
    folder.mkdir()
    files = files_in(folder, Clock(), max_bytes=1000)
    files.commit(lines(1, 2))
    (folder / file_name(CLUSTER, 1, 1, 3)).unlink()
    folder.rmdir()
    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            files.look()
    folder.mkdir()
    assert files.look() is True
    files.close()
    assert sizes(folder) == {file_name(CLUSTER, 1, 1, 3): 20}


def test_an_open_file_that_somebody_cuts(tmp_path: Path) -> None:
    """A truncated open file is a failure, and its pending events go to another file; an event may
    be written twice but is never lost.
    """
    files = files_in(tmp_path, Clock(), max_bytes=1000)
    files.commit(lines(1, 2))
    os.truncate(tmp_path / file_name(CLUSTER, 1, 1, 3), 0)
    waiting = lines(3)
    with pytest.raises(OSError, match="was cut by somebody else"):
        files.commit(waiting)
    files.commit(waiting)
    files.close()
    assert sizes(tmp_path) == {file_name(CLUSTER, 1, 1, 3): 10, file_name(CLUSTER, 1, 3, 3): 10}


def test_an_open_file_that_somebody_moves(tmp_path: Path) -> None:
    """A moved file is left where it is, and another one is begun."""
    files = files_in(tmp_path, Clock(), max_bytes=1000)
    files.commit(lines(1, 2))
    (tmp_path / file_name(CLUSTER, 1, 1, 3)).rename(tmp_path / "moved")
    assert files.look() is False
    files.commit(lines(3))
    files.close()
    assert sizes(tmp_path) == {file_name(CLUSTER, 1, 3, 3): 10}
    assert (tmp_path / "moved").stat().st_size == 20
