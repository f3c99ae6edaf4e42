"""`minicontroller audit tail` and `show`."""

import gzip
import json
import os
import subprocess
import tracemalloc
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from minicontroller.audit.event import MAX_LINE_BYTES, AuditEvent, Effect, Observed, encode
from minicontroller.audit.files import file_name
from minicontroller.audit.reading import Follower, read
from minicontroller.cli.commands import commands
from tests.audit.logs import CLUSTER, a_creation, a_log, a_state, an_empty_snapshot, stamp, write
from tests.support.forked import COMMAND

TOO_LONG = "the line is longer than 16 MiB, so it is no event"


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(commands, ["audit", *map(str, arguments)])


@pytest.fixture(name="log")
def log_fixture(tmp_path: Path) -> Path:
    refused = a_creation(
        3, "bad\x1b[31m", principal="User:bob", after=None, effect=Effect.NONE, error_code=44, error="POLICY_VIOLATION"
    )
    write(tmp_path / "a.ndjson", [*an_empty_snapshot(), refused, a_creation(4, "good")])
    return tmp_path


def test_tail(log: Path) -> None:
    """The last events are printed, a line each, with nothing in it that a terminal would obey."""
    result = call("tail", log, "-n", "2")
    assert result.exit_code == 0
    first, second = result.stdout.splitlines()
    assert "User:bob create_topic bad\\x1b[31m POLICY_VIOLATION" in first
    assert "User:alice create_topic good ok - new, 1 partition, 1 replica" in second


def test_partitions_are_named(tmp_path: Path) -> None:
    """A reassignment and a deletion of records say of which partitions, and how a reassignment goes
    on is no change by others.
    """
    before, after = a_state(2), a_state(2, replicas=((1,), (2,)))
    changes: list[AuditEvent] = [
        a_creation(3, operation="alter_partition_reassignments", reassignments={0: None, 1: (2, 3)}, before=before),
        a_creation(4, operation="delete_records", delete_records_offsets={0: -1, 1: 7}, before=before, after=before),
        a_creation(5, operation="delete_records", delete_records_offsets=dict.fromkeys(range(9), 1), before=before),
        Observed(**stamp(6), topic="t", before=before, after=after, reassignment=True),
    ]
    write(tmp_path / "a.ndjson", [*an_empty_snapshot(), *changes])
    lines = call("tail", tmp_path, "-n", "4").stdout.splitlines()
    assert "alter_partition_reassignments t ok (0 cancelled, 1 [2, 3])" in lines[0]
    assert "delete_records t ok (0 before the end, 1 before 7) - nothing" in lines[1]
    assert "4 before 1 and 4 more)" in lines[2]
    assert "reassignment: t: replicas moved" in lines[3]
    shown = call("show", tmp_path, "--topic", "t").stdout
    assert "reassignments: {0=null, 1=[2 3]}" in shown and "delete_records_offsets: {0=-1, 1=7}" in shown


@pytest.mark.parametrize(
    ("options", "sequences"),
    [
        (["--kind", "topic", "--resource", "goo*"], [4]),
        (["--resource", "good"], [4]),
        (["--kind", "acl"], []),
        (["--api", "createtopics"], [3, 4]),
        (["--api", "DeleteAcls"], []),
        (["--principal", "User:bob"], [3]),
        (["--topic", "good"], [4]),
        (["--outcome", "refused"], [3]),
        (["--outcome", "allowed"], [4]),
        (["--outcome", "policy_violation"], [3]),
        (["--since", "1970-01-01T00:00:00.004Z"], [4]),
        (["--until", "1970-01-01T00:00:00.001Z"], [1]),
        (["--since", "1d"], []),
    ],
)
def test_filters(log: Path, options: list[str], sequences: list[int]) -> None:
    """Only events that match are shown, as JSON exactly as they stand in the file."""
    lines = call("show", log, "--json", *options).stdout.splitlines()
    assert [json.loads(line)["sequence"] for line in lines] == sequences


