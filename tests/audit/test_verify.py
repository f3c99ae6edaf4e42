"""`audit verify` reports truncated, duplicated, reordered and contradictory logs."""

import gzip
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minicontroller.audit.event import Dropped, Effect, Observed, encode
from minicontroller.audit.files import file_name
from minicontroller.audit.reading import read
from minicontroller.cli.commands import commands
from tests.audit.logs import (
    CLUSTER,
    a_creation,
    a_log,
    a_state,
    an_empty_snapshot,
    changed,
    found,
    stamp,
    write,
)

ANY_TIME = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], max_examples=200)


def name_of(sequence: int = 1, epoch: int = 1) -> str:
    return file_name(CLUSTER, epoch, sequence, 1)


def test_a_whole_log(tmp_path: Path) -> None:
    """A complete log has no findings, and the command exits with 0."""
    write(tmp_path / name_of(), a_log())
    assert found(tmp_path) == []
    result = CliRunner().invoke(commands, ["audit", "verify", str(tmp_path)])
    assert (result.exit_code, result.stdout) == (0, "")


@ANY_TIME
@given(cut=st.integers(min_value=1))
def test_a_file_cut_at_any_byte(tmp_path: Path, cut: int) -> None:
    """A truncated file has whole events and at most one incomplete line, which is reported."""
    events = a_log()
    data = b"".join(map(encode, events))
    cut %= len(data)
    file = tmp_path / name_of()
    file.write_bytes(data[:cut])
    read_back = list(read(file))
    whole = data[:cut].count(b"\n")
    assert [each.event for each in read_back if each.event] == events[:whole]
    is_torn = cut > 0 and data[cut - 1 : cut] != b"\n"
    assert found(tmp_path) == ["torn"] * is_torn


@ANY_TIME
@given(cut=st.integers(min_value=1), follows=st.integers(min_value=0, max_value=1))
def test_a_cut_in_the_middle(tmp_path: Path, cut: int, follows: int) -> None:
    """Missing events at the end of a file that another file follows are reported, and none if
    nothing is missing.
    """
    first, second = a_log(4), [a_creation(sequence, f"t{sequence}") for sequence in range(7, 9)]
    data = b"".join(map(encode, first))
    cut %= len(data) + 1
    (tmp_path / name_of()).write_bytes(data[:cut])
    write(tmp_path / name_of(7), second)
    expected = set()
    if data[:cut].count(b"\n") < len(first):
        expected.add("gap")
    if cut and data[cut - 1 : cut] != b"\n":
        expected.add("torn")
    assert set(found(tmp_path)) == expected


@ANY_TIME
@given(position=st.integers(min_value=0), byte=st.integers(min_value=0, max_value=255))
def test_any_byte_may_be_wrong(tmp_path: Path, position: int, byte: int) -> None:
    """A log with a broken byte is read to its end, whatever it says then."""
    data = bytearray(b"".join(map(encode, a_log(2))))
    data[position % len(data)] = byte
    (tmp_path / name_of()).write_bytes(data)
    found(tmp_path)


@pytest.mark.parametrize("missing", range(1, 6))
def test_a_missing_event(tmp_path: Path, missing: int) -> None:
    """Whichever event is missing, the one after it shows it, with file and line."""
    events = a_log(5)
    del events[missing]
    file = write(tmp_path / name_of(), events)
    result = CliRunner().invoke(commands, ["audit", "verify", str(tmp_path)])
    assert result.exit_code == 1
    first = result.stdout.splitlines()[0]
    assert first == f"{file}:{missing + 1}: gap: event {missing + 1} is missing in epoch 1"


def test_a_double_event(tmp_path: Path) -> None:
    """A duplicate event is reported and replayed once."""
    events = a_log(3)
    write(tmp_path / name_of(), [*events[:4], events[3], *events[4:]])
    assert found(tmp_path) == ["duplicate"]


def test_an_unknown_schema_version(tmp_path: Path) -> None:
    """An unknown schema version is reported by its number, along with other faults of the line."""
    events = a_log(1)
    file = write(tmp_path / name_of(), events)
    with file.open("ab") as stream:
        stream.write(b'{"kind":"decision","schema_version":2}\nnonsense\n{"kind":"new","schema_version":1}\n')
    assert found(tmp_path) == ["unknown-schema", "unreadable", "unreadable"]


