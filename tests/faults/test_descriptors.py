"""A client that opens connections and says nothing, at a node that may have few descriptors."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.support.forked import COMMAND
from tests.support.nodes import NodeProcess
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.slow

SOFT, HARD, IDLE = 64, 160, 300
LIMITED = (
    "import os, resource, sys; "
    f"resource.setrlimit(resource.RLIMIT_NOFILE, ({SOFT}, {HARD})); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """A ZooKeeper of this test's own, which is restarted."""
    with ZooKeeperServer(tmp_path / "zookeeper") as server:
        yield server


@pytest.fixture
def node(tmp_path: Path, zookeeper: ZooKeeperServer) -> Iterator[NodeProcess]:
    settings = {"audit.dir": str(tmp_path / "audit")}
    node = NodeProcess(tmp_path, 1, zookeeper.connect, settings, command=[sys.executable, "-c", LIMITED, COMMAND])
    node.start()
    try:
        node.wait_ready()
        yield node
    finally:
        node.kill()


def created(node: NodeProcess, name: str) -> bool:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    with node.wire() as wire:
        answer = wire.ask("CreateTopics", 4, {"topics": [topic], "timeout_ms": 5_000, "validate_only": False})
    return bool(answer["topics"][0]["error_code"] == 0)


def test_one_client_does_not_take_all_descriptors(node: NodeProcess, zookeeper: ZooKeeperServer) -> None:
    """Others get in, ZooKeeper is reached again after its restart, changes are written and
    recorded, and the log is not flooded.
    """
    host, _, port = node.address.rpartition(":")
    with ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(closing(socket.create_connection((host, int(port)), timeout=30)))
        assert created(node, "before")
        zookeeper.restart()
        names = iter(range(1_000))
        until(lambda: created(node, f"after-{next(names)}"))
    assert node.output.count("to make room") <= 2
    assert node.output.count("Too many open files") == 0
