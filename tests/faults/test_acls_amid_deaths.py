"""ACLs are made and removed while nodes are killed: what was acknowledged is in force on every node
that lives, and is what ZooKeeper holds.
"""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from operator import eq
from pathlib import Path

import pytest

from minicontroller.protocol.error_codes import ErrorCode
from tests.faults.tree import Tree
from tests.support.nodes import NodeProcess, Nodes, running_nodes
from tests.support.waiting import until
from tests.support.wire import Body, Wire
from tests.support.zookeeper import ZooKeeperEnsemble

pytestmark = pytest.mark.slow

SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "metadata.completion": "cluster",
}
LITERAL, ANY = 3, 1
TOPIC, READ, ALLOW = 2, 3, 3
ACLS = "/kafka-acl/Topic"


@pytest.fixture(name="guarded")
def guarded_nodes(tmp_path: Path, ensemble: ZooKeeperEnsemble, chroot: str) -> Iterator[Nodes]:
    """Three nodes with an authorizer that lets everybody administer them."""
    with running_nodes(tmp_path, [ensemble.connect + chroot] * 3, SETTINGS) as nodes:
        yield nodes


def creation(name: str) -> Body:
    acl = {"resource_type": TOPIC, "resource_name": name, "resource_pattern_type": LITERAL, "principal": "User:a"}
    return {"creations": [acl | {"host": "*", "operation": READ, "permission_type": ALLOW}]}


def wanted(name: str | None) -> Body:
    return {
        "resource_type_filter": TOPIC,
        "resource_name_filter": name,
        "pattern_type_filter": LITERAL,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }


def make(wire: Wire, name: str) -> int:
    code: int = wire.ask("CreateAcls", 3, creation(name))["results"][0]["error_code"]
    return code


def remove(wire: Wire, name: str) -> int:
    code: int = wire.ask("DeleteAcls", 3, {"filters": [wanted(name)]})["filter_results"][0]["error_code"]
    return code


def shown(node: NodeProcess) -> set[str]:
    """The topics for which a node has ACLs."""
    with node.wire() as wire:
        return {each["resource_name"] for each in wire.ask("DescribeAcls", 3, wanted(None))["resources"]}


class Administrator:
    """Makes an ACL for one topic after the other, and removes every second one again."""

    def __init__(self, address: str) -> None:
        self.there: set[str] = set()
        self.gone: set[str] = set()
        """The topics whose ACLs were acknowledged as made, and as removed."""
        self.codes: set[int] = set()
        self.failures: list[BaseException] = []
        self.ending = threading.Event()
        self._address = address
        self._turns = itertools.cycle((True, False))

    def wait_acknowledged(self, more: int) -> None:
        """Until so many more changes of ACLs have been acknowledged."""
        wanted = self._acknowledged + more
        until(lambda: self.failures or self._acknowledged >= wanted)
        assert not self.failures

    @property
    def _acknowledged(self) -> int:
        return len(self.there) + len(self.gone)

    def run(self) -> None:
        names = (f"t-{number}" for number in itertools.count())
        try:
            with Wire(self._address) as wire:
                while not self.ending.is_set():
                    self._act(wire, next(names))
        except Exception as error:  # noqa: BLE001 - shown by the test's own thread
            self.failures.append(error)

    def _act(self, wire: Wire, name: str) -> None:
        code = make(wire, name)
        self.codes.add(code)
        if code != ErrorCode.NONE:
            return
        if next(self._turns):
            self.there.add(name)
            return
        code = remove(wire, name)
        self.codes.add(code)
        if code == ErrorCode.NONE:
            self.gone.add(name)


@contextmanager
def administering(node: NodeProcess) -> Iterator[Administrator]:
    """By way of this node, which lives."""
    administrator = Administrator(node.address)
    thread = threading.Thread(target=administrator.run)
    thread.start()
    try:
        yield administrator
    finally:
        administrator.ending.set()
        thread.join()


def test_nothing_acknowledged_is_lost_when_nodes_are_killed(guarded: Nodes, tree: Tree) -> None:
    """The controller is killed, then another node, and both come back: every node shows the ACLs
    that were acknowledged, those that were there when it started and those that came later.
    """
    controller = guarded.controller()
    survivor, other = guarded.others(controller)
    with administering(survivor) as administrator:
        for victim in (controller, other):
            administrator.wait_acknowledged(40)
            victim.kill()
            administrator.wait_acknowledged(40)
            guarded.start(victim.broker_id)
        administrator.wait_acknowledged(40)
    assert administrator.codes <= {ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER}
    stored = set(tree.children(ACLS))
    assert administrator.there <= stored
    assert not administrator.gone & stored
    for node in guarded:  # what is in doubt may still be on its way to the tree, and to the nodes
        told, there = until(lambda node=node: (shown(node), set(tree.children(ACLS))), right=lambda both: eq(*both))  # type: ignore[misc]
        assert administrator.there <= told, node.broker_id
        assert not administrator.gone & there, node.broker_id
