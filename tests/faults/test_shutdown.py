"""A node is told to stop by SIGTERM while clients create topics through every node, itself
included.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faults.agreement import expect_nothing_lost
from tests.faults.conftest import Record
from tests.faults.stream import streaming
from tests.faults.tree import Tree
from tests.support.nodes import NodeProcess, Nodes

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("who", ["controller", "follower"])
def test_no_client_notices_that_a_node_stops(lasting_nodes: Nodes, tree: Tree, record: Record, who: str) -> None:
    """Leaderships move first, another controller rules at once, and the node ends with code 0. What
    was asked of it is done, and what it did not answer was not done: the same request succeeds at
    the next node. No partition is without a leader at any time.
    """
    controller = lasting_nodes.controller()
    leaving = controller if who == "controller" else lasting_nodes.others(controller)[0]
    staying = lasting_nodes.others(leaving)
    epoch = tree.controller_epoch
    with streaming(list(lasting_nodes)) as stream, watching_leaders(staying) as leaderless:
        stream.wait_acknowledged(50)
        record("seconds_to_end", leaving.stop())
        stream.wait_acknowledged(30)
    record("longest_pause", stream.longest_pause())
    record("acknowledged", len(stream.acknowledged))
    assert stream.in_doubt == set(), "a client was told of trouble"
    assert leaderless == set()
    assert tree.controller_epoch == epoch + (who == "controller")
    expect_nothing_lost(lasting_nodes, tree, stream)


@contextmanager
def watching_leaders(nodes: list[NodeProcess]) -> Iterator[set[tuple[int, str, int]]]:
    """(node, topic, partition) wherever one of these nodes told of a partition without a leader
    during the block.
    """
    leaderless: set[tuple[int, str, int]] = set()
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.02):
            for node in nodes:
                for topic in node.metadata(None)["topics"]:
                    leaderless.update(
                        (node.broker_id, topic["name"], partition["partition_index"])
                        for partition in topic["partitions"]
                        if partition["leader_id"] < 0 or partition["error_code"] != 0
                    )

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield leaderless
    finally:
        over.set()
        watcher.join()
