"""A real ensemble of three ZooKeeper servers, and three nodes on it, for tests that break them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.tree import Tree
from tests.support.nodes import Nodes, running_nodes
from tests.support.zookeeper import ZooKeeperEnsemble

Record = Callable[[str, float], None]
"""A figure of a test, by name: seconds, or how many."""


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Record:
    """Times depend on the machine: they are told at the end of the run (`tests/conftest.py`), and
    not asserted.
    """
    return lambda name, value: request.node.user_properties.append((name, round(value, 3)))


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperEnsemble]:
    """One for all tests of faults: whoever breaks one of its servers mends it."""
    with ZooKeeperEnsemble(tmp_path_factory.mktemp("ensemble")) as ensemble:
        yield ensemble


@pytest.fixture
def tree(ensemble: ZooKeeperEnsemble, chroot: str) -> Iterator[Tree]:
    """The znodes of this test's cluster, seen through a session of the test's own."""
    with Tree(ensemble.connect, chroot) as tree:
        yield tree


@pytest.fixture
def nodes(tmp_path: Path, ensemble: ZooKeeperEnsemble, chroot: str) -> Iterator[Nodes]:
    """Three nodes that serve and know each other."""
    with running_nodes(tmp_path, [ensemble.connect + chroot] * 3) as nodes:
        yield nodes
