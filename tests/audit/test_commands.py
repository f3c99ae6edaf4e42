"""`minicontroller audit tail` and `show`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from minicontroller.controller.audit.reading import Follower
from minicontroller.controller.commands import commands
from minicontroller.policies.audit_event import Effect, encode
from tests.audit.logs import a_creation, a_log, an_empty_snapshot, write


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
    """The last ones, a line each, with nothing in it that a terminal would obey."""
    result = call("tail", log, "-n", "2")
    assert result.exit_code == 0
    first, second = result.stdout.splitlines()
    assert "User:bob create_topic bad\\x1b[31m POLICY_VIOLATION" in first
    assert "User:alice create_topic good ok - new, 1 partitions, 1 replicas" in second


@pytest.mark.parametrize(
    ("options", "sequences"),
    [
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
    """Only what matches, as JSON exactly as it stands in the file."""
    lines = call("show", log, "--json", *options).stdout.splitlines()
    assert [json.loads(line)["sequence"] for line in lines] == sequences


def test_show(log: Path) -> None:
    """All that is recorded of an event."""
    shown = call("show", log, "--topic", "good").stdout
    assert "principal: User:alice" in shown and "latency_us: 5" in shown


def test_what_is_no_time(log: Path) -> None:
    """It is said so, with exit code 2."""
    result = call("tail", log, "--since", "yesterday")
    assert result.exit_code == 2 and "neither a time" in result.stderr


def test_following(tmp_path: Path) -> None:
    """What is added is seen once, a line when its end is there, and new files too."""
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
