"""Nodes lose their connections to ZooKeeper while clients create topics: one node, the controller,
or all; for a moment, or for longer than their sessions live.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.agreement import expect_nothing_lost
from tests.faults.conftest import Record
from tests.faults.stream import REPLICAS, streaming
from tests.faults.tree import Tree
from tests.support.nodes import Nodes, running_nodes
from tests.support.proxy import Proxy
from tests.support.waiting import until
from tests.support.wire import read_answer
from tests.support.zookeeper import ZooKeeperEnsemble

pytestmark = pytest.mark.slow

REQUEST_TIMED_OUT = 7


class Wired:
    """Nodes, and the wire to ZooKeeper of each."""

    def __init__(self, nodes: Nodes, proxies: list[Proxy]) -> None:
        self.nodes = nodes
        self._proxies = proxies

    def victims(self, who: str) -> list[int]:
        controller = self.nodes.controller()
        return {
            "follower": [self.nodes.others(controller)[0].broker_id],
            "controller": [controller.broker_id],
            "all": [node.broker_id for node in self.nodes],
        }[who]

    def cut(self, broker_ids: list[int]) -> None:
        for broker_id in broker_ids:
            self._proxies[broker_id - 1].cut()

    def mend(self, broker_ids: list[int]) -> None:
        for broker_id in broker_ids:
            self._proxies[broker_id - 1].mend()


@pytest.fixture
def wired(tmp_path: Path, ensemble: ZooKeeperEnsemble, chroot: str) -> Iterator[Wired]:
    """Each node reaches one server of the ensemble, through a proxy of its own."""
    with ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(server.port)) for server in ensemble.servers]
        nodes = stack.enter_context(running_nodes(tmp_path, [proxy.connect + chroot for proxy in proxies]))
        yield Wired(nodes, proxies)
        for proxy in proxies:
            proxy.mend()


def test_a_lost_connection_is_a_pause(wired: Wired, tree: Tree, record: Record) -> None:
    """While the connection to ZooKeeper is lost and sessions live, requests wait, nothing is lost,
    and the controller stays.
    """
    epoch, brokers = tree.controller_epoch, tree.born()
    with streaming(list(wired.nodes)) as stream:
        for who in ("follower", "controller", "all"):
            stream.wait_acknowledged(20)
            victims = wired.victims(who)
            wired.cut(victims)
            if who == "follower":
                stream.wait_acknowledged(20)
            wired.mend(victims)
            stream.wait_acknowledged(20)
    record("longest_pause", stream.longest_pause())
    record("acknowledged", len(stream.acknowledged))
    record("in_doubt", len(stream.in_doubt))
    expect_nothing_lost(wired.nodes, tree, stream)
    assert tree.controller_epoch == epoch
    assert tree.born() == brokers


@pytest.mark.parametrize("who", ["follower", "controller", "all"])
def test_a_lost_session_is_begun_anew(wired: Wired, tree: Tree, record: Record, who: str) -> None:
    """K590-2: cut off until the session is gone, the others go on without; who comes back registers
    again and follows. When all were cut off, requests wait, and the first that comes back rules:
    alone at first, with room for a single replica.
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
        wire.ask("CreateTopics", 7, {"topics": [_new(name) for name in kept], "timeout_ms": 10_000})
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
