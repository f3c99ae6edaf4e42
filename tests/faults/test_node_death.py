"""A node dies and comes back: leaders, ISRs, and deletions that need the node."""

from functools import partial
from operator import eq

import pytest

from minicontroller.protocol.error_codes import ErrorCode
from tests.faults.agreement import expect_agreement, partition_told
from tests.faults.stream import create, delete, place
from tests.faults.tree import Tree
from tests.support.nodes import NodeProcess, Nodes, brokers_and_controller
from tests.support.waiting import until

pytestmark = pytest.mark.slow

LEADER_NOT_AVAILABLE, TOPIC_ALREADY_EXISTS, UNKNOWN_TOPIC_OR_PARTITION = (
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


def test_leaders_come_from_the_isr(nodes: Nodes, tree: Tree) -> None:
    """A dead leader is followed by a replica of the ISR; where none is left there is no leader, and
    only who was in sync last leads again when he returns. Every node tells the same, and at the end
    all replicas are in sync again.
    """
    controller = nodes.controller()
    x, y = nodes.others(controller)
    a, b, c = x.broker_id, y.broker_id, controller.broker_id
    with controller.wire() as wire:
        place(wire, {"lonely": [a], "pair": [a, b], "all": [a, b, c], "elsewhere": [c]})

    x.kill()
    expect_told(nodes, "lonely", (-1, {a}, {a}, LEADER_NOT_AVAILABLE))
    expect_told(nodes, "pair", (b, {b}, {a}, 0))
    expect_told(nodes, "all", (b, {b, c}, {a}, 0))
    expect_told(nodes, "elsewhere", (c, {c}, set(), 0))
    y.kill()
    expect_told(nodes, "pair", (-1, {b}, {a, b}, LEADER_NOT_AVAILABLE))
    expect_told(nodes, "all", (c, {c}, {a, b}, 0))

    nodes.start(a)
    expect_told(nodes, "lonely", (a, {a}, set(), 0))
    expect_told(nodes, "pair", (-1, {b}, {b}, LEADER_NOT_AVAILABLE))
    expect_told(nodes, "all", (c, {a, c}, {b}, 0))
    assert tree.state("pair")["leader"] == -1
    nodes.start(b)
    expect_told(nodes, "pair", (b, {a, b}, set(), 0))
    expect_told(nodes, "all", (c, {a, b, c}, set(), 0))
    expect_agreement(nodes.running, tree)


def test_a_deletion_waits_for_a_dead_replica_and_outlives_its_controller(nodes: Nodes, tree: Tree) -> None:
    """K4-D1a, K4-D5: it succeeds at once for whoever asked, and the name stays taken, as in Kafka,
    until the replica's node has come back; the controller that marked the topic dies meanwhile, and
    its successor goes on.
    """
    controller = nodes.controller()
    x, y = nodes.others(controller)
    everywhere = [node.broker_id for node in nodes]
    with controller.wire() as wire:
        place(wire, {"doomed": everywhere, "spared": everywhere})
        x.kill()
        until(lambda: x.broker_id not in brokers_and_controller(controller)[0])
        assert delete(wire, "doomed") == 0
        assert tree.children("/admin/delete_topics") == ["doomed"]
        assert create(wire, "doomed", replicas=1) == TOPIC_ALREADY_EXISTS
    controller.kill()
    until(lambda: tree.controller_id == y.broker_id)
    nodes.start(controller.broker_id)
    for node in nodes.running:
        until(partial(error_told, node, "doomed"), right=lambda code: code == UNKNOWN_TOPIC_OR_PARTITION)
    assert tree.topics == ["doomed", "spared"]
    nodes.start(x.broker_id)
    until(lambda: tree.topics, right=lambda topics: topics == ["spared"])
    until(lambda: tree.children("/admin/delete_topics"), right=lambda marked: marked == [])
    with x.wire() as wire:  # until the controller, too, has heard that the tree no longer has the topic
        until(partial(create, wire, "doomed", replicas=3), right=lambda code: code == ErrorCode.NONE)
    assert tree.half_made() == []
    expect_agreement(nodes.running, tree)


def error_told(node: NodeProcess, topic: str) -> int:
    code: int = node.metadata([topic])["topics"][0]["error_code"]
    return code


def expect_told(nodes: Nodes, topic: str, right: tuple[int, set[int], set[int], int]) -> None:
    """Every node that runs tells (leader, ISR, offline replicas, error code) of a topic's
    partition, sooner or later.
    """
    for node in nodes.running:
        until(partial(partition_told, node, topic), right=partial(eq, right))
