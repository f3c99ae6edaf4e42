"""`minicontroller records offsets` and `minicontroller log-dirs`, against our nodes and a real
Kafka.
"""

from itertools import chain
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
    name = f"l-{uuid4()}"
    assert command("topics", "create", name, "--assignment", "1:2,2:1").code == 0
    return name


def replicas_on(command: Installed, topic: str, broker_id: int) -> dict[str, list[int]]:
    """Return the partitions in each directory of a broker."""
    (broker,) = command.json("log-dirs", "describe", topic, "--broker", str(broker_id))["brokers"]
    assert broker["error"] is None
    return {each["path"]: [row["partition"] for row in each["replicas"]] for each in broker["directories"]}


def test_offsets_of_partitions_without_records(command: Installed, topic: str) -> None:
    """The first and the last offset are 0; no record has a timestamp."""
    for options, offset in (((), 0), (("--of", "earliest"), 0), (("--of", "max-timestamp"), -1), (("--at", "5"), -1)):
        rows = command.json("records", "offsets", f"{topic}-0", f"{topic}-1", *options)["offsets"]
        assert [(row["partition"], row["offset"], row["timestamp_ms"], row["error"]) for row in rows] == [
            (0, offset, -1, None),
            (1, offset, -1, None),
        ]
    shown = command("records", "offsets", f"{topic}-0", f"{topic}-7")
    assert (shown.code, shown.stdout.split()) == (1, ["of", "offset", "timestamp", f"{topic}-0", "0", "-"])
    assert shown.stderr.startswith(f"{topic}-7: refused (UNKNOWN_TOPIC_OR_PARTITION): ")


def test_replicas_are_found_and_moved(command: Installed, topic: str) -> None:
    """Each broker shows its replicas and moves them to a directory of its own; a broker without the
    replica, and an unknown directory, are refused.
    """
    until(lambda: sorted(chain(*replicas_on(command, topic, 1).values())), right=lambda found: found == [0, 1])
    assert not any(replicas_on(command, topic, 3).values())
    path = next(path for path, rows in replicas_on(command, topic, 1).items() if 0 in rows)
    moved = command("log-dirs", "move", "1", f"{topic}-0={path}")
    assert moved == (0, f"{topic}-0 on broker 1: moves to {path}\n", "")
    (refused,) = command.json("log-dirs", "move", "1", f"{topic}-0=/nowhere", code=1)["results"]
    assert (refused["ok"], refused["error"]["name"]) == (False, "LOG_DIR_NOT_FOUND")
    (elsewhere,) = command.json(
        "log-dirs", "move", "3", f"{topic}-0={next(iter(replicas_on(command, topic, 3)))}", code=1
    )["results"]
    assert elsewhere["error"]["name"] == "REPLICA_NOT_AVAILABLE"
    shown = command("log-dirs", "describe", topic, "--broker", "2")
    assert (shown.code, shown.stdout.split()[:6]) == (0, ["id", "directory", "replica", "bytes", "lag", "state"])
    absent = command("log-dirs", "describe", "--broker", "9")
    assert absent.code == 1
    assert absent.stderr.startswith("No replicas.\nbroker 9: refused (BROKER_NOT_AVAILABLE): ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("records", "offsets"),
        ("records", "offsets", "t"),
        ("records", "offsets", "t-0", "--of", "first"),
        ("records", "offsets", "t-0", "--at", "-1"),
        ("log-dirs", "describe", "--broker", "-1"),
        ("log-dirs", "move", "1"),
        ("log-dirs", "move", "t-0=/a"),
        ("log-dirs", "move", "1", "t-0"),
        ("log-dirs", "move", "1", "t-0=a"),
        ("log-dirs", "move", "1", "t-0=/a", "t-0=/b"),
    ],
    ids=" ".join,
)
def test_mistakes_are_found_before_anybody_is_asked(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Exit code 2, without a connection."""
    outcome = call(*arguments, "--bootstrap-server", "127.0.0.1:1", folder=tmp_path)
    assert (outcome.code, outcome.stdout) == (2, "")
    assert "Traceback" not in outcome.stderr
