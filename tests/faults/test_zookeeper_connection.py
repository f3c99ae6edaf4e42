"""Nodes lose their connections to ZooKeeper while clients create topics: one node, the controller,
or all; for a moment, or for longer than their sessions live.
"""

import pytest

from tests.faults.agreement import expect_nothing_lost
from tests.faults.conftest import Record, Wired
from tests.faults.stream import REPLICAS, streaming
from tests.faults.tree import Tree
from tests.support.waiting import until
from tests.support.wire import read_answer

pytestmark = pytest.mark.slow

REQUEST_TIMED_OUT = 7


def test_a_lost_connection_is_a_pause(lasting_wired: Wired, tree: Tree, record: Record) -> None:
    """While the connection to ZooKeeper is lost and sessions live, requests wait, nothing is lost,
    and the controller stays.
    """
    epoch, brokers = tree.controller_epoch, tree.born()
    with streaming(list(lasting_wired.nodes)) as stream:
        for who in ("follower", "controller", "all"):
            stream.wait_acknowledged(20)
            victims = lasting_wired.victims(who)
            lasting_wired.cut(victims)
            if who == "follower":
                stream.wait_acknowledged(20)
            lasting_wired.mend(victims)
            stream.wait_acknowledged(20)
    record("longest_pause", stream.longest_pause())
    record("acknowledged", len(stream.acknowledged))
    record("in_doubt", len(stream.in_doubt))
    expect_nothing_lost(lasting_wired.nodes, tree, stream)
    assert tree.controller_epoch == epoch
    assert tree.born() == brokers


@pytest.mark.parametrize("who", ["follower", "controller", "all"])
def test_a_lost_session_is_begun_anew(wired: Wired, tree: Tree, record: Record, who: str) -> None:
    """K590-2b: cut off until the session is gone, the others go on without; who comes back
    registers again and follows. When all were cut off, requests wait, and the first that comes back
    rules: alone at first, with room for a single replica.
    """
    with streaming(list(wired.nodes), replicas=1 if who == "all" else REPLICAS) as stream:
        stream.wait_acknowledged(20)
        victims = wired.victims(who)
        before = tree.born()
        wired.cut(victims)
        until(lambda: not set(victims) & tree.brokers)
        if who != "all":
            stream.wait_acknowledged(20)
        wired.mend(victims)
        until(lambda: tree.brokers == {1, 2, 3})
        stream.wait_acknowledged(20)
    record("longest_pause", stream.longest_pause())
    record("acknowledged", len(stream.acknowledged))
    record("in_doubt", len(stream.in_doubt))
    expect_nothing_lost(wired.nodes, tree, stream)
    now = tree.born()
    assert {broker_id for broker_id in now if now[broker_id] != before[broker_id]} == set(victims)


def test_timed_out_means_not_done(wired: Wired, tree: Tree) -> None:
    """A request that was answered REQUEST_TIMED_OUT while no node reached ZooKeeper is not carried
    out later.
    """
    kept = [f"kept-{number}" for number in range(4)]
    with wired.nodes.controller().wire() as wire:
        made = wire.ask("CreateTopics", 7, {"topics": [_new(name) for name in kept], "timeout_ms": 30_000})
    assert {row["error_code"] for row in made["topics"]} == {0}
    everybody = wired.victims("all")
    wired.cut(everybody)
    clients = [node.wire() for node in wired.nodes for _ in range(8)]
    asked = [f"late-{number}" for number in range(len(clients))]
    for number, (client, name) in enumerate(zip(clients, asked, strict=True)):
        client.send(client.frame("CreateTopics", 7, {"topics": [_new(name)], "timeout_ms": 500}))
        client.send(client.frame("DeleteTopics", 5, {"topic_names": [kept[number % len(kept)]], "timeout_ms": 500}))
    for client in clients:
        (created,) = read_answer("CreateTopics", 7, client.receive())["topics"]
        (deleted,) = read_answer("DeleteTopics", 5, client.receive())["responses"]
        assert {created["error_code"], deleted["error_code"]} == {REQUEST_TIMED_OUT}
        client.close()
    wired.mend(everybody)
    with streaming(list(wired.nodes)) as stream:
        stream.wait_acknowledged(20)
    assert set(kept) <= set(tree.topics)
    assert not set(asked) & set(tree.topics)
    assert not tree.children("/admin/delete_topics")


def _new(name: str) -> dict[str, object]:
    return {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
