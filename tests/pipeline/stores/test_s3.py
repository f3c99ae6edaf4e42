"""Audit files and tables on S3: each event is in the tables once, whatever the store does."""

import gzip
import os
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from pyarrow.fs import FileSelector

from minicontroller.audit.event import encode
from minicontroller.pipeline.datafiles import batches
from minicontroller.pipeline.delta import ChangedMeanwhileError, Tables, TablesError
from minicontroller.pipeline.ingest.batches import StagingError
from minicontroller.pipeline.ingest.files import Read, listing
from minicontroller.pipeline.ingest.lines import Reader
from minicontroller.pipeline.ingest.rebuilding import clear_tables
from minicontroller.pipeline.ingest.state import State, check
from minicontroller.pipeline.location import READ_AHEAD_BYTES, File, Location, output_stream, reason
from minicontroller.pipeline.probing import probe
from minicontroller.pipeline.schemas import Table
from tests.audit.logs import CLUSTER, a_log
from tests.cli.command import call
from tests.pipeline.ingest.local import ingest_here, places, rows_of
from tests.pipeline.stores.buckets import Bucket
from tests.support.s3 import S3

LINES = [encode(event) for event in a_log(38)]
PLACES = [(CLUSTER, 1, number) for number in range(1, len(LINES) + 1)]
COMMAND_SECONDS = 120
DENIED = "permission denied: the credentials need the rights to list and read there, and for tables to write and delete"
LOCATED = FileSelector("", recursive=True, allow_not_found=True)


def name(sequence: int) -> str:
    return f"audit-{CLUSTER}-{1:010}-{sequence:012}-1.ndjson"


def duplicates(state: State) -> int:
    return sum(epoch.duplicates for cluster in state.clusters.values() for epoch in cluster.epochs.values())