def test_whoever_is_not_authenticated(tmp_path: Path) -> None:
    """Unauthenticated callers are shown by one name, and `--principal` finds them by it."""
    write(tmp_path / "a.ndjson", [*an_empty_snapshot(), a_creation(3, "a"), a_creation(4, "b", principal=None)])
    [line] = call("tail", tmp_path, "--principal", "(not authenticated)").stdout.splitlines()
    assert "(not authenticated) create_topic b ok" in line


def test_show(log: Path) -> None:
    """All that is recorded of an event."""
    shown = call("show", log, "--topic", "good").stdout
    assert "principal: User:alice" in shown and "latency_us: 5" in shown


def test_show_writes_values_as_json_does(tmp_path: Path) -> None:
    """Constants are those of JSON, lists are in brackets, objects in braces, and what is empty is
    left out.
    """
    write(tmp_path / "a.ndjson", [*an_empty_snapshot(), a_creation(3, "a")])
    shown = call("show", tmp_path, "--topic", "a").stdout
    assert "validate_only: false" in shown and "after: {topic_id=" in shown and "replicas=[[" in shown
    assert not any(word in shown for word in ("True", "False", "None", "()", "assumed"))


@pytest.mark.parametrize("outcome", ["nonsense", "polcy_violation"])
def test_what_is_no_outcome(log: Path, outcome: str) -> None:
    """An outcome that no decision can have ends the command with code 2 and names those there
    are.
    """
    result = call("show", log, "--outcome", outcome)
    assert result.exit_code == 2 and result.stdout == ""
    text = " ".join(result.stderr.split())
    assert "allowed (no error), refused (any error), would-be-refused (no error," in text
    assert ("Did you mean policy_violation?" in text) == (outcome == "polcy_violation")


def test_what_is_no_time(log: Path) -> None:
    """A malformed time ends the command with code 2 and a sentence."""
    result = call("tail", log, "--since", "yesterday")
    assert result.exit_code == 2 and "neither a time" in result.stderr


def test_following(tmp_path: Path) -> None:
    """`audit tail` shows each new event once, when its line is complete, also in new files."""
    events = a_log(2)
    file = write(tmp_path / "a.ndjson", events[:3])
    follower = Follower([tmp_path])
    assert [each.event for each in follower.look()] == events[:3]
    line = encode(events[3])
    with file.open("ab", buffering=0) as stream:
        stream.write(line[:20])
        assert list(follower.look()) == []
        stream.write(line[20:])
        assert [each.event for each in follower.look()] == [events[3]]
    write(tmp_path / "b.ndjson", events[:1])
    assert [each.event for each in follower.look()] == events[:1]


ALL = pytest.mark.parametrize("command", ["show", "tail", "verify"])
NO_LOGS = {
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40,
    "a text": b"To whom it may concern,\nthis is no log.\n",
    "a line without an end": b"hello",
    "another program's log": b'{"level":"info","message":"started"}\n' * 3,
}


@ALL
@pytest.mark.parametrize("content", NO_LOGS.values(), ids=NO_LOGS)
def test_a_file_that_is_no_audit_file(tmp_path: Path, command: str, content: bytes) -> None:
    """A file that is not an audit file ends the command with one sentence and code 1."""
    file = tmp_path / "notes.ndjson"
    file.write_bytes(content)
    result = call(command, file)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: {file} is no audit file") and result.stderr.count("\n") == 1


@ALL
def test_a_file_that_may_be_an_audit_file(tmp_path: Path, command: str) -> None:
    """A file that has an audit file's name or an audit event is read, with a report of any other
    content; a file without a line may be new.
    """
    broken = tmp_path / file_name(CLUSTER, 1, 1, 1)
    broken.write_bytes(NO_LOGS["a text"])
    renamed = write(tmp_path / "copy.txt", a_log(1))
    renamed.write_bytes(b"nonsense\n" + renamed.read_bytes())
    newer = tmp_path / "newer.txt"
    newer.write_bytes(b'{"kind":"decision","schema_version":2}\n')
    empty = tmp_path / "empty.txt"
    empty.touch()
    for file in (broken, renamed, newer):
        assert f"{file}:1: " in call(command, file).output
    assert "no audit file" not in call(command, empty).output


