"""`minicontroller reassignments`, against our nodes and a real Kafka."""

from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.command import call
from tests.client.installed import Installed
from tests.support.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def topic(command: Installed) -> str:
    """One that no other test has, with two partitions on brokers 1 and 2."""
    name = f"r-{uuid4()}"
    assert command("topics", "create", name, "--assignment", "1:2,2:1").code == 0
    return name


def replicas(command: Installed, topic: str) -> list[list[int]]:
    (found,) = command.json("topics", "describe", topic)["topics"]
    return [partition["replicas"] for partition in found["partitions"]]


def test_replicas_are_moved(command: Installed, topic: str) -> None:
    """Each partition has a line that says where it moves, and in the end it is there."""
    done = command("reassignments", "start", f"{topic}-0=3:1", f"{topic}-1=2")
    assert done == (0, f"{topic}-0: moves to 3,1\n{topic}-1: moves to 2\n", "")
    until(lambda: replicas(command, topic), right=lambda found: found == [[3, 1], [2]])
    nothing = (0, "", "No replicas are being moved.\n")
    until(lambda: command("reassignments", "list", topic), right=lambda said: said == nothing)
    assert command.json("reassignments", "list", topic) == {"reassignments": []}


def test_each_partition_is_refused_by_itself(command: Installed, topic: str) -> None:
    """Kafka's code and text, and exit code 1; the others move."""
    done = command("reassignments", "start", f"{topic}-0=1:1", f"{topic}-1=1:2", f"{topic}-7=1")
    assert (done.code, done.stdout) == (1, f"{topic}-1: moves to 1,2\n")
    assert f"{topic}-0: refused (INVALID_REPLICA_ASSIGNMENT): Duplicate replica ids" in done.stderr
    assert f"{topic}-7: refused (UNKNOWN_TOPIC_OR_PARTITION): The partition does not exist.\n" in done.stderr
    refused = command.json("reassignments", "cancel", f"{topic}-0", code=1)
    assert [(row["topic"], row["partition"], row["ok"], row["error"]["name"]) for row in refused["results"]] == [
        (topic, 0, False, "NO_REASSIGNMENT_IN_PROGRESS")
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("start",),
        ("start", "t-0"),
        ("start", "t-0="),
        ("start", "t-0=1,2"),
        ("start", "t-0=-1"),
        ("start", "t-0=1", "t-0=2"),
        ("start", "t=1"),
        ("start", "-0=1"),
        ("start", "t-\u0660=1"),
        ("start", "t-99999999999=1"),
        ("cancel",),
        ("cancel", "t"),
        ("cancel", "t-0", "--all"),
    ],
    ids=" ".join,
)
def test_mistakes_are_found_before_anybody_is_asked(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Exit code 2, without a connection."""
    outcome = call("reassignments", *arguments, "--bootstrap-server", "127.0.0.1:1", folder=tmp_path)
    assert (outcome.code, outcome.stdout) == (2, "")
    assert "Traceback" not in outcome.stderr