def test_epochs_out_of_order(tmp_path: Path) -> None:
    """An older epoch after a newer one, in one file or in files whose names say nothing."""
    write(tmp_path / "a.ndjson", an_empty_snapshot(2))
    write(tmp_path / "b.ndjson", an_empty_snapshot(1))
    assert found(tmp_path) == ["epoch-order"] * 2


def test_the_clock_orders_nothing(tmp_path: Path) -> None:
    """A clock that goes backwards is no finding: the sequence orders."""
    events = a_log(5)
    write(tmp_path / name_of(), [changed(event, time_ms=-event.time_ms) for event in events])
    assert found(tmp_path) == []


def test_a_snapshot_that_is_not_what_came_before(tmp_path: Path) -> None:
    """If replaying an epoch does not give the next snapshot, the topics that differ are
    reported.
    """
    write(tmp_path / name_of(), a_log(2))
    write(tmp_path / name_of(epoch=2), an_empty_snapshot(2))
    assert found(tmp_path) == ["snapshot"]


def test_an_unknown_effect_is_for_the_snapshot_to_tell(tmp_path: Path) -> None:
    """A change in doubt when its controller was replaced may or may not be in the next snapshot."""
    doubtful = a_creation(3, effect=Effect.UNKNOWN, after=None, error_code=7, error="REQUEST_TIMED_OUT")
    write(tmp_path / name_of(), [*an_empty_snapshot(), doubtful])
    write(tmp_path / name_of(epoch=2), an_empty_snapshot(2))
    assert found(tmp_path) == []


def test_a_snapshot_without_an_end(tmp_path: Path) -> None:
    """A snapshot without an end is wrong in the same epoch, but not where a controller lost its
    place while it wrote one.
    """
    begin, _end = an_empty_snapshot()
    write(tmp_path / name_of(), [begin, a_creation(2)])
    assert found(tmp_path) == ["snapshot"]
    write(tmp_path / name_of(), [begin])
    write(tmp_path / name_of(epoch=2), an_empty_snapshot(2))
    assert found(tmp_path) == []


def test_an_epoch_without_a_snapshot(tmp_path: Path) -> None:
    """An epoch whose first event is not a snapshot is reported."""
    write(tmp_path / name_of(), [a_creation(1)])
    assert found(tmp_path) == ["no-snapshot"]


def test_a_state_that_does_not_fit(tmp_path: Path) -> None:
    """An event whose `before` is not what the events before it give."""
    wrong = Observed(**stamp(3), topic="t", before=a_state(2), after=a_state(3))
    write(tmp_path / name_of(), [*an_empty_snapshot(), wrong])
    assert found(tmp_path) == ["state"]


def test_what_was_dropped(tmp_path: Path) -> None:
    """A dropped event is reported as a gap and with its reason."""
    gone = Dropped(**stamp(6), first_sequence=3, last_sequence=5, reason="No space left on device")
    write(tmp_path / name_of(), [*an_empty_snapshot(), gone])
    assert found(tmp_path) == ["gap", "dropped"]


def test_another_files_event(tmp_path: Path) -> None:
    """A file's name says whose events are in it."""
    write(tmp_path / file_name(CLUSTER, 1, 1, 9), an_empty_snapshot())
    assert found(tmp_path) == ["misplaced"] * 2


def test_a_compressed_file(tmp_path: Path) -> None:
    """A compressed file is read like others, and a truncated one is reported."""
    data = b"".join(map(encode, a_log(2)))
    (tmp_path / f"{name_of()}.gz").write_bytes(gzip.compress(data))
    write(tmp_path / name_of(5), [a_creation(5, "t5")])
    assert found(tmp_path) == []
    (tmp_path / f"{name_of()}.gz").write_bytes(gzip.compress(data)[:-30])
    assert "torn" in found(tmp_path)


def test_no_log_at_all(tmp_path: Path) -> None:
    """A folder without files is said to be one, with what may be the reason, and is no clean bill
    of health; beside the folder of another node it is nothing to complain of.
    """
    result = CliRunner().invoke(commands, ["audit", "verify", str(tmp_path)])
    assert result.exit_code == 1
    assert "no audit file" in result.stderr and "when it becomes the active controller" in result.stderr
    (other := tmp_path / "other").mkdir()
    write(other / name_of(), a_log(2))
    (empty := tmp_path / "empty").mkdir()
    assert CliRunner().invoke(commands, ["audit", "verify", str(empty), str(other)]).exit_code == 0
