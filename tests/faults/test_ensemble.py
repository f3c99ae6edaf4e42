"""One of three ZooKeeper servers dies while clients create topics."""

import pytest

from tests.faults.agreement import expect_nothing_lost
from tests.faults.conftest import Record
from tests.faults.stream import streaming
from tests.faults.tree import Tree
from tests.support.nodes import Nodes
from tests.support.zookeeper import ZooKeeperEnsemble

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("who", ["follower", "leader"])
def test_a_zookeeper_server_dies(
    ensemble: ZooKeeperEnsemble, lasting_nodes: Nodes, tree: Tree, record: Record, who: str
) -> None:
    """The nodes go to the servers that are left, their sessions live on, and nothing that was
    acknowledged is lost.
    """
    brokers = tree.born()
    server = ensemble.leader() if who == "leader" else ensemble.follower()
    with streaming(list(lasting_nodes)) as stream:
        stream.wait_acknowledged(50)
        server.kill()
        try:
            stream.wait_acknowledged(50)
        finally:
            server.start(wait=False)
        stream.wait_acknowledged(20)
    server.wait_until_serving()
    record("longest_pause", stream.longest_pause())
    record("in_doubt", len(stream.in_doubt))
    expect_nothing_lost(lasting_nodes, tree, stream)
    assert tree.born() == brokers, "a session was lost"
