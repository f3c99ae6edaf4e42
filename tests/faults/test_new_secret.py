"""The secret by which the nodes know each other is taken away while clients create topics through
every node.
"""

from functools import partial

import pytest

from minicontroller.cluster.znodes.membership import MEMBERSHIP
from tests.faults.agreement import expect_nothing_lost
from tests.faults.stream import creation, streaming
from tests.faults.tree import Tree
from tests.support.nodes import Nodes
from tests.support.waiting import until

pytestmark = pytest.mark.slow

NONE, TIMED_OUT = 0, 7


def test_nobody_notices_that_the_nodes_agree_on_another_secret(lasting_nodes: Nodes, tree: Tree) -> None:
    """K590-6a: each time it is deleted they make another one; requests that are under way are
    answered, and no log tells any of them.
    """
    secrets = []
    with streaming(list(lasting_nodes)) as stream:
        for _ in range(5):
            stream.wait_acknowledged(20)
            secrets.append(tree.json(MEMBERSHIP)["secret"])
            tree.client.delete(MEMBERSHIP)
            until(partial(tree.json, MEMBERSHIP), right=lambda shared: shared is not None)
        stream.wait_acknowledged(20)
    assert stream.in_doubt == set(), "a client was told of trouble"
    assert len({*secrets, tree.json(MEMBERSHIP)["secret"]}) == 6
    expect_nothing_lost(lasting_nodes, tree, stream)
    for node in lasting_nodes:
        assert not any(secret in node.output for secret in secrets)


def test_a_spoilt_secret_is_believed_by_nobody(nodes: Nodes, tree: Tree) -> None:
    """K590-6a: nothing is forwarded while something else stands there, the log says what to do, and
    doing it mends everything.
    """
    tree.client.set(MEMBERSHIP, b"what is this?")
    elsewhere = nodes.others(nodes.controller())[0]
    until(lambda: "once it is deleted" in elsewhere.output)
    with elsewhere.wire() as wire:
        (row,) = wire.ask("CreateTopics", 2, creation("t") | {"timeout_ms": 500})["topics"]
        assert row["error_code"] == TIMED_OUT
        tree.client.delete(MEMBERSHIP)
        (row,) = wire.ask("CreateTopics", 2, creation("t"))["topics"]
        assert row["error_code"] == NONE
