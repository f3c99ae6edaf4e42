"""Conditions that must hold in the tree and on every running node once all faults are over."""

from collections.abc import Collection
from typing import Any

from tests.faults.stream import Stream
from tests.faults.tree import Tree
from tests.support.nodes import NodeProcess, Nodes
from tests.support.waiting import until


def expect_nothing_lost(nodes: Nodes, tree: Tree, stream: Stream) -> None:
    """K590-2: every acknowledged topic is there, whole and led, on every node; none is half there;
    all agree with the tree.
    """
    nodes.wait_known()
    until(tree.half_made, right=lambda flaws: flaws == [])  # what is in doubt may still be on its way
    topics = set(tree.topics)
    assert set(stream.acknowledged) <= topics, set(stream.acknowledged) - topics
    assert topics <= set(stream.answers), topics - set(stream.answers)
    expect_agreement(nodes.running, tree)


def expect_agreement(nodes: Collection[NodeProcess], tree: Tree) -> None:
    """Every node comes to tell of every topic what the tree says: leader, ISR and replicas of each
    partition; and each of them is led.
    """
    until(lambda: disagreements(nodes, tree), right=lambda found: found == [])


def disagreements(nodes: Collection[NodeProcess], tree: Tree) -> list[object]:
    """Return some of the mistakes in the tree, or else of the differences of what nodes tell."""
    ids = {node.broker_id for node in nodes}
    right = tree.partitions()
    wrong: list[object] = [
        (name, number, leader, isr, replicas)
        for name, partitions in right.items()
        for number, (leader, isr, replicas) in partitions.items()
        if not (leader in ids and leader in isr and set(isr) <= set(replicas))
    ]
    for node in nodes if not wrong else ():
        seen = partitions_told(node)
        differences = {name for name in {*seen, *right} if seen.get(name) != right.get(name)}
        wrong += [(node.broker_id, name, seen.get(name), right.get(name)) for name in sorted(differences)]
    return wrong[:5]


def partitions_told(node: NodeProcess) -> dict[str, dict[int, tuple[int, list[int], list[int]]]]:
    """Leader, ISR and replicas of every partition."""
    return {
        topic["name"]: {
            partition["partition_index"]: (
                partition["leader_id"],
                sorted(partition["isr_nodes"]),
                sorted(partition["replica_nodes"]),
            )
            for partition in topic["partitions"]
        }
        for topic in node.metadata(None)["topics"]
    }


def partition_told(node: NodeProcess, topic: str) -> Any:
    """(leader, ISR, offline replicas, error code) of the only partition of a topic; None where it
    is not known.
    """
    (found,) = node.metadata([topic])["topics"]
    if not found["partitions"]:
        return None
    (partition,) = found["partitions"]
    return (
        partition["leader_id"],
        set(partition["isr_nodes"]),
        set(partition["offline_replicas"]),
        partition["error_code"],
    )
