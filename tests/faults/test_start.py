"""A node starts also when the world is not as it should be."""

from pathlib import Path

import pytest

from tests.faults.conftest import LASTING
from tests.faults.tree import BROKERS, CONTROLLER, Tree
from tests.support.nodes import NodeProcess, running_nodes
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeperEnsemble, ZooKeeperServer

pytestmark = pytest.mark.slow


def test_a_node_waits_for_its_zookeeper(tmp_path: Path) -> None:
    """A dead ZooKeeper is said in one sentence, however often it is tried; the node serves as soon
    as there is one.
    """
    server = ZooKeeperServer(tmp_path / "zookeeper")
    node = NodeProcess(tmp_path, 1, server.connect, {})
    node.start()
    try:
        until(lambda: "cannot be reached" in node.output)
        sentence = (
            f"ZooKeeper at {server.connect} cannot be reached (Connection refused): trying again until it answers"
        )
        with server:
            node.wait_ready()
            assert node.output.count(sentence) == 1
            assert node.output.count("cannot be reached") == 1
            assert f"ZooKeeper at {server.connect} answers again" in node.output
            assert "Traceback" not in node.output
            node.stop()
    finally:
        node.kill()


def test_two_nodes_cannot_have_one_id(tmp_path: Path, ensemble: ZooKeeperEnsemble, chroot: str) -> None:
    """The second one says why it ends, with exit code 1, and the first is not disturbed."""
    with running_nodes(tmp_path, [ensemble.connect + chroot]) as nodes:
        (tmp_path / "second").mkdir()
        second = NodeProcess(tmp_path / "second", 1, ensemble.connect + chroot, {})
        second.start()
        try:
            assert second.wait_end() == 1
        finally:
            second.kill()
        assert "Error: Broker id 1 is registered by another process that lives" in second.output
        assert "Traceback" not in second.output
        assert nodes.controller() is nodes[1]


def test_a_node_takes_its_id_over_from_its_dead_self(
    tmp_path: Path, ensemble: ZooKeeperEnsemble, tree: Tree, chroot: str
) -> None:
    """A node that was killed and started again at once waits for the end of its former session, and
    says so. (The session lasts for as long as the node takes to start; the test plays its end.)
    """
    with running_nodes(tmp_path, [ensemble.connect + chroot], LASTING) as nodes:
        nodes[1].kill()
        nodes[1].start()
        until(lambda: "waiting for it to end" in nodes[1].output)
        for path in (f"{BROKERS}/ids/1", CONTROLLER):
            tree.client.delete(path)
        nodes[1].wait_ready()
        nodes.wait_known()
