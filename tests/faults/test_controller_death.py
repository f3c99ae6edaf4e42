"""The controller dies, or is told to go, while clients create topics."""

import itertools
import time

import pytest

from tests.faults.conftest import Record
from tests.faults.stream import create, streaming
from tests.faults.tree import Tree
from tests.support.nodes import SESSION_TIMEOUT_MS, NodeProcess, Nodes
from tests.support.waiting import until

pytestmark = pytest.mark.slow


def test_nothing_acknowledged_is_lost_when_the_controller_is_killed(nodes: Nodes, tree: Tree, record: Record) -> None:
    """K590-2: SIGKILL amid creations. Every topic that was acknowledged is there, whole, and led on every node that lives; none is
    half there; and creations succeed again as soon as the dead one's session is over.
    """
    controller = nodes.controller()
    survivors = nodes.others(controller)
    with streaming(survivors) as stream:
        until(lambda: len(stream.acknowledged) > 50)
        vacancy = tree.vacancy()
        killed_at = time.monotonic()
        controller.kill()
        succeeded_at = until(lambda: vacancy.seen_at and stream.first_after(vacancy.seen_at))
        before = len(stream.acknowledged)
        until(lambda: len(stream.acknowledged) > before + 20)
    assert vacancy.seen_at is not None and succeeded_at is not None
    record("seconds_from_kill_to_expiry", vacancy.seen_at - killed_at)
    record("seconds_from_expiry_to_next_create", succeeded_at - vacancy.seen_at)
    record("acknowledged", len(stream.acknowledged))
    record("in_doubt", len(stream.answers) - len(stream.acknowledged))
    assert succeeded_at - killed_at < SESSION_TIMEOUT_MS / 1000 + 5
    nodes.wait_known()
    assert tree.half_made() == []
    assert {node.broker_id for node in survivors} == expect_led(survivors, set(stream.acknowledged))


def test_the_controller_hands_over_when_it_is_told_to_stop(nodes: Nodes, tree: Tree, record: Record) -> None:
    """SIGTERM: leaderships move first, another node rules at once, no client is told of trouble, and it ends with code 0."""
    controller = nodes.controller()
    survivors = nodes.others(controller)
    epoch = tree.controller_epoch
    with streaming(survivors) as stream:
        until(lambda: len(stream.acknowledged) > 50)
        stopped_at = time.monotonic()
        vacancy = tree.vacancy()
        controller.terminate_nowait()
        succeeded_at = until(lambda: vacancy.seen_at and stream.first_after(vacancy.seen_at))
        before = len(stream.acknowledged)
        until(lambda: len(stream.acknowledged) > before + 20)
    assert vacancy.seen_at is not None and succeeded_at is not None
    record("seconds_from_sigterm_to_vacancy", vacancy.seen_at - stopped_at)
    record("seconds_from_sigterm_to_next_create", succeeded_at - stopped_at)
    record("seconds_to_end", controller.stop())
    record("longest_pause", longest_pause(sorted(stream.acknowledged.values())))
    assert set(stream.acknowledged) == set(stream.answers), "a client was told of trouble"
    nodes.wait_known()
    assert tree.controller_epoch == epoch + 1
    assert tree.half_made() == []
    expect_led(survivors, set(stream.acknowledged))


def test_a_node_that_is_told_to_stop_leaves_no_partition_without_leader(nodes: Nodes) -> None:
    """ControlledShutdown: a node that is not the controller hands its leaderships over before it goes."""
    controller = nodes.controller()
    leaving = nodes.others(controller)[0]
    with controller.wire() as wire:
        assert create(wire, "led", partitions=6) == 0
    leaving.stop()
    leaders = {p["leader_id"] for p in controller.metadata(["led"])["topics"][0]["partitions"]}
    assert leaders == {node.broker_id for node in nodes.running}


def expect_led(nodes: list[NodeProcess], topics: set[str]) -> set[int]:
    """On each of these nodes every one of the topics is led by one of them. Returns who leads."""
    ids = {node.broker_id for node in nodes}
    leaders: set[int] = set()
    for node in nodes:
        found = {topic["name"]: topic for topic in node.metadata(None)["topics"]}
        assert topics <= set(found), f"node {node.broker_id} knows nothing of {topics - set(found)}"
        for name in topics:
            led_by = {partition["leader_id"] for partition in found[name]["partitions"]}
            assert led_by <= ids, f"node {node.broker_id} says that {name} is led by {led_by}"
            leaders |= led_by
    return leaders


def longest_pause(moments: list[float]) -> float:
    return max(later - earlier for earlier, later in itertools.pairwise(moments))