@pytest.mark.parametrize("arguments", ["show", "show --json", "tail -n 4000", "tail --json -n 4000"])
@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_a_reader_who_leaves_is_no_failure(tmp_path: Path, arguments: str, reader: str) -> None:
    """A closed pipe ends the command with code 0 and without a message."""
    file = write(tmp_path / "a.ndjson", a_log(4000))
    assert left(f"{arguments} {file}", reader) == (0, "")


def test_the_verdict_is_there_although_nobody_reads(tmp_path: Path) -> None:
    """A log that is not whole gives code 1, and the same sum as ever, also when the reader of the
    findings left after the first.
    """
    file = write(tmp_path / "a.ndjson", a_log(4000)[::2])
    assert left(f"verify {file}", "head -1") == (1, call("verify", file).stderr)


def left(arguments: str, reader: str) -> tuple[int, str]:
    """The command's code and what it says on stderr, when its output is piped to that reader."""
    line = f'"$0" audit {arguments} | {reader} >/dev/null; exit "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", line, COMMAND], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_a_line_that_never_ends(tmp_path: Path) -> None:
    """An overlong line is reported as no event and the rest is read, in bounded memory, in a
    compressed file too.
    """
    file = tmp_path / "a.ndjson.gz"
    events = a_log(2)
    with gzip.open(file, "wb", compresslevel=1) as stream:
        write(tmp_path / "b.ndjson", events)
        stream.write((tmp_path / "b.ndjson").read_bytes())
        for _ in range(10):
            stream.write(bytes(MAX_LINE_BYTES - 1))
        stream.write(b"\n" + (tmp_path / "b.ndjson").read_bytes())
    tracemalloc.start()
    found = [each.event or str(each.problem) for each in read(file)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == [*events, TOO_LONG, *events]
    assert peak < 5 * MAX_LINE_BYTES


def test_a_line_that_never_ends_is_followed(tmp_path: Path) -> None:
    """`audit tail` waits for the end of an overlong line in bounded memory."""
    file = write(tmp_path / "a.ndjson", a_log(2))
    follower = Follower([file])
    events = [each.event for each in follower.look()]
    tracemalloc.start()
    with file.open("ab") as stream:
        for _ in range(6):
            stream.write(bytes(MAX_LINE_BYTES // 2))
            stream.flush()
            assert list(follower.look()) == []
        stream.write(b"\n")
    write(tmp_path / "b.ndjson", a_log(2))
    with file.open("ab") as stream:
        stream.write((tmp_path / "b.ndjson").read_bytes())
    found = [each.event or str(each.problem) for each in follower.look()]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == [TOO_LONG, *events]
    assert peak < 5 * MAX_LINE_BYTES


@ALL
def test_what_is_no_event_is_not_obeyed(tmp_path: Path, command: str) -> None:
    """Control characters in lines and file names are escaped on a terminal."""
    file = tmp_path / os.fsdecode(b"odd\x1b[31m\xff.ndjson")
    write(file, a_log(1))
    with file.open("ab") as stream:
        stream.write(b'{"kind":"\\u202e\\u001b]0;title","schema_version":1}\n')
    result = call(command, file)
    assert "odd\\x1b[31m\\udcff.ndjson:4: " in result.output
    assert "'\\u202e\\x1b]0;title'" in result.output
    assert not set("\x1b\u202e") & set(result.output)


def test_any_name_of_a_file_is_json(tmp_path: Path) -> None:
    """A file name that is not UTF-8 appears in the JSON output with replaced bytes."""
    write(tmp_path / os.fsdecode(b"odd\xff.ndjson"), a_log(3)[1:])
    told = [json.loads(line) for line in call("verify", "--json", tmp_path).stdout.splitlines()]
    assert told[0]["file"] == f"{tmp_path}/odd\\udcff.ndjson"
