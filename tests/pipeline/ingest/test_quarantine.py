"""Lines that are no events, or do not fit into the tables: they are told with file, line and
reason, and the rest goes on.
"""

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.audit.event import MAX_LINE_BYTES, AuditEvent, Dropped, NamedState, Removal, SnapshotTopics, encode
from minicontroller.audit.lines import KEPT_BYTES
from minicontroller.audit.reading import read
from minicontroller.pipeline.ingest.staging_result import MAX_REASON
from minicontroller.pipeline.schemas import Table
from tests.audit.logs import a_creation, a_log, a_state, stamp
from tests.pipeline.ingest.local import ingest_here, places, rows_of

GOOD = [encode(event) for event in a_log(4)]


def changed(**values: Any) -> bytes:
    """An event whose JSON says otherwise."""
    return json.dumps(json.loads(encode(a_creation(99))) | values).encode() + b"\n"


def of_state(**values: Any) -> bytes:
    plain = json.loads(encode(a_creation(99)))
    plain["after"] |= values
    return json.dumps(plain).encode() + b"\n"


BAD: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"hello\n", "not an event"),
    "empty": (b"\n", "not an event"),
    "half an event": (GOOD[3][:100] + b"\n", "not an event"),
    "NUL bytes": (b"\0\0\0\n", "not an event"),
    "not UTF-8": (b'{"kind":"\xff\xfe"}\n', "not an event"),
    "not UTF-8 within an event": (GOOD[3].replace(b"User:alice", b"User:\xff"), "not an event"),
    "not UTF-8 in a field of a later version": (
        GOOD[3].replace(b'"principal"', b'"later":"' + b"\xff" * 5000 + b'","principal"'),
        "not UTF-8",
    ),
    "a kind as long as a line": (changed(kind="k" * 100_000), "not an event"),
    "half a surrogate": (GOOD[3].replace(b"User:alice", b"\\ud800"), "not an event"),
    "deeply nested": (b"[" * 100_000 + b"\n", "not an event"),
    "a carriage return only": (b"\r\n", "not an event"),
    "unknown kind": (changed(kind="rumour"), "not an event"),
    "unknown schema": (changed(schema_version=2), "schema version 2 is not known here"),
    "missing field": (b'{"kind":"removal","schema_version":1}\n', "not an event"),
    "another type": (changed(principal=5), "not an event"),
    "epoch too large": (changed(epoch=2**31), "epoch 2147483648"),
    "epoch below zero": (changed(epoch=-1), "epoch -1"),
    "sequence too large": (changed(sequence=2**63), "sequence"),
    "sequence zero": (changed(sequence=0), "sequence 0"),
    "no cluster": (changed(cluster_id=""), "cluster_id"),
    "cluster too long": (changed(cluster_id="x" * 5000), "cluster_id"),
    "no cluster, Hive's way": (changed(cluster_id="__HIVE_DEFAULT_PARTITION__"), "means that there is none"),
    "time of no year": (changed(time_ms=10**18), "in no year"),
    "time beyond numbers": (changed(time_ms=10**40), "in no year"),
    "node too large": (changed(decided_node=2**40), "does not fit into its column"),
    "request beyond numbers": (changed(request=10**30), "does not fit into its column"),
    "replica too large": (of_state(replicas=[[2**40]]), "does not fit into its column"),
    "created in no year": (of_state(created_ms=10**17), "does not fit into its column"),
    "a snapshot's replica": (
        encode(
            SnapshotTopics(**stamp(99), topics=(NamedState(topic="t", state=a_state(replicas=((2**40,),))),)),
        ),
        "does not fit into its column",
    ),
    "dropped beyond numbers": (
        encode(Dropped(**stamp(99), first_sequence=1, last_sequence=2**63, reason="x")),
        "are invalid",
    ),
    "dropped before the first": (
        encode(Dropped(**stamp(99), first_sequence=0, last_sequence=2**63 - 1, reason="x")),
        "are invalid",
    ),
    "longer than an event": (changed(principal="x" * (17 << 20)), "longer than 16 MiB"),
}


def test_each_is_told_where_it_stands(tmp_path: Path) -> None:
    """Every bad line is one row with its number and reason, whatever stands around it, and every
    event around it is in the tables (P-1d).
    """
    lines = [
        line for number, (bad, _) in enumerate(BAD.values(), start=1) for line in (bad, encode(a_creation(number)))
    ]
    (tmp_path / "a.ndjson").write_bytes(b"".join(lines))
    state = ingest_here(tmp_path / "tables", tmp_path)
    rows = sorted(rows_of(tmp_path / "tables", Table.QUARANTINE), key=lambda row: row["line"])
    assert [row["line"] for row in rows] == list(range(1, 2 * len(BAD), 2))
    for row, (name, (line, reason)) in zip(rows, BAD.items(), strict=True):
        assert reason in row["reason"], name
        assert len(row["reason"]) <= MAX_REASON
        assert row["file"] == str(tmp_path / "a.ndjson")
        assert row["text"] == line[: min(len(line) - 1, KEPT_BYTES)].decode("utf-8", "replace"), name
    assert len(places(tmp_path / "tables")) == len(BAD)
    assert state.quarantined == len(BAD)