def fill(bucket: Bucket, files: int = 4) -> None:
    """Put the log into so many files."""
    bounds = [number * len(LINES) // files for number in range(files + 1)]
    for begin, end in pairwise(bounds):
        bucket.put(name(begin + 1), b"".join(LINES[begin:end]))


def test_files_that_are_compressed_grow_and_move(bucket: Bucket, tmp_path: Path) -> None:
    """Objects that grow, are compressed, and move to a local folder and back are in the tables once
    (P-2b).
    """
    bucket.put(name(1), b"".join(LINES[:5]) + LINES[5][:7])
    bucket.put(name(11) + ".gz", gzip.compress(b"".join(LINES[10:20])))
    ingest_here(bucket.tables, bucket.audit, tmp_path)
    assert places(bucket.tables) == [*PLACES[:5], *PLACES[10:20]]
    bucket.put(name(1), b"".join(LINES[:10]))
    (tmp_path / name(21)).write_bytes(b"".join(LINES[20:30]))
    ingest_here(bucket.tables, bucket.audit, tmp_path)
    bucket.put(name(1) + ".zst", zstandard.compress(b"".join(LINES[:10])))
    bucket.delete(name(1))
    bucket.put(name(21), (tmp_path / name(21)).read_bytes())
    (tmp_path / name(21)).unlink()
    (tmp_path / (name(11) + ".gz")).write_bytes(gzip.compress(b"".join(LINES[10:20])))
    bucket.delete(name(11) + ".gz")
    bucket.put(name(31), b"no event\n" + b"".join(LINES[30:]))
    state = ingest_here(bucket.tables, bucket.audit, tmp_path)
    assert places(bucket.tables) == PLACES
    assert duplicates(state) == 0
    (bad,) = rows_of(bucket.tables, Table.QUARANTINE)
    assert (bad["file"], bad["line"]) == (f"{bucket.audit}/{name(31)}", 1)


@pytest.mark.parametrize("seed", [1, 2])
def test_requests_that_fail(bucket: Bucket, seed: int) -> None:
    """When the store is busy, broken, slow, or cut off, a run succeeds by repeating what failed, or
    fails with a sentence; the next run completes it, and each event is there once.
    """
    fill(bucket)
    with bucket.store.faults(0.1, seed=seed), suppress(TablesError, StagingError, OSError):
        ingest_here(bucket.tables, bucket.audit)
    assert bucket.store.failed
    state = ingest_here(bucket.tables, bucket.audit)
    assert places(bucket.tables) == PLACES
    assert (duplicates(state), state.quarantined) == (0, 0)


def test_the_answer_to_a_commit_is_lost(bucket: Bucket) -> None:
    """A commit that the store made is in force, though the store's answer to it was lost."""
    tables = Tables(bucket.tables)
    before = tables.commit(tables.snapshot(Table.QUARANTINE), 1)
    with bucket.store.faults(1.0, ("answer lost",), only="PUT", times=1):
        assert tables.commit(before, 2).change == 2
    assert bucket.store.failed["answer lost"] >= 1
    with pytest.raises(ChangedMeanwhileError, match="Another run has changed"):
        tables.commit(before, 3)


def test_a_folder_is_listed_page_by_page(bucket: Bucket) -> None:
    """A folder of more objects than a page of S3 holds is listed whole; others are left out."""
    for number in range(1001):
        bucket.put(f"{number:04}.ndjson", b"")
    for other in ("notes.txt", "below/0000.ndjson", "0000.ndjson.gz"):
        bucket.put(other, b"")
    found = listing([bucket.audit])
    assert [file.file.name for file in found.values()] == [f"{number:04}.ndjson" for number in range(1001)]
    assert next(iter(found)) == f"{bucket.audit}/0000.ndjson"


def test_a_large_object_is_read_in_few_requests(bucket: Bucket) -> None:
    """A part of an object is read from its beginning on, some megabytes with each request."""
    line = b"x" * 1023 + b"\n"
    size = 3 * READ_AHEAD_BYTES
    bucket.put("large.ndjson", line * (size // len(line)))
    before = bucket.store.asked["GET"]
    reader = Reader(Read(str(File(bucket.audit, "large.ndjson")), READ_AHEAD_BYTES, size))
    assert sum(len(block.lines) for block in reader.blocks()) == 2 * READ_AHEAD_BYTES // len(line)
    assert (reader.consumed, reader.failure, reader.broken) == (size, None, None)
    assert bucket.store.asked["GET"] - before <= 5


def test_places_with_nothing_in_them(bucket: Bucket) -> None:
    """An empty folder has no files; a bucket that is not there is told, and what to do."""
    assert listing([bucket.audit]) == {}
    missing = Location.parse("s3://no-such-bucket/audit")
    with pytest.raises(OSError, match="no such bucket") as failure:
        listing([missing])
    assert failure.value.filename == "s3://no-such-bucket/audit"
    assert reason(failure.value) == "there is no such bucket: make it, or correct the address"
    with pytest.raises(TablesError, match="no-such-bucket/audit/events cannot be read: there is no such bucket: make"):
        Tables(missing).snapshot(Table.EVENTS)


def test_a_store_that_may_not_be_written_to(bucket: Bucket) -> None:
    """Before anything is read it is told that nothing may be written, and nothing is left there."""
    tables = Tables(bucket.tables)
    with bucket.store.faults(1.0, ("denied",), only="PUT"), pytest.raises(TablesError) as refusal:
        check(tables)
    assert str(refusal.value) == f"Nothing can be written to {bucket.tables}: {DENIED}."
    check(tables)
    assert tables.snapshot(Table.EVENTS).files == ()
    assert [info.path for info in bucket.tables.filesystem().get_file_info(LOCATED) if info.is_file] == []


def test_tables_that_may_not_be_read(bucket: Bucket) -> None:
    """They may be whole: only a log that is broken is to be made anew."""
    fill(bucket)
    ingest_here(bucket.tables, bucket.audit)
    events = Tables(bucket.tables).snapshot(Table.EVENTS)
    with bucket.store.faults(1.0, ("denied",), only="GET"):
        with pytest.raises(TablesError) as refusal:
            Tables(bucket.tables).snapshot(Table.EVENTS)
        with pytest.raises(OSError, match="permission denied") as failure:
            list(batches(bucket.tables, Table.EVENTS, events.files, ["epoch"]))
    assert str(refusal.value) == f"{bucket.tables}/events cannot be read: {DENIED}."
    assert failure.value.strerror == DENIED
    with output_stream(bucket.tables, f"events/_delta_log/{1:020}.json") as stream:
        stream.write(b"garbage")
    with pytest.raises(TablesError, match=r"events cannot be read: .*--anew"):
        Tables(bucket.tables).snapshot(Table.EVENTS)


def test_status_and_tables_made_anew(bucket: Bucket, tmp_path: Path) -> None:
    """The status of tables on S3 tells of folders on S3, and the tables can be made anew."""
    fill(bucket)
    ingest_here(bucket.tables, bucket.audit)
    told = call("pipeline", "status", "--tables", str(bucket.tables), folder=tmp_path)
    assert f"{bucket.audit}: everything is read." in told.stdout, told
    clear_tables(Tables(bucket.tables), listing([bucket.audit]))
    assert Tables(bucket.tables).snapshot(Table.EVENTS).files == ()
    ingest_here(bucket.tables, bucket.audit)
    assert places(bucket.tables) == PLACES


def refused(arguments: list[str], **environment: str) -> str:
    """Return what a command says that must fail before Spark is started."""
    done = subprocess.run(
        [sys.executable, "-m", "minicontroller", "pipeline", *arguments],
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
        env={**os.environ, **environment},
    )
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    return done.stderr


def test_credentials_that_the_store_refuses(bucket: Bucket, store: S3) -> None:
    """Wrong credentials end a command with one sentence, and no secret is in it."""
    with store.credentials_checked():
        said = refused(["ingest", "--audit", str(bucket.audit), "--tables", str(bucket.tables)])
        with pytest.raises(OSError, match="does not accept the credentials") as failure:
            listing([bucket.audit])
    assert said.count("\n") == 1
    assert "the store does not accept the credentials: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the" in said
    assert "the store does not accept the credentials" in reason(failure.value)
    assert "very-secret" not in said + reason(failure.value)


def test_a_store_that_overwrites_is_refused(bucket: Bucket) -> None:
    """A store that ignores the condition of a request is told apart before anything is written, and
    nothing of the attempt stays in any store.
    """
    probe(bucket.tables)
    with bucket.store.careless(), pytest.raises(TablesError, match="ignores If-None-Match"):
        probe(bucket.tables)
    assert not any(info.is_file for info in bucket.tables.filesystem().get_file_info(LOCATED))
