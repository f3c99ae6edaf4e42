"""A real ensemble of three ZooKeeper servers, and three nodes on it, for tests that break them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.faults.tree import Tree
from tests.support.nodes import Nodes, running_nodes
from tests.support.proxy import Proxy
from tests.support.zookeeper import ZooKeeperEnsemble

LASTING = {"zookeeper.session.timeout.ms": "30000"}
"""For sessions that must not end, however busy the machine is."""
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
    """An ensemble for all tests of faults: whoever breaks one of its servers mends it."""
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


@pytest.fixture
def lasting_nodes(tmp_path: Path, ensemble: ZooKeeperEnsemble, chroot: str) -> Iterator[Nodes]:
    """Nodes whose sessions outlive every pause."""
    with running_nodes(tmp_path, [ensemble.connect + chroot] * 3, LASTING) as nodes:
        yield nodes


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

    def cut_after(self, broker_id: int, count: int) -> None:
        """ZooKeeper hears so many bytes more of this node, and nothing behind them."""
        self._proxies[broker_id - 1].swallow_requests_after(count)

    def mend(self, broker_ids: list[int]) -> None:
        for broker_id in broker_ids:
            self._proxies[broker_id - 1].mend()


@pytest.fixture
def wired(tmp_path: Path, ensemble: ZooKeeperEnsemble, chroot: str) -> Iterator[Wired]:
    """Each node reaches one server of the ensemble, through a proxy of its own."""
    with running_wired(tmp_path, ensemble, chroot, {}) as wired:
        yield wired


@pytest.fixture
def lasting_wired(tmp_path: Path, ensemble: ZooKeeperEnsemble, chroot: str) -> Iterator[Wired]:
    """Nodes behind proxies, whose sessions outlive every pause."""
    with running_wired(tmp_path, ensemble, chroot, LASTING) as wired:
        yield wired


@contextmanager
def running_wired(
    folder: Path, ensemble: ZooKeeperEnsemble, chroot: str, settings: Mapping[str, str]
) -> Iterator[Wired]:
    with ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(server.port)) for server in ensemble.servers]
        nodes = stack.enter_context(running_nodes(folder, [proxy.connect + chroot for proxy in proxies], settings))
        yield Wired(nodes, proxies)
        for proxy in proxies:
            proxy.mend()
