"""A disk that is full, under a real node: a small tmpfs where it may be mounted, else a limit to
the size of the node's files.
"""

import contextlib
import re
import resource
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from minicontroller.audit.event import Decision, Dropped, RecordedState, SnapshotEnd
from minicontroller.audit.replay import Replay
from minicontroller.protocol.error_codes import ErrorCode
from tests.audit.logs import events_in, found, told
from tests.support.cluster import MiniCluster
from tests.support.http import ask
from tests.support.waiting import until
from tests.support.wire import Wire

pytestmark = pytest.mark.slow

UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
PATIENCE_MS = 60_000
SHORT_MS = 1_500
"""For what a full disk may leave without an answer."""
MANY = 60
"""Decisions that no last block of a file holds."""


class SmallDisk:
    """A folder whose room can be taken away from a process, and be given back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True, check=False
        )
        self.is_mounted = mounted.returncode == 0
        self._filler = folder / "filler"

    def fill(self, pid: int) -> None:
        if not self.is_mounted:
            largest = max(file.stat().st_size for file in self.folder.iterdir())
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (largest + 100, resource.RLIM_INFINITY))
            return
        with self._filler.open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(b"x" * 4096)

    def empty(self, pid: int) -> None:
        if self.is_mounted:
            self._filler.unlink()
        else:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, UNLIMITED)

    def unmount(self) -> None:
        if self.is_mounted:
            subprocess.run(["umount", "-l", self.folder], check=True)


@pytest.fixture(name="disk")
def disk_fixture(tmp_path: Path) -> Iterator[SmallDisk]:
    disk = SmallDisk(tmp_path / "disk")
    yield disk
    disk.unmount()


def a_node(disk: SmallDisk, on_failure: str) -> MiniCluster:
    settings = {"audit.dir": str(disk.folder), "audit.flush": "always", "audit.on.failure": on_failure}
    return MiniCluster(brokers=1, settings=settings)


def create(wire: Wire, name: str, timeout_ms: int = PATIENCE_MS) -> tuple[int, str | None]:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    (row,) = wire.ask("CreateTopics", 7, {"topics": [topic], "timeout_ms": timeout_ms})["topics"]
    return row["error_code"], row["error_message"]


def topics(wire: Wire) -> set[str]:
    return {topic["name"] for topic in wire.ask("Metadata", 1, {"topics": None})["topics"]}


def told_on_page(cluster: MiniCluster) -> list[str]:
    """At its top."""
    told: list[str] = ask(cluster, "/api/state").json["audit"]
    return told


def test_refuse(disk: SmallDisk) -> None:
    """With `audit.on.failure=refuse` no success is answered before it is in the log; further
    changes are refused with a reason until there is room, and no decision is missing at the end.
    """
    cluster = a_node(disk, "refuse")
    cluster.start()
    with Wire(cluster.bootstrap) as wire:
        assert create(wire, "before") == (ErrorCode.NONE, None)
        disk.fill(cluster.pid)
        codes, text = {}, None
        for number in range(MANY):
            codes[f"t{number}"], text = create(wire, f"t{number}", SHORT_MS)
            if codes[f"t{number}"] == ErrorCode.POLICY_VIOLATION:
                break
        assert text is not None and "audit log cannot be written" in text
        assert set(codes.values()) <= {ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.POLICY_VIOLATION}
        refused = [name for name, code in codes.items() if code == ErrorCode.POLICY_VIOLATION]
        assert len(refused) == 1 and not topics(wire) & set(refused)
        assert told_on_page(cluster) == [f"Node 1: {text} Requests refused because of it: 1."]
        assert ask(cluster, "/health/ready").json["nodes"] == [{"node": 1, "ready": True, "reasons": [text]}]
        disk.empty(cluster.pid)
        until(lambda: create(wire, "after", SHORT_MS)[0] in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS})
        there = topics(wire)
    until(lambda: not told_on_page(cluster))
    cluster.stop()
    lines = [line for line in cluster.output.splitlines() if " minicontroller.audit: " in line]
    assert len(lines) >= 2 and all(line.endswith(" [node=1]") for line in lines)
    assert found(disk.folder) == []
    decided = {event.name for event in events_in(disk.folder) if isinstance(event, Decision) and not event.error_code}
    assert decided == there


def test_drop(disk: SmallDisk) -> None:
    """With `audit.on.failure=drop` every request is answered; the log names the missing events and
    goes on with a snapshot.
    """
    cluster = a_node(disk, "drop")
    cluster.start()
    with Wire(cluster.bootstrap) as wire:
        disk.fill(cluster.pid)
        assert {create(wire, f"t{number}")[0] for number in range(MANY)} == {ErrorCode.NONE}
        full = r"Node 1: The audit log cannot be written \(.+\)\. Events dropped from the audit log: \d+\."
        until(lambda: [re.fullmatch(full, text) for text in told_on_page(cluster)], right=all_are_there)
        disk.empty(cluster.pid)
        assert create(wire, "after")[0] == ErrorCode.NONE
        there = topics(wire)
        until(lambda: any(isinstance(event, Dropped) for event in events_in(disk.folder)))
    until(lambda: re.fullmatch(r"Node 1: Events dropped from the audit log: \d+\.", told_on_page(cluster)[0]))
    cluster.stop()
    assert set(found(disk.folder)) == {"gap", "dropped"}
    events = events_in(disk.folder)
    assert isinstance([event for event in events if not isinstance(event, Decision)][-1], SnapshotEnd)
    assert set(told(replayed_after_loss(disk.folder))) == there


def all_are_there(matches: list[re.Match[str] | None]) -> bool:
    return bool(matches) and None not in matches


def replayed_after_loss(folder: Path) -> Mapping[str, RecordedState]:
    replay = Replay()
    for event in events_in(folder):
        list(replay.apply(event))
    return replay.topics
