"""Everything at once: nodes and servers die, freeze, stop and are cut off, in an order that only a seed knows, while clients change topics
through all of them. MINICONTROLLER_FAULTS_SEED and MINICONTROLLER_FAULTS_SECONDS try another story, or a longer one.
"""

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from minicontroller.protocol.error_codes import ErrorCode
from tests.faults.agreement import expect_agreement
from tests.faults.conftest import Record
from tests.faults.tree import CONFIGS, Tree
from tests.faults.wishes import Form, Wisher
from tests.support.nodes import NodeProcess, Nodes, running_nodes
from tests.support.proxy import Proxy
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeperEnsemble

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("MINICONTROLLER_FAULTS_SEED", "590"))
SECONDS = float(os.environ.get("MINICONTROLLER_FAULTS_SECONDS", "12"))
WISHERS = 5


class Chaos:
    """Breaks one thing after the other, and mends each before the next one."""

    def __init__(
        self, nodes: Nodes, proxies: list[Proxy], ensemble: ZooKeeperEnsemble, tree: Tree, dice: random.Random
    ) -> None:
        self.story: list[str] = []
        self._tree = tree
        self._nodes = nodes
        self._proxies = proxies
        self._ensemble = ensemble
        self._dice = dice

    def step(self) -> None:
        node = self._dice.choice([self._nodes.controller(), *self._nodes])
        deed = self._dice.choice((self.kill, self.stop, self.freeze, self.cut, self.cut_all, self.kill_server))
        self.story.append(f"{deed.__name__} {node.broker_id}")
        deed(node)

    def kill(self, node: NodeProcess) -> None:
        """It returns before its old session is over, or after it."""
        node.kill()
        self._linger({node.broker_id})
        node.start()
        node.wait_ready()

    def stop(self, node: NodeProcess) -> None:
        node.stop()
        node.start()
        node.wait_ready()

    def freeze(self, node: NodeProcess) -> None:
        node.freeze()
        self._linger({node.broker_id})
        node.thaw()

    def cut(self, node: NodeProcess) -> None:
        self._cut({node.broker_id})

    def cut_all(self, _node: NodeProcess) -> None:
        self._cut({node.broker_id for node in self._nodes})

    def kill_server(self, _node: NodeProcess) -> None:
        server = self._dice.choice(self._ensemble.servers)
        server.kill()
        server.start()

    def _cut(self, broker_ids: set[int]) -> None:
        for broker_id in broker_ids:
            self._proxies[broker_id - 1].cut()
        self._linger(broker_ids)
        for broker_id in broker_ids:
            self._proxies[broker_id - 1].mend()

    def _linger(self, broker_ids: set[int]) -> None:
        """For no longer than it takes, or until their sessions are over."""
        if self._dice.random() < 0.6:
            until(lambda: not broker_ids & self._tree.brokers)


def test_what_was_acknowledged_is_what_is_there(
    tmp_path: Path, ensemble: ZooKeeperEnsemble, chroot: str, record: Record
) -> None:
    """K590-2: after any story every topic has a form that its client's answers allow, every node tells what the tree holds, nothing is
    half done, and no client was ever told of anything but success, doubt, or too few nodes.
    """
    dice = random.Random(SEED)
    with ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(server.port)) for server in ensemble.servers]
        nodes = stack.enter_context(running_nodes(tmp_path, [proxy.connect + chroot for proxy in proxies]))
        tree = stack.enter_context(Tree(ensemble.connect, chroot))
        chaos = Chaos(nodes, proxies, ensemble, tree, dice)
        with wishing(nodes, dice) as wishers:
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                chaos.step()
        told = f"seed {SEED}: {chaos.story}"
        nodes.wait_known()
        until(lambda: tree.children("/admin/delete_topics"), right=lambda names: not names)
        record("acknowledged", sum(wisher.acknowledged for wisher in wishers))
        record("in_doubt", sum(wisher.in_doubt for wisher in wishers))
        record("faults", len(chaos.story))
        assert tree.half_made() == [], told
        expect_forms(tree, wishers, told)
        expect_agreement(nodes.running, tree)


def expect_forms(tree: Tree, wishers: list[Wisher], told: str) -> None:
    possible = {topic: forms for wisher in wishers for topic, forms in wisher.possible.items()}
    assignments = tree.assignments()
    for topic, forms in possible.items():
        form: Form | None = None
        if topic in assignments:
            retention_ms = tree.json(f"{CONFIGS}/{topic}")["config"]["retention.ms"]
            form = Form(len(assignments[topic]), int(retention_ms))
        assert form in forms, (topic, form, forms, told)
    assert assignments.keys() <= possible.keys(), told
    refusals = {code for wisher in wishers for _, code in wisher.refusals}
    assert refusals <= {ErrorCode.INVALID_REPLICATION_FACTOR}, ([wisher.refusals for wisher in wishers], told)


@contextmanager
def wishing(nodes: Nodes, dice: random.Random) -> Iterator[list[Wisher]]:
    over = threading.Event()
    wishers = [Wisher(f"client-{number}", nodes, random.Random(dice.random())) for number in range(WISHERS)]
    threads = [threading.Thread(target=wisher.run, args=(over,), daemon=True) for wisher in wishers]
    for thread in threads:
        thread.start()
    try:
        yield wishers
    finally:
        over.set()
        for thread in threads:
            thread.join(30)
    assert [wisher.failure for wisher in wishers] == [None] * WISHERS