def test_all_readers_have_one_limit(tmp_path: Path) -> None:
    """The longest line that is an event for `audit verify` is the longest that comes into the
    tables.
    """
    shortest = len(changed(principal="")) - 1
    file = tmp_path / "a.ndjson"
    file.write_bytes(b"".join(changed(principal="x" * (MAX_LINE_BYTES - shortest + more)) for more in (0, 1)))
    assert [each.event is not None for each in read(file)] == [True, False]
    ingest_here(tmp_path / "tables", tmp_path)
    assert [row["line"] for row in rows_of(tmp_path / "tables", Table.QUARANTINE)] == [2]


def test_numbers_count_from_the_beginning_of_the_file(tmp_path: Path) -> None:
    """Line numbers count from the file's beginning, also where an earlier run read the lines
    before, and where several readers share the file.
    """
    file = tmp_path / "a.ndjson"
    file.write_bytes(b"bad\n" + b"".join(GOOD))
    ingest_here(tmp_path / "tables", tmp_path)
    many = b"".join(encode(a_creation(sequence, "t" * 200)) for sequence in range(7, 20_000))
    with file.open("ab") as stream:
        stream.write(b"worse\n" + many + b"worst\n")
    ingest_here(tmp_path / "tables", tmp_path, batch_bytes=10 << 20)
    rows = rows_of(tmp_path / "tables", Table.QUARANTINE)
    assert sorted((row["line"], row["text"]) for row in rows) == [(1, "bad"), (8, "worse"), (20_002, "worst")]


def test_a_line_that_is_read_again_is_told_once(tmp_path: Path) -> None:
    """Of a file that is read again, quarantine has the lines that stand in it now."""
    file = tmp_path / "a.ndjson"

    def told(*lines: bytes, ending: bytes = b"") -> list[tuple[int, str]]:
        file.write_bytes(b"".join(lines) + ending)
        state = ingest_here(tmp_path / "tables", tmp_path)
        rows = rows_of(tmp_path / "tables", Table.QUARANTINE)
        assert state.quarantined == len(rows)
        return sorted((row["line"], row["text"]) for row in rows)

    assert told(b"bad\n", *GOOD, b"worse\n") == [(1, "bad"), (8, "worse")]
    assert told(b"bad\n", *GOOD, b"wor") == [(1, "bad")]
    assert told(b"bad\n", *GOOD, b"worst\n", b"worse\n") == [(1, "bad"), (8, "worst"), (9, "worse")]
    assert told(b"gut\n", *GOOD, b"worst\n", b"worse\n") == [(1, "gut"), (8, "worst"), (9, "worse")]
    file.unlink()
    file = tmp_path / "a.ndjson.gz"
    assert told(gzip.compress(b"bad\n" + GOOD[0])) == [(1, "bad")]
    for ending in (b"garbage", b"garbage that is longer"):
        assert told(gzip.compress(b"bad\n" + GOOD[0]), ending=ending) == [(1, "bad"), (3, "")]
    assert told(gzip.compress(b"bad\n" + GOOD[0] + GOOD[1])) == [(1, "bad")]


HOSTILE = [
    "../../etc",
    "/",
    "..",
    "a/b=c",
    "day=2026-01-01",
    "%2e%2e",
    "a b",
    "ü\u202e",
    "\0\n\t",
    "x'\"*?",
    "1",
    "é" * 60,
    "🙂" * 60,
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_in_their_folder(tmp_path: Path, name: str) -> None:
    """A cluster id or a topic's name chooses no folder, and both are in the tables as they are."""
    audit, tables = tmp_path / "audit", tmp_path / "deep" / "er" / "tables"
    audit.mkdir()
    events: list[AuditEvent] = [
        a_creation(1, name, cluster_id=name),
        Removal(**stamp(2, cluster_id=name), topic=name, before=None),
    ]
    (audit / "a.ndjson").write_bytes(b"".join(map(encode, events)))
    state = ingest_here(tables, audit)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit", "deep"]
    assert sorted(path.name for path in tables.iterdir()) == ["_state", "events", "quarantine"]
    assert [len(path.relative_to(tables).parts) for path in (tables / "events").rglob("*.parquet")] == [2]
    assert list(state.clusters) == [name]
    assert {row["name"] for row in rows_of(tables, Table.EVENTS)} == {name}


LINES = st.one_of(
    st.sampled_from([bad for bad, _ in BAD.values() if len(bad) < 10_000]),
    st.binary(max_size=60).map(lambda data: data.replace(b"\n", b"") + b"\n"),
    st.tuples(st.sampled_from(GOOD), st.integers(0, 2000), st.binary(min_size=1, max_size=3)).map(
        lambda each: _mutated(*each)
    ),
)


def _mutated(line: bytes, at: int, other: bytes) -> bytes:
    at %= len(line) - 1
    return line[:at] + other.replace(b"\n", b"?") + line[at + len(other) :].rstrip(b"\n") + b"\n"


@given(st.lists(LINES, max_size=30))
@settings(max_examples=80)
def test_each_line_is_an_event_or_in_quarantine(lines: list[bytes]) -> None:
    """Nothing that can stand in a file stops the run, and no line is lost or counted twice."""
    with TemporaryDirectory() as folder:
        audit = Path(folder, "audit")
        audit.mkdir()
        (audit / "a.ndjson").write_bytes(b"".join(lines))
        state = ingest_here(Path(folder, "tables"), audit)
        epochs = [epoch for cluster in state.clusters.values() for epoch in cluster.epochs.values()]
        events = sum(epoch.events for epoch in epochs)
        assert len(places(Path(folder, "tables"))) == events
        assert events + sum(epoch.duplicates for epoch in epochs) + state.quarantined == len(lines)
